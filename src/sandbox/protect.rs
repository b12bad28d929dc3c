//! Paths below a grant that the command does not get.
//!
//! A denied path that exists is covered by an empty file or directory without any permission, on a read-only mount:
//! it can't be read, replaced, renamed or removed. The cover lies in the run's own mount namespace, on the path
//! itself: nothing is made in the tree.
//!
//! A cover protects the directory entry that it lies on. If the command could rename a directory above it, it could
//! build another one at the old name. So each directory between the grant and a protected path is *pinned*: mounted
//! onto itself, since the kernel does not rename a mount point. The price is that a rename between a pinned directory
//! and its parent is a move between file systems (EXDEV), which `mv` and git handle.
//!
//! A name that does not exist has no entry to mount on. [`Guard`] names the directory and the name; the calls that
//! could make it are supervised.

use super::error::Error;
use super::spec::Access;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Symbolic links that are followed in one denied path.
const LINKS_AT_MOST: usize = 40;

/// What is done so that denied paths, and read-only grants below writable ones, hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// Paths that are mounted onto themselves, parents first.
    pub pins: Vec<PathBuf>,
    /// Paths that are covered.
    pub masks: Vec<Mask>,
    /// Names that must not come to be.
    pub guards: Vec<Guard>,
}

/// A path that is covered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mask {
    /// The path, with no link before its last component.
    pub path: PathBuf,
    /// Whether the cover is a directory.
    pub directory: bool,
}

/// A name that must not come to be in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The directory. It exists, and is pinned or a grant.
    pub directory: PathBuf,
    /// Its device and inode.
    pub id: (u64, u64),
    /// The name in it.
    pub name: OsString,
}

/// What a denied path turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// It is there.
    There { path: PathBuf, directory: bool },
    /// The first component that is missing: this name in this directory.
    Missing { directory: PathBuf, name: OsString },
    /// A component on the way is a file: nothing can be below it while it stays.
    Below { file: PathBuf },
}

impl Protection {
    /// What the paths in `deny` need, given the resolved grants. Relative paths are relative to the current directory.
    ///
    /// # Errors
    /// A denied path that can't be examined, that is a grant itself, or that has a grant below it.
    pub fn of(deny: &[PathBuf], grants: &[(PathBuf, Access)]) -> Result<Protection, Error> {
        let mut protection = Protection::default();
        for given in deny {
            let fail = |reason| Error::Deny { path: given.clone(), reason };
            let path = std::path::absolute(given).map_err(fail)?;
            for place in places(&path).map_err(fail)? {
                protection.add(given, place, grants)?;
            }
        }
        for (path, access) in grants {
            if *access == Access::ReadOnly {
                protection.pin_above(path, grants);
            }
        }
        protection.pins.sort_by_key(|pin| (pin.components().count(), pin.clone()));
        protection.pins.dedup();
        protection.masks.sort();
        protection.masks.dedup_by(|a, b| a.path == b.path);
        Ok(protection)
    }

    fn add(&mut self, given: &Path, place: Place, grants: &[(PathBuf, Access)]) -> Result<(), Error> {
        let conflict = |grant: &Path| Error::DenyGrant { path: given.into(), grant: grant.into() };
        match place {
            Place::There { path, directory } => {
                if let Some((grant, _)) = grants.iter().find(|(grant, _)| grant.starts_with(&path))
                    && enclosing(&path, grants).is_some()
                {
                    return Err(conflict(grant));
                }
                if let Some((grant, _)) = grants.iter().find(|(grant, _)| *grant == path) {
                    return Err(conflict(grant));
                }
                self.pin_above(&path, grants);
                if enclosing(&path, grants).is_some() || is_system(&path) {
                    self.masks.push(Mask { path, directory });
                }
            }
            Place::Missing { directory, name } => {
                let inside = directory.join(&name);
                if let Some((grant, Access::ReadWrite)) = enclosing(&inside, grants) {
                    let id = directory
                        .metadata()
                        .map(|m| (m.dev(), m.ino()))
                        .map_err(|reason| Error::Deny { path: given.into(), reason })?;
                    if directory != *grant {
                        self.pin_above(&directory, grants);
                        self.pins.push(directory.clone());
                    }
                    self.guards.push(Guard { directory, id, name });
                }
            }
            Place::Below { file } => {
                if let Some((_, Access::ReadWrite)) = enclosing(&file, grants) {
                    self.pin_above(&file, grants);
                    self.pins.push(file);
                }
            }
        }
        Ok(())
    }

