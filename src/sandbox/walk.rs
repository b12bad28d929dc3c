//! Where a path leads, step by step, as the kernel resolves it.
//!
//! A link is followed where it stands, and `..` goes up from where the path has come to, not from where it is written.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Links that are followed in one path (MAXSYMLINKS of the kernel).
const LINKS_MAX: usize = 40;

/// What was met on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// The links that were followed: where each is, and what it holds.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Where the path leads, without any link. Of what does not exist, where it would be.
    pub real: PathBuf,
    /// Whether something is there.
    pub there: bool,
    /// Whether the path ends at a link that was not followed.
    pub at_link: bool,
}

/// Walks the absolute `path`, and a link at its end if `follow`. `None`: it is not absolute, goes round, or leads through
/// the descriptors and processes of /proc.
pub fn walk(path: &Path, follow: bool) -> Option<Walk> {
    if !path.is_absolute() {
        return None;
    }
    let mut walk = Walk { links: Vec::new(), real: PathBuf::from("/"), there: true, at_link: false };
    let mut todo: VecDeque<OsString> = steps(path).collect();
    while let Some(step) = todo.pop_front() {
        if step == ".." {
            walk.real.pop();
            continue;
        }
        let at = walk.real.join(&step);
        if at.starts_with("/proc") {
            return None;
        }
        let metadata = walk.there.then(|| at.symlink_metadata().ok()).flatten();
        match metadata {
            None => {
                walk.there = false;
                walk.real = at;
            }
            Some(metadata) if metadata.is_symlink() => {
                if todo.is_empty() && !follow {
                    walk.at_link = true;
                    walk.real = at;
                    continue;
                }
                let target = at.read_link().ok()?;
                if walk.links.len() >= LINKS_MAX {
                    return None;
                }
                if target.is_absolute() {
                    walk.real = PathBuf::from("/");
                }
                for step in steps(&target).collect::<Vec<_>>().into_iter().rev() {
                    todo.push_front(step);
                }
                walk.links.push((at, target));
            }
            Some(_) => walk.real = at,
        }
    }
    Some(walk)
}

fn steps(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_met_in_order_and_parents_are_those_of_where_they_lead() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("big/dir")).unwrap();
        std::fs::write(base.join("big/two"), "").unwrap();
        symlink("big/dir", base.join("dl")).unwrap();
        symlink(base.join("dl"), base.join("again")).unwrap();
        let walked = walk(&base.join("again/../two"), true).unwrap();
        assert_eq!((walked.real.as_path(), walked.there), (base.join("big/two").as_path(), true));
        let links: Vec<_> = walked.links.into_iter().map(|(at, _)| at).collect();
        assert_eq!(links, [base.join("again"), base.join("dl")]);
        let end = walk(&base.join("dl"), false).unwrap();
        assert!(end.at_link && end.links.is_empty() && end.real == base.join("dl"));
        let missing = walk(&base.join("dl/no/name"), true).unwrap();
        assert_eq!((missing.real, missing.there), (base.join("big/dir/no/name"), false));
    }

    #[test]
    fn what_goes_round_or_through_proc_leads_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        symlink("loop", dir.path().join("loop")).unwrap();
        symlink("/proc/self/fd/0", dir.path().join("stdin")).unwrap();
        assert_eq!(walk(&dir.path().join("loop"), true), None);
        assert_eq!(walk(&dir.path().join("stdin"), true), None);
        assert_eq!(walk(Path::new("relative"), true), None);
    }
}
