//! From a name or a file to one profile: look-up, reading, `extends`.

use super::Profile;
use super::builtin::BUILTIN;
use std::io::Read;
use std::path::{Path, PathBuf};

/// How long a chain of `extends` may be.
pub const DEPTH_AT_MOST: usize = 8;

/// How many profiles one profile may be made of, counted each time that one is named.
const PROFILES_AT_MOST: usize = 64;

/// Bytes of a profile file.
pub const FILE_AT_MOST: u64 = 64 << 10;

/// A profile that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No profile has this name.
    #[error("profile {name:?} does not exist; known are {}; a file needs a `/` or `.toml` in its name", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Names that exist.
        known: Vec<String>,
    },
    /// The file can't be read.
    #[error("reading profile {}: {reason}", crate::sanitise::path(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        reason: std::io::Error,
    },
    /// The file is too large, or no regular file.
    #[error(
        "reading profile {}: it must be a regular file of at most {FILE_AT_MOST} bytes",
        crate::sanitise::path(path)
    )]
    NoProfile {
        /// The file.
        path: PathBuf,
    },
    /// The file says something that no profile can say.
    #[error("{}:{line}: {message}", crate::sanitise::path(path))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// A profile builds on itself.
    #[error("profile {name:?} builds on itself: {}; remove one `extends`", chain.join(" → "))]
    Cycle {
        /// The profile.
        name: String,
        /// The profiles on the way, the first one again at the end.
        chain: Vec<String>,
    },
    /// The chain of `extends` is too long.
    #[error("profile {name:?}: `extends` is more than {DEPTH_AT_MOST} deep: {}", chain.join(" → "))]
    Deep {
        /// The profile.
        name: String,
        /// The profiles on the way.
        chain: Vec<String>,
    },
    /// The profile is made of too many others.
    #[error("profile {name:?} is made of more than {PROFILES_AT_MOST} profiles")]
    Many {
        /// The profile.
        name: String,
    },
}

/// A profile with all that it builds on.
#[derive(Debug, Clone, Default)]
pub struct LoadedProfile {
    /// Its name, or its file.
    pub name: String,
    /// What it says, parents included; all paths absolute.
    pub settings: Profile,
}

/// A user's or the machine's profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub path: PathBuf,
}

/// The profile called `name`: one that comes with jess, a file if the name has a `/` or ends in `.toml`, or
/// `NAME.toml` in the user's or the machine's directory of profiles.
///
/// # Errors
/// [`Error`]: no such profile, an unreadable or invalid file, `extends` that go round, too deep or too wide.
pub fn load(name: &str) -> Result<LoadedProfile, Error> {
    Loader { places: places(), home: crate::sandbox::env::home() }.load(name, &mut Vec::new(), &mut 0)
}

/// Directories with profiles: the user's, then the machine's.
fn places() -> Vec<PathBuf> {
    let user = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| crate::sandbox::env::home().map(|home| home.join(".config")));
    user.into_iter()
        .map(|dir| dir.join("jess/profiles"))
        .chain([PathBuf::from("/etc/jess/profiles")])
        .collect()
}

struct Loader {
    places: Vec<PathBuf>,
    home: Option<PathBuf>,
}

impl Loader {
    /// `chain`: the profiles that lead here, by what identifies them. `count`: how many were read in all.
    fn load(&self, name: &str, chain: &mut Vec<String>, count: &mut usize) -> Result<LoadedProfile, Error> {
        let (identity, mut profile, base) = match BUILTIN.iter().find(|b| b.name == name) {
            Some(builtin) => (name.to_owned(), parse(Path::new(name), builtin.text)?, PathBuf::from("/")),
            None => {
                let path = self.find(name, chain.last())?;
                let base = path.parent().unwrap_or(Path::new("/")).to_path_buf();
                (path.to_string_lossy().into_owned(), parse(&path, &read(&path)?)?, base)
            }
        };
        *count += 1;
        if chain.contains(&identity) {
            let chain = chain.iter().skip_while(|n| **n != identity).chain([&identity]).cloned().collect();
            return Err(Error::Cycle { name: name.into(), chain });
        }
        chain.push(identity);
        if chain.len() > DEPTH_AT_MOST {
            return Err(Error::Deep { name: name.into(), chain: chain.clone() });
        }
        if *count > PROFILES_AT_MOST {
            return Err(Error::Many { name: name.into() });
        }
        profile.place_paths(&base, self.home.as_deref());
        let mut below = Profile::default();
        for parent in std::mem::take(&mut profile.extends).0 {
            below = self.load(&parent, chain, count)?.settings.over(below);
        }
        chain.pop();
        Ok(LoadedProfile { name: name.to_owned(), settings: profile.over(below) })
    }

    /// The file of the profile `name`, which the profile `by` names (the command line, if none).
    fn find(&self, name: &str, by: Option<&String>) -> Result<PathBuf, Error> {
        if name.contains('/') || name.ends_with(".toml") {
            let base = by.map(Path::new).and_then(Path::parent).unwrap_or(Path::new(""));
            let path = base.join(name);
            return path.canonicalize().map_err(|reason| Error::Read { path, reason });
        }
        let file = format!("{name}.toml");
        self.places
            .iter()
            .find_map(|place| place.join(&file).canonicalize().ok())
            .ok_or_else(|| Error::Unknown { name: name.into(), known: self.known() })
    }

