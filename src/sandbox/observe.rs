//! What an observed run used, as a profile under which it runs again.

use super::notify::Used;
use super::profile::Profile;
use super::seccomp::Use;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files in one directory that are granted one by one; more are granted as the directory.
const ONE_BY_ONE: usize = 8;

/// Directories that are never granted as a whole. The home, and what it lies in, are not either.
const NEVER_WHOLE: [&str; 14] = [
    "/",
    "/etc",
    "/usr",
    "/home",
    "/root",
    "/var",
    "/opt",
    "/srv",
    "/mnt",
    "/media",
    "/tmp",
    "/run",
    "/var/lib",
    "/usr/local",
];

/// Names that hold secrets, directly below a home directory. What is used there is named, and not granted.
const SECRET: [&str; 13] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".config/gcloud",
    ".config/gh",
    ".password-store",
];

/// A profile from what was used.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The grants.
    pub profile: Profile,
    /// What was used and is left to the operator: secrets.
    pub secrets: Vec<PathBuf>,
    /// Directories that were examined, and neither listed nor used otherwise: granting one would show all that is in it.
    pub examined: Vec<PathBuf>,
    /// What was used and can't be granted as narrowly: whole places of many, names that are no text, what is gone.
    pub left_out: Vec<PathBuf>,
    /// Whether more was used than was looked into.
    pub incomplete: bool,
}

/// What becomes of one use.
enum Grant {
    /// This is granted, for writing or not.
    Of(PathBuf, bool),
    /// This is granted for writing where it is there.
    Try(PathBuf),
    /// Nothing: too much would be.
    Nothing,
}

impl Observed {
    /// The profile on top of `base` for what `used` says. `home` is the operator's.
    pub fn new(used: &Used, base: Profile, home: Option<&Path>) -> Observed {
        let homes: Vec<PathBuf> = home
            .iter()
            .flat_map(|home| [Some(home.to_path_buf()), home.canonicalize().ok()])
            .flatten()
            .collect();
        let (secrets, plain): (Vec<_>, Vec<_>) =
            used.paths.iter().partition(|(path, _)| homes.iter().any(|home| is_secret(path, home)));
        let (examined, plain): (Vec<_>, Vec<_>) =
            plain.into_iter().partition(|(path, kind)| **kind == Use::Look && path.is_dir());
        let mut grants: BTreeMap<PathBuf, bool> = BTreeMap::new();
        let mut tries = Vec::new();
        let mut left_out = Vec::new();
        for (path, kind) in plain {
            match grant_for(path, *kind, &homes) {
                Grant::Of(path, write) => {
                    let writable = grants.entry(path).or_insert(write);
                    *writable |= write;
                }
                Grant::Try(path) => tries.push(path),
                Grant::Nothing => left_out.push(path.clone()),
            }
        }
        let grants = whole_directories(grants, &homes);
        let covers = |path: &Path, write: bool| {
            path.ancestors().any(|above| grants.get(above).is_some_and(|writable| *writable || !write))
        };
        left_out.retain(|path| !covers(path, true));
        tries.retain(|path| !covers(path, true));
        let mut profile = base;
        for (path, write) in without_covered(&grants) {
            if write { profile.rw.push(path) } else { profile.ro.push(path) }
        }
        profile.rw_try.extend(tries);
        let secret_link = |path: &Path| homes.iter().any(|home| is_secret(path, home));
        let links = used.links.iter().filter(|link| {
            link.to_str().is_some() && link.is_symlink() && !covers(link, false) && !secret_link(link)
        });
        profile.links.extend(links.cloned());
        let secrets = secrets.into_iter().map(|(path, _)| path.clone()).collect();
        // What leads to a grant, or lies in one, is there inside.
        let shown =
            |path: &Path| grants.keys().any(|grant| grant.starts_with(path) || path.starts_with(grant));
        let examined =
            examined.into_iter().map(|(path, _)| path.clone()).filter(|path| !shown(path)).collect();
        Observed { profile, secrets, examined, left_out, incomplete: used.incomplete }
    }

    /// The profile as TOML, with what it does not grant as comments.
    ///
    /// # Errors
    /// None that a grant of this profile's own can cause; a setting of the base that is no text.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let mut text = String::from(
            "# What an observed run used. Read it before you use it: a command can ask for anything.\n",
        );
        for (what, paths) in [
            ("used and not granted, a secret", &self.secrets),
            ("examined and not granted, a directory", &self.examined),
            ("used and not granted, since that would grant more", &self.left_out),
        ] {
            for path in paths {
                text.push_str(&format!("# {what}: {}\n", crate::sanitise::path(path)));
            }
        }
        if self.incomplete {
            text.push_str("# incomplete: the run used more paths than are looked into\n");
        }
        text.push_str(&toml::to_string(&self.profile)?);
        Ok(text)
    }
}

fn is_secret(path: &Path, home: &Path) -> bool {
    path.strip_prefix(home).is_ok_and(|below| SECRET.iter().any(|name| below.starts_with(name)))
}

/// Whether granting the directory `path` as a whole would show what is many people's, or the operator's secrets.
fn is_too_much(path: &Path, homes: &[PathBuf]) -> bool {
    NEVER_WHOLE.iter().any(|kept| Path::new(kept) == path)
        || homes.iter().any(|home| home.starts_with(path))
        || ["/proc", "/sys", "/dev"].iter().any(|kernel_s| path.starts_with(kernel_s))
}

