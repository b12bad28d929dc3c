//! Where a secret of the operator comes from. It is read outside, after the sandbox was split off.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::str::FromStr;
use zeroize::Zeroizing;

/// Longest secret that is read, in bytes.
const MAX: u64 = 64 * 1024;

/// Where a secret comes from: `env:NAME`, `file:PATH`, `command:COMMAND` or `keyring:DESCRIPTION`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A variable of the operator's environment.
    Env(String),
    /// A file; white space around its content is dropped.
    File(PathBuf),
    /// What `sh -c COMMAND` prints.
    Command(String),
    /// A `user` key of the kernel's keyrings (thread, process, session, user), by description.
    Keyring(String),
}

/// A secret can't be had. The text never holds any of it.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The text names no source.
    #[error("a secret comes from env:NAME, file:PATH, command:COMMAND or keyring:DESCRIPTION")]
    Unknown,
    /// It was not found or is not readable.
    #[error("reading the secret from {place}: {why}")]
    Read {
        /// The source.
        place: String,
        /// Why.
        why: String,
    },
}

impl FromStr for KeySource {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<KeySource, SourceError> {
        let (kind, rest) =
            text.split_once(':').filter(|(_, rest)| !rest.is_empty()).ok_or(SourceError::Unknown)?;
        Ok(match kind {
            "env" => KeySource::Env(rest.to_owned()),
            "file" => KeySource::File(rest.into()),
            "command" => KeySource::Command(rest.to_owned()),
            "keyring" => KeySource::Keyring(rest.to_owned()),
            _ => return Err(SourceError::Unknown),
        })
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeySource::Env(name) => write!(f, "env:{name}"),
            KeySource::File(path) => write!(f, "file:{}", crate::sanitise::path(path)),
            // A command line may hold what should not be shown.
            KeySource::Command(_) => f.write_str("command:…"),
            KeySource::Keyring(description) => write!(f, "keyring:{description}"),
        }
    }
}

impl KeySource {
    /// Reads the secret, without white space around it.
    pub fn read(&self) -> Result<Zeroizing<String>, SourceError> {
        let failed = |why: String| SourceError::Read { place: self.to_string(), why };
        let bytes = match self {
            KeySource::Env(name) => std::env::var(name)
                .map(|value| Zeroizing::new(value.into_bytes()))
                .map_err(|_| failed("the variable is not set".to_owned()))?,
            KeySource::File(path) => {
                std::fs::File::open(path).and_then(bounded).map_err(|e| failed(e.to_string()))?
            }
            KeySource::Command(line) => printed_by(line).map_err(failed)?,
            KeySource::Keyring(description) => crate::sandbox::read_user_key(description)
                .map(Zeroizing::new)
                .map_err(|errno| failed(std::io::Error::from(errno).to_string()))?,
        };
        let text = std::str::from_utf8(&bytes).map_err(|_| failed("it is not text".to_owned()))?;
        match text.trim() {
            "" => Err(failed("it is empty".to_owned())),
            secret => Ok(Zeroizing::new(secret.to_owned())),
        }
    }
}

fn bounded(from: impl Read) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(4096));
    from.take(MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX { Err(std::io::Error::other("it is too long")) } else { Ok(bytes) }
}

fn printed_by(line: &str) -> Result<Zeroizing<Vec<u8>>, String> {
    let child =
        Command::new("/bin/sh").args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|e| e.to_string())?;
    let printed = child.stdout.take().map(bounded);
    let status = child.wait().map_err(|e| e.to_string())?;
    match (status.success(), printed) {
        (true, Some(printed)) => printed.map_err(|e| e.to_string()),
        _ => Err(format!("the command ended with {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> Result<String, String> {
        source.parse::<KeySource>().unwrap().read().map(|s| s.to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn secrets_come_from_files_and_commands() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "  sk-secret\n").unwrap();
        assert_eq!(read(&format!("file:{}", file.to_string_lossy())).as_deref(), Ok("sk-secret"));
        assert_eq!(read("command:printf 'a%sb\\n' -").as_deref(), Ok("a-b"));
    }

    /// Adds or revokes a key of this user by the system's own calls, in a process of its own.
    fn keyring(script: &str) -> String {
        let script = format!(
            "import ctypes\nc = ctypes.CDLL(None, use_errno=True).syscall\nadd, ctl = (248, 250) if \
             __import__('platform').machine() == 'x86_64' else (217, 219)\n{script}"
        );
        let out = Command::new("/usr/bin/python3").args(["-c", &script]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn a_secret_comes_from_the_kernels_keyring() {
        let name = format!("jess-test-{}", std::process::id());
        let source = format!("keyring:{name}");
        assert!(read(&source).is_err(), "nothing is there before");
        // -4 is the user keyring; the permissions let the owner read without possessing, which a session-less test needs.
        let id = keyring(&format!(
            "k = c(add, b'user', b'{name}', b' sk-from-keyring ', 17, -4)\nassert k > 0\nassert c(ctl, 5, k, 0x3f3f0000) == 0\nprint(k)"
        ));
        let found = read(&source);
        keyring(&format!("c(ctl, 3, {id})"));
        assert_eq!(found.as_deref(), Ok("sk-from-keyring"));
        assert!(read(&source).is_err(), "a revoked key is no key");
    }

    #[test]
    fn what_cannot_be_read_is_named_without_its_content() {
        let error = read("command:echo sk-secret; exit 3").unwrap_err();
        assert!(error.contains("exit status: 3") && !error.contains("sk-secret"), "{error}");
        assert!(read("file:/nonexistent/key").unwrap_err().contains("/nonexistent/key"));
        assert!(read("env:JESS_NO_SUCH_VARIABLE").unwrap_err().contains("JESS_NO_SUCH_VARIABLE"));
        assert!(read("keyring:jess-no-such-key").is_err());
        assert!(read("command:true").unwrap_err().contains("empty"));
        for none in ["", "sk-ant-abc", "vault:x", "env:"] {
            assert!(none.parse::<KeySource>().is_err(), "{none}");
        }
    }
}
