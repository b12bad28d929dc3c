//! Toolchains that live in a home directory: where they are, what of them is shown, and how they are told.
//!
//! Only what runs and what it needs is shown, read-only. Files that hold credentials (`~/.cargo/credentials.toml`,
//! `~/.npmrc`) are not, and settings only if none of the words that stand beside credentials is in them. Each directory of the caller's PATH that lies in what is shown comes before the PATH inside.

use super::Error;
use super::env;
use super::profile::Tools;
use super::spec::{Access, Grant};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// One kind of toolchain.
struct Kind {
    name: &'static str,
    /// The variable that says where it is, and where it is else, below the home.
    root: (&'static str, &'static str),
    /// What of it is shown, below the root; empty: all of it.
    shown: &'static [&'static str],
    /// What more of the home is shown, if it exists.
    beside: &'static [&'static str],
    /// Whether the variable is set inside.
    told: bool,
    /// Further variables that are passed if their value lies in what is shown.
    passed: &'static [&'static str],
}

const KINDS: [Kind; 12] = [
    Kind {
        name: "rustup",
        root: ("RUSTUP_HOME", ".rustup"),
        shown: &[],
        beside: &[],
        told: true,
        passed: &[],
    },
    Kind {
        name: "cargo",
        root: ("CARGO_HOME", ".cargo"),
        shown: &["bin", "env", "registry", "git", "config.toml"],
        beside: &[],
        told: true,
        passed: &[],
    },
    Kind {
        name: "nvm",
        root: ("NVM_DIR", ".nvm"),
        shown: &["versions", "alias", "nvm.sh"],
        beside: &[],
        told: true,
        passed: &["NVM_BIN", "NVM_INC"],
    },
    Kind { name: "pyenv", root: ("PYENV_ROOT", ".pyenv"), shown: &[], beside: &[], told: true, passed: &[] },
    Kind {
        name: "uv",
        root: ("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"),
        shown: &[],
        beside: &[".local/bin/uv", ".local/bin/uvx", ".local/share/uv/tools"],
        told: true,
        passed: &[],
    },
    Kind {
        name: "go",
        root: ("GOPATH", "go"),
        shown: &["bin", "pkg/mod"],
        beside: &["sdk", ".go", ".local/go"],
        told: false,
        passed: &["GOROOT", "GOMODCACHE"],
    },
    Kind {
        name: "sdkman",
        root: ("SDKMAN_DIR", ".sdkman"),
        shown: &["bin", "candidates", "libexec", "src"],
        beside: &[],
        told: true,
        passed: &["JAVA_HOME", "MAVEN_HOME", "GRADLE_HOME", "KOTLIN_HOME", "SCALA_HOME"],
    },
    Kind {
        name: "mise",
        root: ("MISE_DATA_DIR", ".local/share/mise"),
        shown: &["installs", "shims", "plugins"],
        beside: &[".local/bin/mise", ".config/mise"],
        told: true,
        passed: &[],
    },
    Kind {
        name: "asdf",
        root: ("ASDF_DATA_DIR", ".asdf"),
        shown: &[],
        beside: &[".tool-versions"],
        told: true,
        passed: &[],
    },
    Kind { name: "rbenv", root: ("RBENV_ROOT", ".rbenv"), shown: &[], beside: &[], told: true, passed: &[] },
    Kind {
        name: "deno",
        root: ("DENO_INSTALL", ".deno"),
        shown: &["bin"],
        beside: &[],
        told: true,
        passed: &[],
    },
    Kind {
        name: "bun",
        root: ("BUN_INSTALL", ".bun"),
        shown: &["bin"],
        beside: &[],
        told: true,
        passed: &[],
    },
];

/// A toolchain that was found.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name, for example `cargo`.
    pub name: &'static str,
    /// What of it is shown.
    pub paths: Vec<PathBuf>,
    /// Variables that tell where it is.
    pub variables: Vec<(&'static str, OsString)>,
    /// Directories for the search path.
    pub search: Vec<PathBuf>,
}

/// The toolchains that `wanted` asks for, in the home of the calling process.
///
/// # Errors
/// One that is named and unknown, or not there.
pub fn find(wanted: Option<&Tools>) -> Result<Vec<Found>, Error> {
    let variable = |name: &str| std::env::var_os(name);
    match wanted {
        None | Some(Tools::All(false)) => Ok(Vec::new()),
        wanted => search(wanted, &super::env::home().unwrap_or_default(), &variable),
    }
}

fn search(
    wanted: Option<&Tools>,
    home: &Path,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Vec<Found>, Error> {
    let Some(Tools::Named(names)) = wanted else {
        return Ok(KINDS.iter().filter_map(|kind| kind.find(home, variable)).collect());
    };
    let one = |name: &String| {
        let missing = |known: bool| Error::Toolchain { name: name.clone(), known };
        let kind = KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| missing(false))?;
        kind.find(home, variable).ok_or_else(|| missing(true))
    };
    names.iter().map(one).collect()
}

