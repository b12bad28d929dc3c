//! What the policy may ask about the machine, and the answer of a real disk.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

/// What a path is, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing is there, or it cannot be looked at.
    Missing,
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A pipe, socket or device: never opened.
    Other,
}

/// Questions about files. Implementations answer in bounded time and never open anything but regular files.
pub trait World {
    /// Where `path` (absolute) leads: links followed component by component, `..` taken after the link, names that do
    /// not exist kept as they are. At most 40 links.
    fn resolve(&self, path: &Path) -> PathBuf;
    /// What is there.
    fn kind(&self, path: &Path) -> Kind;
    /// Names in a directory, at most [`LIST_MAX`], in no order.
    fn list(&self, dir: &Path) -> Vec<String>;
    /// The text of a regular file, at most [`READ_MAX`] bytes of it.
    fn read(&self, path: &Path) -> Option<String>;
}

/// Most names that [`World::list`] gives.
pub const LIST_MAX: usize = 2_000;
/// Most bytes that [`World::read`] gives.
pub const READ_MAX: u64 = 256 * 1024;
/// Links followed in one path, as in the kernel (`path_resolution(7)`).
const LINKS_MAX: usize = 40;
/// Longest path that is looked up on disk (`PATH_MAX`); a longer one cannot exist.
const PATH_MAX: usize = 4096;

/// The machine's own file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl World for Disk {
    fn resolve(&self, path: &Path) -> PathBuf {
        follow(path, |p| fs::read_link(p).ok())
    }

    fn kind(&self, path: &Path) -> Kind {
        match fs::metadata(path) {
            Ok(m) if m.is_file() => Kind::File,
            Ok(m) if m.is_dir() => Kind::Dir,
            Ok(_) => Kind::Other,
            Err(_) => Kind::Missing,
        }
    }

    fn list(&self, dir: &Path) -> Vec<String> {
        let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
        entries
            .take(LIST_MAX)
            .filter_map(|e| e.ok())
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect()
    }

    fn read(&self, path: &Path) -> Option<String> {
        if self.kind(path) != Kind::File {
            return None;
        }
        let mut bytes = Vec::new();
        fs::File::open(path).ok()?.take(READ_MAX).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The machine's own file system during one event: where links lead is looked up once, so that every part of a judgement
/// sees the same.
#[derive(Debug, Default)]
pub struct Snapshot {
    links: Mutex<HashMap<PathBuf, Option<PathBuf>>>,
}

/// Most names of which is remembered where they lead.
const REMEMBERED_MAX: usize = 4096;

impl World for Snapshot {
    fn resolve(&self, path: &Path) -> PathBuf {
        let Ok(mut links) = self.links.lock() else { return Disk.resolve(path) };
        let links = RefCell::new(&mut *links);
        follow(path, |p| {
            if let Some(known) = links.borrow().get(p) {
                return known.clone();
            }
            let target = fs::read_link(p).ok();
            let mut links = links.borrow_mut();
            if links.len() < REMEMBERED_MAX {
                links.insert(p.to_path_buf(), target.clone());
            }
            target
        })
    }

    fn kind(&self, path: &Path) -> Kind {
        Disk.kind(path)
    }

    fn list(&self, dir: &Path) -> Vec<String> {
        Disk.list(dir)
    }

    fn read(&self, path: &Path) -> Option<String> {
        Disk.read(path)
    }
}

/// Walks `path` as the kernel does. `link` says where a link points.
pub fn follow(path: &Path, link: impl Fn(&Path) -> Option<PathBuf>) -> PathBuf {
    let mut done = PathBuf::from("/");
    let mut todo: Vec<std::ffi::OsString> =
        path.components().rev().filter_map(name_of).map(OsStr::to_owned).collect();
    let mut links = 0;
    let mut plain: HashSet<PathBuf> = HashSet::new();
    while let Some(name) = todo.pop() {
        if name == ".." {
            done.pop();
            continue;
        }
        done.push(&name);
        if done.as_os_str().len() > PATH_MAX || plain.contains(&done) {
            continue;
        }
        let target = if links < LINKS_MAX { link(&done) } else { None };
        match target {
            Some(target) => {
                links += 1;
                done.pop();
                if target.is_absolute() {
                    done = PathBuf::from("/");
                }
                todo.extend(target.components().rev().filter_map(name_of).map(OsStr::to_owned));
            }
            None => {
                if plain.len() < 64 {
                    plain.insert(done.clone());
                }
            }
        }
    }
    done
}

fn name_of(c: Component<'_>) -> Option<&OsStr> {
    match c {
        Component::Normal(n) => Some(n),
        Component::ParentDir => Some(OsStr::new("..")),
        _ => None,
    }
}

/// `path` with `.` and `..` taken by name alone, as the client does before it opens a file.
pub fn normalise(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for c in path.components() {
        match c {
            Component::Normal(n) => out.push(n),
            Component::ParentDir => {
                out.pop();
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(p: &Path) -> Option<PathBuf> {
        match p.to_str()? {
            "/p/notes" => Some("../home/.ssh".into()),
            "/p/abs" => Some("/etc".into()),
            "/p/loop" => Some("loop".into()),
            _ => None,
        }
    }

    #[test]
    fn a_link_is_followed_before_the_dots_after_it() {
        assert_eq!(follow(Path::new("/p/notes/../x"), links), Path::new("/home/x"));
        assert_eq!(follow(Path::new("/p/abs/shadow"), links), Path::new("/etc/shadow"));
        assert_eq!(normalise(Path::new("/p/notes/../x")), Path::new("/p/x"));
    }

    #[test]
    fn a_link_to_itself_ends() {
        assert_eq!(follow(Path::new("/p/loop/a"), links), Path::new("/p/loop/a"));
    }

    #[test]
    fn climbing_above_the_root_stays_there() {
        let path = format!("/p/{}etc/shadow", "../".repeat(20_000));
        assert_eq!(follow(Path::new(&path), links), Path::new("/etc/shadow"));
    }
}
