//! The result of the live canary, kept for one boot of the machine and one build of the program.
//!
//! It only saves time: no run takes anything from it. A command that may write to this place could put anything there, so
//! all that is kept, and believed, is that everything holds; what else there is to say is found anew each time.

use super::{Live, own_program};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes that are read of the file.
const MAX: u64 = 64 << 10;

#[derive(Serialize, Deserialize, PartialEq)]
struct Key {
    boot: String,
    version: String,
    program: (u64, u64, i64),
    user: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    key: Key,
}

/// What is worth keeping: the whole of tier `full`, with nothing to say about it.
fn whole() -> Live {
    Live { tier: "full".into(), held: true, message: String::new(), weak: Vec::new(), cached: false }
}

fn key() -> Option<Key> {
    let program = own_program().metadata().ok()?;
    Some(Key {
        boot: super::read("/proc/sys/kernel/random/boot_id")?,
        version: env!("CARGO_PKG_VERSION").into(),
        program: (program.dev(), program.ino(), program.mtime_nsec() ^ (program.mtime() << 30)),
        user: rustix::process::geteuid().as_raw(),
    })
}

fn directory() -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let base = std::env::var_os("XDG_CACHE_HOME")
        .and_then(|dir| absolute(dir.into()))
        .or_else(|| crate::sandbox::env::home().map(|home| home.join(".cache")))?;
    absolute(base.join("jess"))
}

pub fn load() -> Option<Live> {
    load_from(&directory()?, &key()?)
}

pub fn store(live: &Live) {
    if let (Some(directory), Some(key)) = (directory(), key())
        && *live == whole()
    {
        let _ = store_in(&directory, Kept { key });
    }
}

fn load_from(directory: &Path, key: &Key) -> Option<Live> {
    use std::io::Read;
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(directory.join("doctor.json"))
        .ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.uid() != key.user || metadata.mode() & 0o022 != 0 {
        return None;
    }
    let mut text = Vec::new();
    file.take(MAX).read_to_end(&mut text).ok()?;
    let kept: Kept = serde_json::from_slice(&text).ok()?;
    (kept.key == *key).then(|| Live { cached: true, ..whole() })
}

fn store_in(directory: &Path, kept: Kept) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let path = directory.join("doctor.json");
    let new = directory.join(format!(".doctor-{}.json", std::process::id()));
    let _ = std::fs::remove_file(&new);
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    serde_json::to_writer(file, &kept)?;
    std::fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_kept_for_its_boot_and_program_alone() {
        let dir = tempfile::tempdir().unwrap();
        let key = |boot: &str| Key { boot: boot.into(), ..key().unwrap() };
        store_in(dir.path(), Kept { key: key("one") }).unwrap();
        assert_eq!(load_from(dir.path(), &key("one")), Some(Live { cached: true, ..whole() }));
        assert_eq!(load_from(dir.path(), &key("two")), None);
        let other = Key { program: (0, 0, 0), ..key("one") };
        assert_eq!(load_from(dir.path(), &other), None);
        let file = dir.path().join("doctor.json");
        let text = std::fs::read_to_string(&file).unwrap();
        let words = text.replacen('{', "{\"live\": {\"message\": \"a line\\nof its own\"}, ", 1);
        std::fs::write(&file, words).unwrap();
        assert_eq!(load_from(dir.path(), &key("one")), None, "words of somebody else");
    }

    #[test]
    fn what_others_could_have_written_or_a_link_is_not_read() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let key = key().unwrap();
        store_in(dir.path(), Kept { key: super::key().unwrap() }).unwrap();
        let file = dir.path().join("doctor.json");
        assert!(load_from(dir.path(), &key).is_some(), "control");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(load_from(dir.path(), &key).is_none());
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::rename(&file, dir.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real", &file).unwrap();
        assert!(load_from(dir.path(), &key).is_none());
    }
}