/// The narrowest grant under which `path` can be used again.
fn grant_for(path: &Path, kind: Use, homes: &[PathBuf]) -> Grant {
    if path.to_str().is_none() {
        return Grant::Nothing;
    }
    let there = path.symlink_metadata();
    if kind >= Use::Make {
        // A name is made, moved and removed by a right to its directory.
        let place = path.parent().unwrap_or(path);
        if !is_too_much(place, homes) && place.is_dir() {
            return Grant::Of(place.into(), true);
        }
        // Else the right to what was made has to do.
        let whole = is_too_much(path, homes);
        return if there.is_ok_and(|m| !m.is_symlink()) && !whole {
            Grant::Try(path.into())
        } else {
            Grant::Nothing
        };
    }
    match there {
        Ok(metadata) if metadata.is_dir() && is_too_much(path, homes) => Grant::Nothing,
        Ok(_) => Grant::Of(path.into(), kind == Use::Write),
        Err(_) => Grant::Nothing,
    }
}

/// Grants directories of which many files are used.
fn whole_directories(grants: BTreeMap<PathBuf, bool>, homes: &[PathBuf]) -> BTreeMap<PathBuf, bool> {
    let mut in_directory: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for (path, _) in grants.iter().filter(|(path, write)| !**write && !path.is_dir()) {
        if let Some(parent) = path.parent() {
            *in_directory.entry(parent.into()).or_default() += 1;
        }
    }
    let many = |path: &Path| {
        let parent = path.parent()?;
        let whole = in_directory.get(parent).is_some_and(|n| *n > ONE_BY_ONE) && !is_too_much(parent, homes);
        whole.then(|| parent.to_path_buf())
    };
    let mut wider = BTreeMap::new();
    for (path, write) in grants {
        let place = if write { None } else { many(&path) };
        let writable = wider.entry(place.unwrap_or(path)).or_insert(write);
        *writable |= write;
    }
    wider
}

/// Leaves out what a grant above gives already.
fn without_covered(grants: &BTreeMap<PathBuf, bool>) -> Vec<(PathBuf, bool)> {
    let covered = |path: &Path, write: bool| {
        path.ancestors().skip(1).any(|above| grants.get(above).is_some_and(|writable| *writable || !write))
    };
    grants.iter().filter(|(path, write)| !covered(path, **write)).map(|(p, w)| (p.clone(), *w)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(paths: &[(&Path, Use)], home: &Path) -> Observed {
        let paths = paths.iter().map(|(path, kind)| (path.to_path_buf(), *kind)).collect();
        let used = Used { paths, ..Used::default() };
        Observed::new(&used, Profile::default(), Some(home))
    }

    #[test]
    fn names_are_granted_by_their_directory_and_secrets_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        for name in ["home/.ssh", "work", "data"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["home/.ssh/id", "work/old", "data/a"] {
            std::fs::write(at(name), "").unwrap();
        }
        let seen = observed(
            &[
                (&at("home/.ssh/id"), Use::Read),
                (&at("work/new"), Use::Make),
                (&at("work/old"), Use::Read),
                (&at("data/a"), Use::Read),
                (&at("data"), Use::Look),
                (&at("home"), Use::Look),
            ],
            &at("home"),
        );
        assert_eq!(
            (seen.profile.rw.clone(), seen.profile.ro.clone()),
            (vec![at("work")], vec![at("data/a")])
        );
        assert_eq!(
            (seen.secrets.clone(), seen.examined.clone()),
            (vec![at("home/.ssh/id")], vec![at("home")])
        );
        let read: Profile = toml::from_str(&seen.to_toml().unwrap()).unwrap();
        assert_eq!(read, seen.profile);
    }

    #[test]
    fn many_files_become_their_directory() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("lib/sub")).unwrap();
        let files: Vec<PathBuf> = (0..=ONE_BY_ONE).map(|n| base.join(format!("lib/{n}"))).collect();
        for file in &files {
            std::fs::write(file, "").unwrap();
        }
        let uses: Vec<_> = files.iter().map(|f| (f.as_path(), Use::Read)).collect();
        assert_eq!(observed(&uses, Path::new("/home/u")).profile.ro, [base.join("lib")]);
        let kept = observed(&uses, &base.join("lib")).profile.ro;
        assert_eq!(kept, files, "a home is not granted as a whole");
    }

    #[test]
    fn a_home_is_granted_as_a_whole_for_nothing() {
        use std::os::unix::ffi::OsStrExt;
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        std::fs::write(home.join(".history"), "").unwrap();
        let odd = home.join(std::ffi::OsStr::from_bytes(b"odd\xff"));
        std::fs::write(&odd, "").unwrap();
        let seen = observed(
            &[
                (&home.join(".history"), Use::Make),
                (&home.join("gone"), Use::Make),
                (&home, Use::Read),
                (Path::new("/made"), Use::Make),
                (&odd, Use::Read),
            ],
            &home,
        );
        assert_eq!((seen.profile.rw.len(), seen.profile.ro.len()), (0, 0), "{seen:?}");
        assert_eq!(seen.profile.rw_try, [home.join(".history")]);
        assert_eq!(seen.left_out.len(), 4, "{seen:?}");
        let again: Profile = toml::from_str(&seen.to_toml().unwrap()).unwrap();
        assert_eq!(again, seen.profile);
    }
}