    /// Pins each directory between the writable grant around `path` and `path`.
    fn pin_above(&mut self, path: &Path, grants: &[(PathBuf, Access)]) {
        let Some((grant, Access::ReadWrite)) = enclosing(path, grants) else { return };
        self.pins.extend(
            path.ancestors()
                .skip(1)
                .take_while(|above| *above != grant && above.starts_with(grant))
                .map(Path::to_path_buf),
        );
    }
}

/// The innermost grant that `path` lies strictly below.
fn enclosing<'a>(path: &Path, grants: &'a [(PathBuf, Access)]) -> Option<(&'a PathBuf, Access)> {
    grants
        .iter()
        .filter(|(grant, _)| path != grant && path.starts_with(grant))
        .max_by_key(|(grant, _)| grant.components().count())
        .map(|(grant, access)| (grant, *access))
}

fn is_system(path: &Path) -> bool {
    super::plan::SYSTEM_DIRS.iter().any(|dir| path.strip_prefix("/").is_ok_and(|path| path.starts_with(dir)))
}

/// What the absolute `path` is: itself if its last component is a link, and what it leads to.
pub fn places(path: &Path) -> std::io::Result<Vec<Place>> {
    let mut found = Vec::new();
    let mut path = path.to_path_buf();
    for _ in 0..LINKS_AT_MOST {
        let place = walk(&path)?;
        let link = match &place {
            Place::There { path, .. } => std::fs::read_link(path).ok().map(|target| (path.clone(), target)),
            _ => None,
        };
        found.push(place);
        let Some((from, target)) = link else { return Ok(found) };
        path = from.parent().unwrap_or(Path::new("/")).join(target);
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// Goes along `path`, following every link but a last one.
fn walk(path: &Path) -> std::io::Result<Place> {
    let mut at = PathBuf::from("/");
    let mut components = path.components().peekable();
    while let Some(component) = components.next() {
        let name = match component {
            Component::Normal(name) => name,
            Component::ParentDir => {
                at.pop();
                continue;
            }
            _ => continue,
        };
        let next = at.join(name);
        let metadata = match next.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Place::Missing { directory: at, name: name.into() });
            }
            Err(error) => return Err(error),
        };
        if components.peek().is_none() {
            return Ok(Place::There { path: next, directory: metadata.is_dir() });
        }
        at = if metadata.is_symlink() { next.canonicalize()? } else { next };
        if !at.is_dir() {
            return Ok(Place::Below { file: at });
        }
    }
    Ok(Place::There { path: at, directory: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Tree {
            let tree = Tree(tempfile::tempdir().unwrap());
            fs::create_dir_all(tree.at("project/.git/hooks")).unwrap();
            fs::write(tree.at("project/.env"), "secret").unwrap();
            tree
        }
        fn at(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(path)
        }
        fn protect(&self, deny: &[&str], grants: &[(&str, Access)]) -> Result<Protection, Error> {
            let deny: Vec<PathBuf> = deny.iter().map(|d| self.at(d)).collect();
            let grants: Vec<_> = grants.iter().map(|(g, a)| (self.at(g), *a)).collect();
            Protection::of(&deny, &grants)
        }
    }

    #[test]
    fn what_exists_is_covered_and_what_is_above_it_pinned() {
        let tree = Tree::new();
        let found =
            tree.protect(&["project/.env", "project/.git/hooks"], &[("project", Access::ReadWrite)]).unwrap();
        assert_eq!(found.pins, [tree.at("project/.git")]);
        assert_eq!(
            found.masks,
            [
                Mask { path: tree.at("project/.env"), directory: false },
                Mask { path: tree.at("project/.git/hooks"), directory: true },
            ]
        );
        assert!(found.guards.is_empty());
    }

    #[test]
    fn the_first_missing_name_is_guarded_where_it_could_be_made() {
        let tree = Tree::new();
        let deny = ["project/.claude/settings.json", "project/.git/new"];
        let found = tree.protect(&deny, &[("project", Access::ReadWrite)]).unwrap();
        let guarded: Vec<_> = found.guards.iter().map(|g| g.directory.join(&g.name)).collect();
        assert_eq!(guarded, [tree.at("project/.claude"), tree.at("project/.git/new")]);
        assert_eq!(found.pins, [tree.at("project/.git")]);
        assert_eq!(
            tree.protect(&deny, &[("project", Access::ReadOnly)]).unwrap(),
            Protection::default(),
            "nothing can be made in a read-only grant"
        );
    }

    #[test]
    fn a_link_is_covered_and_what_it_leads_to_as_well() {
        let tree = Tree::new();
        fs::create_dir(tree.at("project/conf")).unwrap();
        fs::write(tree.at("project/conf/env"), "secret").unwrap();
        fs::remove_file(tree.at("project/.env")).unwrap();
        std::os::unix::fs::symlink("conf/env", tree.at("project/.env")).unwrap();
        let found = tree.protect(&["project/.env"], &[("project", Access::ReadWrite)]).unwrap();
        let masked: Vec<_> = found.masks.iter().map(|m| m.path.clone()).collect();
        assert_eq!(masked, [tree.at("project/.env"), tree.at("project/conf/env")]);
        assert_eq!(found.pins, [tree.at("project/conf")]);
    }

    #[test]
    fn links_that_go_round_are_an_error_that_names_the_path() {
        let tree = Tree::new();
        std::os::unix::fs::symlink("b", tree.at("project/a")).unwrap();
        std::os::unix::fs::symlink("a", tree.at("project/b")).unwrap();
        let error = tree.protect(&["project/a"], &[("project", Access::ReadWrite)]).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("project/a"), "{error}");
    }

    #[test]
    fn the_git_file_of_a_work_tree_is_pinned_when_something_below_it_is_denied() {
        let tree = Tree::new();
        fs::remove_dir_all(tree.at("project/.git")).unwrap();
        fs::write(tree.at("project/.git"), "gitdir: elsewhere").unwrap();
        let found = tree.protect(&["project/.git/hooks"], &[("project", Access::ReadWrite)]).unwrap();
        assert_eq!((found.pins, found.masks), (vec![tree.at("project/.git")], vec![]));
    }

    #[test]
    fn a_read_only_grant_below_a_writable_one_can_t_be_moved_away() {
        let tree = Tree::new();
        let grants = [("project", Access::ReadWrite), ("project/.git/hooks", Access::ReadOnly)];
        assert_eq!(tree.protect(&[], &grants).unwrap().pins, [tree.at("project/.git")]);
    }

    #[test]
    fn a_denied_grant_is_an_error_and_what_is_not_granted_needs_nothing() {
        let tree = Tree::new();
        for deny in ["project", "project/.git"] {
            let grants = [("project", Access::ReadWrite), ("project/.git/hooks", Access::ReadOnly)];
            let error = tree.protect(&[deny], &grants).unwrap_err();
            assert!(error.is_usage() && error.to_string().contains(deny), "{error}");
        }
        let elsewhere = tree.protect(&["elsewhere/x"], &[("project", Access::ReadWrite)]).unwrap();
        assert_eq!(elsewhere, Protection::default());
    }
}