    fn known(&self) -> Vec<String> {
        let own = self.places.iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten().flatten();
        let own =
            own.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned));
        BUILTIN.iter().map(|b| b.name.to_owned()).chain(own).take(PROFILES_AT_MOST).collect()
    }
}

fn read(path: &Path) -> Result<String, Error> {
    let fail = |reason| Error::Read { path: path.into(), reason };
    let no_profile = || Error::NoProfile { path: path.into() };
    // A pipe would block, a device might act.
    if !path.metadata().map_err(fail)?.is_file() {
        return Err(no_profile());
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(fail)?;
    file.take(FILE_AT_MOST + 1).read_to_string(&mut text).map_err(fail)?;
    if text.len() as u64 > FILE_AT_MOST { Err(no_profile()) } else { Ok(text) }
}

fn parse(path: &Path, text: &str) -> Result<Profile, Error> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = text.bytes().take(at).filter(|b| *b == b'\n').count() + 1;
        let message = error.message().replace('\n', "; ");
        Error::Invalid { path: path.into(), line, message }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Profiles(tempfile::TempDir);

    impl Profiles {
        fn of(files: &[(&str, &str)]) -> Profiles {
            let dir = tempfile::tempdir().unwrap();
            for (name, text) in files {
                std::fs::write(dir.path().join(format!("{name}.toml")), text).unwrap();
            }
            Profiles(dir)
        }
        fn load(&self, name: &str) -> Result<Profile, String> {
            Loader { places: vec![self.0.path().into()], home: None }
                .load(name, &mut Vec::new(), &mut 0)
                .map(|loaded| loaded.settings)
                .map_err(|e| e.to_string())
        }
    }

    #[test]
    fn every_profile_that_comes_with_jess_can_be_loaded() {
        for builtin in &BUILTIN {
            Profiles::of(&[]).load(builtin.name).unwrap();
        }
    }

    #[test]
    fn profiles_build_on_each_other_in_order() {
        let profiles = Profiles::of(&[
            ("a", "env = ['A=a']\ntimeout = 1"),
            ("b", "env = ['B=b']\ntimeout = 2"),
            ("c", "extends = ['a', 'b', 'debug']\nenv = ['C=c']"),
        ]);
        let c = profiles.load("c").unwrap();
        assert_eq!(c.env, ["A=a", "B=b", "C=c"]);
        assert_eq!((c.timeout.map(|t| t.0.as_secs()), c.ptrace), (Some(2), Some(true)));
    }

    #[test]
    fn an_unknown_key_is_named_with_file_and_line() {
        let profiles = Profiles::of(&[
            ("bad", "# first\nro = ['/x']\nreadwrite = ['/y']\n"),
            ("by", "extends = 'bad'"),
            ("limit", "[limits]\n\nmemroy = 3"),
            ("value", "\ntimeout = 'soon'"),
        ]);
        for (name, place, key) in [
            ("bad", "bad.toml:3: ", "readwrite"),
            ("by", "bad.toml:3: ", "readwrite"),
            ("limit", "limit.toml:3: ", "memroy"),
            ("value", "value.toml:2: ", "seconds"),
        ] {
            let error = profiles.load(name).unwrap_err();
            assert!(error.contains(place) && error.contains(key), "{error}");
        }
    }

    #[test]
    fn profiles_that_go_round_are_an_error_that_shows_the_way() {
        let profiles = Profiles::of(&[
            ("a", "extends = 'b'"),
            ("b", "extends = './a.toml'"),
            ("self", "extends = 'self'"),
        ]);
        let error = profiles.load("a").unwrap_err();
        assert!(error.contains("builds on itself") && error.matches("a.toml").count() >= 2, "{error}");
        assert!(profiles.load("self").unwrap_err().contains("builds on itself"));
    }

    #[test]
    fn depth_and_number_are_bounded() {
        let chain: Vec<(String, String)> =
            (0..=DEPTH_AT_MOST).map(|n| (format!("p{n}"), format!("extends = 'p{}'", n + 1))).collect();
        let mut files: Vec<(&str, &str)> = chain.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
        let last = format!("p{}", DEPTH_AT_MOST + 1);
        files.push((&last, ""));
        let wide = "extends = ['w1', 'w1', 'w1', 'w1', 'w1']";
        files.extend([("w0", wide), ("w1", "extends = ['w2', 'w2', 'w2', 'w2', 'w2']"), ("w2", wide3())]);
        let profiles = Profiles::of(&files);
        assert!(profiles.load("p0").unwrap_err().contains("deep"));
        assert!(profiles.load("p2").is_ok(), "one at the bound works");
        assert!(profiles.load("w0").unwrap_err().contains("made of more than"));
    }

    fn wide3() -> &'static str {
        "extends = ['full', 'full', 'full', 'full']"
    }

    #[test]
    fn an_unknown_name_lists_what_there_is() {
        let error = Profiles::of(&[("mine", "")]).load("their").unwrap_err();
        assert!(error.contains("their") && error.contains("strict") && error.contains("mine"), "{error}");
    }

    #[test]
    fn what_is_no_ordinary_small_file_is_refused() {
        let profiles = Profiles::of(&[("large", &"#".repeat(FILE_AT_MOST as usize + 1))]);
        assert!(profiles.load("large").unwrap_err().contains("at most"));
        assert!(profiles.load("/dev/zero").unwrap_err().contains("regular file"));
    }
}
