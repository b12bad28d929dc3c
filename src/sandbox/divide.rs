//! Denied paths below a grant, and read-only ones below a writable one, in tier `landlock`.
//!
//! Rights of Landlock are by hierarchy and add up, so what is given for a directory can't be taken away below it. A grant
//! with a denied path below it is therefore *divided*: the directories from the grant down to the denied name get no right
//! of their own, and each other entry in them gets the grant's. What is made later directly in a divided directory has no
//! right either; the supervisor opens, makes, renames and removes it for the command (`notify::divided`), and it can't be
//! executed, since that needs the right to read it by path. Where it leaves
//! a call to the kernel instead, no right leads to the denied path: nothing depends on memory that was read twice.
//!
//! Everything here is by device and inode, as Landlock's own rules are. A divided directory can't be renamed or removed,
//! so the names in it stay what they were at the start.

use super::error::Error;
use super::plan::Rights;
use super::protect::{Place, places};
use rustix::fs::{AtFlags, CWD, FileType, Stat};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Entries of one divided directory that get rights of their own. What the rest is used for goes through the supervisor.
const ENTRIES_MAX: usize = 4096;

/// A file, whatever it is called.
pub type Id = (u64, u64);

/// The identity in a file's status.
pub fn id_of(stat: &Stat) -> Id {
    (stat.st_dev, stat.st_ino)
}

/// A rule for exactly this file, if its name still leads to it without following a link.
#[derive(Debug, Clone)]
pub struct Entry {
    pub path: PathBuf,
    pub id: Id,
    pub rights: Rights,
}

/// How the rights of a run are divided around what is denied.
#[derive(Debug, Clone, Default)]
pub struct Division {
    /// Rules in place of those of the plan.
    pub rules: Vec<(PathBuf, Rights)>,
    /// Rules for entries of divided directories.
    pub entries: Vec<Entry>,
    /// Divided directories, with what the command may do to entries in them.
    pub divided: HashMap<Id, Rights>,
    /// Names in divided directories that stay what they are, by the directory. True: denied.
    pub fixed: HashMap<Id, Vec<(OsString, bool)>>,
    /// Denied files and directories that exist.
    pub denied: HashSet<Id>,
    /// Files and directories with a rule, and what it gives.
    pub ruled: HashMap<Id, Rights>,
    /// Read-only grants below writable ones: what is above them says nothing.
    pub closed: HashSet<Id>,
    /// The uppermost divided directories.
    pub roots: Vec<PathBuf>,
}

/// A path around which rights are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// It must not be used.
    Denied,
    /// It must stay where it is.
    Kept,
    /// It has fewer rights than what is around it.
    ReadOnly,
}

impl Division {
    /// The rights in `rules` without the paths in `deny`, and without writing to the grants in `read_only`. `None`: there is
    /// nothing to take away.
    ///
    /// # Errors
    /// A denied path that can't be examined, or that belongs to processes or devices.
    pub fn of(
        deny: &[PathBuf],
        read_only: &[PathBuf],
        rules: &[(PathBuf, Rights)],
    ) -> Result<Option<Division>, Error> {
        let mut around: BTreeMap<PathBuf, Why> = BTreeMap::new();
        for given in deny {
            let fail = |reason| Error::Deny { path: given.clone(), reason };
            for place in places(&std::path::absolute(given).map_err(fail)?).map_err(fail)? {
                let (path, why) = match place {
                    Place::There { path, .. } => (path, Why::Denied),
                    Place::Missing { directory, name } => (directory.join(name), Why::Denied),
                    Place::Below { file } => (file, Why::Kept),
                };
                if ["/proc", "/dev"].iter().any(|kernel_s| path.starts_with(kernel_s)) {
                    let what = format!("denying {}", crate::sanitise::path(&path));
                    return Err(Error::NeedsFull { what });
                }
                let strictest = around.entry(path).or_insert(why);
                *strictest = (*strictest).min(why);
            }
        }
        for path in read_only {
            let writable = |(above, rights): &(PathBuf, Rights)| {
                *rights == Rights::Write && above != path && path.starts_with(above)
            };
            if rules.iter().any(writable) {
                around.entry(path.clone()).or_insert(Why::ReadOnly);
            }
        }
        if around.is_empty() {
            return Ok(None);
        }
        let division =
            Division::around(&around, rules).map_err(|(path, reason)| Error::Deny { path, reason })?;
        Ok((!division.divided.is_empty()).then_some(division))
    }