/// The names of all toolchains that can be found.
pub fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

impl Kind {
    fn find(&self, home: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<Found> {
        let absolute = |path: PathBuf| (path.is_absolute() && path != Path::new("/")).then_some(path);
        let root = variable(self.root.0)
            .and_then(|value| absolute(value.into()))
            .or_else(|| absolute(home.join(self.root.1)))?;
        let mut paths: Vec<PathBuf> = if self.shown.is_empty() {
            vec![root.clone()]
        } else {
            self.shown.iter().map(|below| root.join(below)).collect()
        };
        if home.is_absolute() {
            paths.extend(self.beside.iter().map(|below| home.join(below)));
        }
        // A home that is the toolchain's own root, or above it, would show everything.
        paths.retain(|path| path.exists() && !home.starts_with(path));
        let mut paths: Vec<PathBuf> = paths.iter().flat_map(|path| without_credentials(path)).collect();
        paths.dedup();
        if paths.is_empty() {
            return None;
        }
        let real: Vec<PathBuf> = paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let shown = |path: &Path| {
            paths.iter().any(|p| path.starts_with(p))
                || path.canonicalize().is_ok_and(|path| real.iter().any(|r| path.starts_with(r)))
        };
        let mut variables: Vec<(&'static str, OsString)> = Vec::new();
        if self.told && root.exists() {
            variables.push((self.root.0, root.into_os_string()));
        }
        for name in self.passed {
            if let Some(value) = variable(name).filter(|value| shown(Path::new(value))) {
                variables.push((name, value));
            }
        }
        let path = variable("PATH").unwrap_or_default();
        let search = std::env::split_paths(&path).filter(|dir| dir.is_absolute() && shown(dir)).collect();
        Some(Found { name: self.name, paths, variables, search })
    }
}

/// Words that stand beside a credential in settings, in lower case.
const WORDS: [&str; 5] = ["token", "password", "_auth", "secret", "credential"];

/// Bytes of a file of settings that are looked at; a longer one is not shown.
const SETTINGS_MAX: u64 = 64 << 10;

/// What of `path` is shown: itself, nothing of settings in which a credential may be, or the parts of a directory of
/// installed versions (`KIND/VERSION/…`) beside their settings.
fn without_credentials(path: &Path) -> Vec<PathBuf> {
    let is = |name: &str| path.file_name().is_some_and(|own| own == name);
    if (is("config.toml") && holds_credentials(path)) || (is("mise") && any_settings(path)) {
        return Vec::new();
    }
    if !is("versions") {
        return vec![path.to_path_buf()];
    }
    let versions: Vec<PathBuf> = entries(path).iter().flat_map(|kind| entries(kind)).collect();
    let settings = |version: &PathBuf| version.join("etc/npmrc").exists();
    if !versions.iter().any(settings) {
        return vec![path.to_path_buf()];
    }
    let beside = |version: &PathBuf| {
        let parts = if settings(version) { entries(version) } else { vec![version.clone()] };
        parts.into_iter().filter(|part| !part.ends_with("etc"))
    };
    versions.iter().flat_map(beside).collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Whether a credential may be in a file of the directory `settings` or of a directory in it.
fn any_settings(settings: &Path) -> bool {
    let deeper = |path: &PathBuf| if path.is_dir() { entries(path) } else { vec![path.clone()] };
    settings.is_dir() && entries(settings).iter().flat_map(deeper).any(|file| holds_credentials(&file))
}

fn holds_credentials(file: &Path) -> bool {
    use std::io::Read;
    let Ok(metadata) = file.metadata() else { return false };
    if !metadata.is_file() {
        return false;
    }
    let mut text = Vec::new();
    let read = std::fs::File::open(file).and_then(|open| open.take(SETTINGS_MAX + 1).read_to_end(&mut text));
    if read.is_err() || text.len() as u64 > SETTINGS_MAX {
        return true;
    }
    let text = String::from_utf8_lossy(&text).to_ascii_lowercase();
    WORDS.iter().any(|word| text.contains(word))
}

impl Found {
    /// Adds what this toolchain needs to a run.
    pub fn apply(&self, grants: &mut Vec<Grant>, environment: &mut Vec<(OsString, OsString)>) {
        grants.extend(self.paths.iter().map(|path| Grant { path: path.clone(), access: Access::ReadOnly }));
        for (name, value) in &self.variables {
            env::set(environment, name, value);
        }
        let before = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        let before = before.unwrap_or_else(|| env::PATH.into());
        let dirs = self.search.iter().cloned().chain(std::env::split_paths(&before));
        if let Ok(path) = std::env::join_paths(dirs) {
            env::set(environment, "PATH", path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn home_with(dirs: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        for name in dirs {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let home = dir.path().canonicalize().unwrap();
        (dir, home)
    }

    #[test]
    fn settings_that_may_hold_credentials_are_not_shown_and_others_are() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let put = |name: &str, text: &str| {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), text).unwrap();
        };
        for name in ["a/bin/node", "a/etc/npmrc", "b/bin/node"] {
            put(&format!(".nvm/versions/node/{name}"), "");
        }
        put(".cargo/config.toml", "[build]\njobs = 2\n");
        put(".config/mise/config.toml", "[tools]\nnode = '22'\n");
        let shown = |path: &str| without_credentials(&at(path));
        assert_eq!(shown(".cargo/config.toml"), [at(".cargo/config.toml")]);
        assert_eq!(shown(".config/mise"), [at(".config/mise")]);
        let versions = [at(".nvm/versions/node/a/bin"), at(".nvm/versions/node/b")];
        assert_eq!(shown(".nvm/versions"), versions);
        put(".cargo/config.toml", "[registry]\nToken = 'x'\n");
        put(".config/mise/conf.d/own.toml", "[env]\nGITHUB_TOKEN = 'x'\n");
        assert!(shown(".cargo/config.toml").is_empty() && shown(".config/mise").is_empty());
        std::fs::remove_file(at(".nvm/versions/node/a/etc/npmrc")).unwrap();
        assert_eq!(shown(".nvm/versions"), [at(".nvm/versions")], "nothing to leave out");
    }

    #[test]
    fn every_toolchain_is_found_where_it_installs_itself() {
        let (_dir, home) = home_with(&[
            ".rustup",
            ".cargo/bin",
            ".nvm/versions/node/v22/bin",
            ".pyenv/shims",
            ".local/share/uv/python",
            "go/bin",
            ".sdkman/candidates/java/current/bin",
            ".local/share/mise/shims",
        ]);
        let found = search(Some(&Tools::All(true)), &home, &|_| None).unwrap();
        let names: Vec<_> = found.iter().map(|f| f.name).collect();
        assert_eq!(names, ["rustup", "cargo", "nvm", "pyenv", "uv", "go", "sdkman", "mise"]);
        assert!(search(Some(&Tools::All(true)), &home.join("none"), &|_| None).unwrap().is_empty());
    }

    #[test]
    fn credentials_beside_a_toolchain_are_not_shown() {
        let (_dir, home) = home_with(&[".cargo/bin", ".cargo/registry"]);
        fs::write(home.join(".cargo/credentials.toml"), "token").unwrap();
        let cargo = search(Some(&Tools::All(true)), &home, &|_| None).unwrap().remove(0);
        assert_eq!(cargo.paths, [home.join(".cargo/bin"), home.join(".cargo/registry")]);
        assert_eq!(cargo.variables, [("CARGO_HOME", home.join(".cargo").into_os_string())]);
    }

    #[test]
    fn the_caller_s_choice_of_version_stays_first_in_the_search_path() {
        let (_dir, home) = home_with(&[".nvm/versions/node/v20/bin", ".nvm/versions/node/v22/bin", "bin"]);
        let v20 = home.join(".nvm/versions/node/v20/bin");
        let path = std::env::join_paths([home.join("bin"), v20.clone(), "/usr/bin".into()]).unwrap();
        let found = search(Some(&Tools::Named(vec!["nvm".into()])), &home, &|name| {
            (name == "PATH").then(|| path.clone())
        })
        .unwrap();
        let (mut grants, mut env) = (Vec::new(), vec![("PATH".into(), "/usr/bin".into())]);
        found[0].apply(&mut grants, &mut env);
        let inside = env.iter().find(|(name, _)| name == "PATH").unwrap().1.to_str().unwrap().to_owned();
        assert_eq!(inside, format!("{}:/usr/bin", v20.to_string_lossy()));
    }

    #[test]
    fn a_root_that_would_show_the_whole_home_is_not_taken() {
        let (_dir, home) = home_with(&["x"]);
        let found =
            search(Some(&Tools::All(true)), &home, &|n| (n == "RUSTUP_HOME").then(|| home.clone().into()));
        assert!(found.unwrap().is_empty());
    }

    #[test]
    fn a_named_toolchain_that_is_not_there_is_an_error() {
        let (_dir, home) = home_with(&[]);
        for name in ["go", "cobol"] {
            let error = search(Some(&Tools::Named(vec![name.into()])), &home, &|_| None).unwrap_err();
            assert!(error.is_usage() && error.to_string().contains(name), "{error}");
        }
    }
}
