//! What an observed run used, as a profile under which it runs again.

use super::notify::Used;
use super::profile::Profile;
use super::seccomp::Use;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files in one directory that are granted one by one; more are granted as the directory.
const ONE_BY_ONE: usize = 8;

/// Directories that are never granted as a whole because several files in them were read.
const NEVER_WHOLE: [&str; 12] = [
    "/",
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
    /// Whether more was used than was looked into.
    pub incomplete: bool,
}

impl Observed {
    /// The profile on top of `base` for what `used` says. `home` is the operator's.
    pub fn new(used: &Used, base: Profile, home: Option<&Path>) -> Observed {
        let (secrets, plain): (Vec<_>, Vec<_>) =
            used.paths.iter().partition(|(path, _)| home.is_some_and(|home| is_secret(path, home)));
        let (examined, plain): (Vec<_>, Vec<_>) =
            plain.into_iter().partition(|(path, kind)| **kind == Use::Look && path.is_dir());
        let mut grants: BTreeMap<PathBuf, bool> = BTreeMap::new();
        for (path, kind) in plain {
            let write = *kind >= Use::Write;
            let place = if *kind >= Use::Make { path.parent().unwrap_or(path) } else { path };
            let writable = grants.entry(grantable(place)).or_insert(write);
            *writable |= write;
        }
        let grants = whole_directories(grants, home);
        let mut profile = base;
        for (path, write) in without_covered(&grants) {
            if write { profile.rw.push(path) } else { profile.ro.push(path) }
        }
        let secrets = secrets.into_iter().map(|(path, _)| path.clone()).collect();
        // What leads to a grant, or lies in one, is there inside.
        let shown =
            |path: &Path| grants.keys().any(|grant| grant.starts_with(path) || path.starts_with(grant));
        let examined =
            examined.into_iter().map(|(path, _)| path.clone()).filter(|path| !shown(path)).collect();
        Observed { profile, secrets, examined, incomplete: used.incomplete }
    }

    /// The profile as TOML, with what it does not grant as comments.
    ///
    /// # Errors
    /// A path that is no text.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        let mut text = String::from(
            "# What an observed run used. Read it before you use it: a command can ask for anything.\n",
        );
        for path in &self.secrets {
            text.push_str(&format!("# used and not granted, a secret: {}\n", crate::sanitise::path(path)));
        }
        for path in &self.examined {
            text.push_str(&format!(
                "# examined and not granted, a directory: {}\n",
                crate::sanitise::path(path)
            ));
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

/// `path`, or the first link on the way to it: a link on the way exists inside only if it is granted itself. What does not
/// exist (any more) stands for the directory that it would be in.
fn grantable(path: &Path) -> PathBuf {
    let mut ancestors: Vec<&Path> = path.ancestors().collect();
    ancestors.reverse();
    let mut there = Path::new("/");
    for step in ancestors {
        match step.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => return step.into(),
            Ok(_) => there = step,
            Err(_) => break,
        }
    }
    there.into()
}

/// Grants directories of which many files are used.
fn whole_directories(grants: BTreeMap<PathBuf, bool>, home: Option<&Path>) -> BTreeMap<PathBuf, bool> {
    let mut in_directory: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for (path, _) in grants.iter().filter(|(path, write)| !**write && !path.is_dir()) {
        if let Some(parent) = path.parent() {
            *in_directory.entry(parent.into()).or_default() += 1;
        }
    }
    let many = |path: &Path| {
        let parent = path.parent()?;
        let whole = in_directory.get(parent).is_some_and(|n| *n > ONE_BY_ONE)
            && !NEVER_WHOLE.iter().any(|kept| Path::new(kept) == parent)
            && home != Some(parent);
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
        Observed::new(&Used { paths, incomplete: false }, Profile::default(), Some(home))
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
    fn many_files_become_their_directory_and_links_stand_for_what_is_behind_them() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("lib/sub")).unwrap();
        std::os::unix::fs::symlink("lib", base.join("lib64")).unwrap();
        let files: Vec<PathBuf> = (0..=ONE_BY_ONE).map(|n| base.join(format!("lib/{n}"))).collect();
        for file in &files {
            std::fs::write(file, "").unwrap();
        }
        let uses: Vec<_> = files.iter().map(|f| (f.as_path(), Use::Read)).collect();
        assert_eq!(observed(&uses, Path::new("/home/u")).profile.ro, [base.join("lib")]);
        let through = base.join("lib64/1");
        assert_eq!(observed(&[(&through, Use::Read)], Path::new("/home/u")).profile.ro, [base.join("lib64")]);
    }
}