    fn around(
        around: &BTreeMap<PathBuf, Why>,
        rules: &[(PathBuf, Rights)],
    ) -> Result<Division, (PathBuf, std::io::Error)> {
        let is_given = |rights: Rights| matches!(rights, Rights::Read | Rights::Write);
        let mut divided: BTreeMap<PathBuf, Rights> = BTreeMap::new();
        for (path, (above, rights)) in
            around.keys().flat_map(|path| rules.iter().map(move |rule| (path, rule)))
        {
            if !is_given(*rights) || path == above || !path.starts_with(above) {
                continue;
            }
            for directory in path.ancestors().skip(1).take_while(|directory| directory.starts_with(above)) {
                let widest = divided.entry(directory.to_path_buf()).or_insert(*rights);
                if *rights == Rights::Write {
                    *widest = Rights::Write;
                }
            }
        }
        let mut division = Division::default();
        for (path, why) in around.iter().filter(|(_, why)| **why == Why::Denied) {
            debug_assert_eq!(*why, Why::Denied);
            if let Some(stat) = stat(path) {
                division.denied.insert(id_of(&stat));
            }
        }
        let is_denied =
            |path: &Path| around.iter().any(|(at, why)| *why == Why::Denied && path.starts_with(at));
        for (path, rights) in rules {
            if divided.contains_key(path) || (is_given(*rights) && is_denied(path)) {
                continue;
            }
            division.rules.push((path.clone(), *rights));
            if let (true, Some(stat)) = (is_given(*rights), rustix::fs::stat(path).ok()) {
                let given = division.ruled.entry(id_of(&stat)).or_insert(*rights);
                if *rights == Rights::Write {
                    *given = Rights::Write;
                }
                if around.get(path) == Some(&Why::ReadOnly) {
                    division.closed.insert(id_of(&stat));
                }
            }
        }
        for (directory, rights) in &divided {
            let own = stat(directory)
                .ok_or_else(|| (directory.clone(), std::io::Error::from(std::io::ErrorKind::NotFound)))?;
            division.divided.insert(id_of(&own), *rights);
            if directory.parent().is_none_or(|above| !divided.contains_key(above)) {
                division.roots.push(directory.clone());
            }
            let below = |path: &Path| path.parent() == Some(directory);
            let names = around.iter().map(|(path, why)| (path, *why == Why::Denied));
            let names = names.chain(divided.keys().map(|path| (path, false))).filter(|(path, _)| below(path));
            let fixed = names.filter_map(|(path, denied)| Some((path.file_name()?.to_owned(), denied)));
            division.fixed.entry(id_of(&own)).or_default().extend(fixed);
            division.give_entries(directory, *rights, around, &divided);
        }
        Ok(division)
    }

    /// Gives each entry of `directory` that is not divided, denied, or read-only, what its grant gives.
    fn give_entries(
        &mut self,
        directory: &Path,
        rights: Rights,
        around: &BTreeMap<PathBuf, Why>,
        divided: &BTreeMap<PathBuf, Rights>,
    ) {
        // What can't be listed can't be given.
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        for entry in entries.take(ENTRIES_MAX) {
            let path = entry.path();
            let special = matches!(around.get(&path), Some(Why::Denied | Why::ReadOnly));
            if special || divided.contains_key(&path) {
                continue;
            }
            let Some(stat) = stat(&path) else { continue };
            let id = id_of(&stat);
            // Another name of a denied file would give the right to the denied one, too.
            let link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
            if link || self.denied.contains(&id) {
                continue;
            }
            let given = self.ruled.entry(id).or_insert(rights);
            if rights == Rights::Write {
                *given = Rights::Write;
            }
            self.entries.push(Entry { path, id, rights });
        }
    }

