//! Control groups: where this process may make one for a run.
//!
//! Only version 2 counts. A group for a run can be made below a group that this user owns (systemd delegates
//! `user@UID.service` and everything below it) and that hands controllers down to its children. A process is moved
//! between groups only if their common ancestor is this user's too, so the search goes up from the own group.

mod group;

pub(super) use group::{Group, group_of};

use std::fmt;
use std::path::{Path, PathBuf};

/// The controllers that bound a run.
pub const WANTED: [&str; 3] = ["memory", "pids", "cpu"];

/// Where a group for a run can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The group that becomes the parent.
    pub directory: PathBuf,
    /// The controllers of [`WANTED`] that its children have.
    pub controllers: Vec<String>,
}

/// Why there is no place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absent {
    /// No cgroup file system is mounted.
    Unmounted,
    /// Only version 1 is, or version 2 without a controller: they are all taken by version 1.
    VersionOne,
    /// What was named is not in a hierarchy of version 2.
    NoGroup,
    /// No group from the own one up is this user's.
    NotDelegated(PathBuf),
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absent::Unmounted => f.write_str("no cgroup file system is mounted"),
            Absent::VersionOne => f.write_str("version 1 holds the controllers; only version 2 is used"),
            Absent::NoGroup => f.write_str("it is no directory of a cgroup file system of version 2"),
            Absent::NotDelegated(own) => {
                write!(f, "{} and the groups above it are not this user's", crate::sanitise::path(own))
            }
        }
    }
}

/// The place for the calling process's runs.
///
/// # Errors
/// There is none, and why.
pub fn find() -> Result<Place, Absent> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    search(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
}

/// `directory` as a place that the operator names.
///
/// # Errors
/// It is no group in which this user may make others.
pub fn named(directory: &Path) -> Result<Place, Absent> {
    if is_own(directory) {
        Ok(Place { directory: directory.into(), controllers: handed_down(directory) })
    } else {
        Err(Absent::NotDelegated(directory.into()))
    }
}

/// Whether `directory` is a control group of version 2.
///
/// # Errors
/// [`Absent::NoGroup`].
pub fn check(directory: &Path) -> Result<(), Absent> {
    const CGROUP2_SUPER_MAGIC: i128 = 0x6367_7270;
    match rustix::fs::statfs(directory) {
        Ok(stat) if i128::from(stat.f_type) == CGROUP2_SUPER_MAGIC => Ok(()),
        _ => Err(Absent::NoGroup),
    }
}

fn search(mountinfo: &str, cgroup: &str) -> Result<Place, Absent> {
    let (mount, root, one) = mounts(mountinfo);
    let Some(mount) = mount else { return Err(if one { Absent::VersionOne } else { Absent::Unmounted }) };
    let own = cgroup.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    // The mount may show a part of the tree.
    let below = Path::new(own).strip_prefix(&root).or_else(|_| Path::new(own).strip_prefix("/"));
    let own = mount.join(below.unwrap_or(Path::new("")));
    let groups: Vec<Place> = own
        .ancestors()
        .take_while(|dir| dir.starts_with(&mount))
        .filter(|dir| is_own(dir))
        .map(|dir| Place { directory: dir.into(), controllers: handed_down(dir) })
        .collect();
    let most = groups.iter().map(|place| place.controllers.len()).max().unwrap_or(0);
    match groups.into_iter().find(|place| place.controllers.len() == most) {
        Some(place) if most > 0 => Ok(place),
        _ if one => Err(Absent::VersionOne),
        Some(place) => Ok(place),
        None => Err(Absent::NotDelegated(own)),
    }
}

/// Mount point and root of the version 2 hierarchy, and whether version 1 is mounted.
fn mounts(mountinfo: &str) -> (Option<PathBuf>, PathBuf, bool) {
    let (mut mount, mut root, mut one) = (None, PathBuf::from("/"), false);
    for line in mountinfo.lines() {
        let Some((place, kind)) = line.split_once(" - ") else { continue };
        let mut place = place.split(' ').skip(3);
        match kind.split(' ').next() {
            Some("cgroup2") if mount.is_none() => {
                root = place.next().unwrap_or("/").into();
                mount = place.next().map(PathBuf::from);
            }
            Some("cgroup") => one = true,
            _ => {}
        }
    }
    (mount, root, one)
}

/// Whether this user may make groups in `dir`, and move processes to them.
fn is_own(dir: &Path) -> bool {
    use rustix::fs::{Access, access};
    let may = Access::WRITE_OK;
    access(dir, may | Access::EXEC_OK).is_ok() && access(dir.join("cgroup.procs"), may).is_ok()
}

fn handed_down(dir: &Path) -> Vec<String> {
    let down = std::fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
    WANTED
        .iter()
        .filter(|wanted| down.split_whitespace().any(|c| c == **wanted))
        .map(|c| (*c).into())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A tree as systemd makes it: the session's groups are root's, the user manager's are the user's.
    fn tree() -> (tempfile::TempDir, String) {
        let dir = tempfile::tempdir().unwrap();
        for (group, down) in [
            ("", "cpu memory pids"),
            ("user.slice", "memory pids"),
            ("user.slice/user@1.service", "cpu memory pids"),
            ("user.slice/user@1.service/app.slice", "memory pids"),
            ("user.slice/user@1.service/app.slice/term.scope", ""),
        ] {
            let group = dir.path().join(group);
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("cgroup.procs"), "").unwrap();
            fs::write(group.join("cgroup.subtree_control"), down).unwrap();
        }
        let root = dir.path().canonicalize().unwrap();
        let mountinfo = format!("30 20 0:26 / {} rw - cgroup2 cgroup2 rw\n", root.to_string_lossy());
        (dir, mountinfo)
    }

    #[test]
    fn the_nearest_group_with_the_most_controllers_is_the_place() {
        let (_dir, mountinfo) = tree();
        let place = search(&mountinfo, "0::/user.slice/user@1.service/app.slice/term.scope\n").unwrap();
        assert!(place.directory.ends_with("user@1.service"), "{place:?}");
        assert_eq!(place.controllers, ["memory", "pids", "cpu"]);
    }

    #[test]
    fn a_hierarchy_of_version_one_or_none_is_named() {
        let one = "31 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        assert_eq!(search(one, "4:memory:/x\n"), Err(Absent::VersionOne));
        assert_eq!(search("", ""), Err(Absent::Unmounted));
        let empty = "30 20 0:26 / /nonexistent rw - cgroup2 cgroup2 rw\n";
        assert!(matches!(search(empty, "0::/a\n"), Err(Absent::NotDelegated(_))));
        assert_eq!(search(&format!("{one}{empty}"), "0::/a\n"), Err(Absent::VersionOne));
    }

    #[test]
    fn a_mount_of_a_part_of_the_tree_is_understood() {
        let (_dir, mountinfo) = tree();
        let part = mountinfo.replace("0:26 / ", "0:26 /pod ");
        let place = search(&part, "0::/pod/user.slice/user@1.service\n").unwrap();
        assert!(place.directory.ends_with("user@1.service"), "{place:?}");
    }
}