    /// Whether `path` may be in a divided directory, or below one.
    pub fn is_near(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Whether `name` in `directory` stays what it is, and whether it is denied. Names that differ in case alone are one
    /// where a file system says so, so they count as one.
    pub fn fixed(&self, directory: Id, name: &[u8]) -> Option<bool> {
        use std::os::unix::ffi::OsStrExt;
        let fixed = self.fixed.get(&directory)?.iter();
        let mut same = fixed.filter(|(fixed, _)| fixed.as_bytes().eq_ignore_ascii_case(name));
        let first = same.next()?.1;
        Some(same.fold(first, |denied, (_, also)| denied | also))
    }
}

fn stat(path: &Path) -> Option<Stat> {
    rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Tree {
            let tree = Tree(tempfile::tempdir().unwrap());
            fs::create_dir_all(tree.at("p/.git/hooks")).unwrap();
            fs::create_dir_all(tree.at("p/src")).unwrap();
            fs::write(tree.at("p/.env"), "secret").unwrap();
            std::os::unix::fs::symlink("/etc", tree.at("p/link")).unwrap();
            tree
        }
        fn at(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(path)
        }
        fn id(&self, path: &str) -> Id {
            id_of(&stat(&self.at(path)).unwrap())
        }
        fn without(&self, deny: &[&str], rules: &[(&str, Rights)]) -> Option<Division> {
            let deny: Vec<PathBuf> = deny.iter().map(|path| self.at(path)).collect();
            let rules: Vec<_> = rules.iter().map(|(path, rights)| (self.at(path), *rights)).collect();
            let read_only: Vec<_> =
                rules.iter().filter(|(_, r)| *r == Rights::Read).map(|(path, _)| path.clone()).collect();
            Division::of(&deny, &read_only, &rules).unwrap()
        }
    }

    #[test]
    fn directories_above_a_denied_path_have_no_right_and_all_else_in_them_has() {
        let tree = Tree::new();
        let division =
            tree.without(&["p/.env", "p/.git/hooks", "p/.mcp.json"], &[("p", Rights::Write)]).unwrap();
        assert!(division.rules.is_empty(), "{division:?}");
        let given: Vec<_> = division.entries.iter().map(|entry| entry.path.clone()).collect();
        assert_eq!(given, [tree.at("p/src")], "no link, and nothing that is denied or divided");
        assert_eq!(division.roots, [tree.at("p")]);
        for (directory, name, denied) in [
            ("p", ".env", Some(true)),
            ("p", ".ENV", Some(true)),
            ("p", ".mcp.json", Some(true)),
            ("p", ".git", Some(false)),
            ("p/.git", "hooks", Some(true)),
            ("p", "src", None),
        ] {
            assert_eq!(division.fixed(tree.id(directory), name.as_bytes()), denied, "{name}");
        }
        assert!(division.denied.contains(&tree.id("p/.git/hooks")));
    }

    #[test]
    fn what_is_not_granted_divides_nothing() {
        let tree = Tree::new();
        assert!(tree.without(&["p/.env"], &[("p/src", Rights::Write)]).is_none());
        assert!(tree.without(&[], &[("p", Rights::Write)]).is_none());
    }

    #[test]
    fn a_read_only_grant_below_a_writable_one_keeps_its_own_right_alone() {
        let tree = Tree::new();
        let rules = [("p", Rights::Write), ("p/.git/hooks", Rights::Read)];
        let division = tree.without(&[], &rules).unwrap();
        assert!(division.closed.contains(&tree.id("p/.git/hooks")));
        assert_eq!(division.ruled[&tree.id("p/.git/hooks")], Rights::Read);
        assert!(division.rules.contains(&(tree.at("p/.git/hooks"), Rights::Read)));
        assert!(division.entries.iter().all(|entry| entry.path != tree.at("p/.git/hooks")));
    }

    #[test]
    fn another_name_of_a_denied_file_gets_no_rule() {
        let tree = Tree::new();
        fs::hard_link(tree.at("p/.env"), tree.at("p/other")).unwrap();
        let division = tree.without(&["p/.env"], &[("p", Rights::Write)]).unwrap();
        assert!(!division.ruled.contains_key(&tree.id("p/other")), "{division:?}");
    }
}
