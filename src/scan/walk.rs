//! What a check reads: files, directories, stdin, the index, a diff. Everything left out is counted.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How to walk.
#[derive(Debug, Clone)]
pub struct Options {
    /// Only paths that match one of these globs.
    pub include: Vec<String>,
    /// No path that matches one of these globs.
    pub exclude: Vec<String>,
    /// Files larger than this are skipped, in bytes.
    pub max_file_size: u64,
    /// Do not read ignore files.
    pub no_ignore: bool,
    /// Also read files that look binary.
    pub all_files: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            include: Vec::new(),
            exclude: Vec::new(),
            max_file_size: 1 << 30,
            no_ignore: false,
            all_files: false,
        }
    }
}

/// What was left out, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// Above the size limit.
    pub large: usize,
    /// Binary by its first bytes.
    pub binary: usize,
    /// Symbolic links, devices, sockets, pipes.
    pub special: usize,
    /// Not readable.
    pub unreadable: usize,
}

impl Skipped {
    /// All together.
    pub fn total(&self) -> usize {
        self.large + self.binary + self.special + self.unreadable
    }

    /// Adds another count.
    pub fn add(&mut self, other: Skipped) {
        self.large += other.large;
        self.binary += other.binary;
        self.special += other.special;
        self.unreadable += other.unreadable;
    }
}

/// Why a walk could not be done.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// A named path is missing or unreadable.
    #[error("reading {}: {source}; check the path", crate::sanitise::path(path))]
    Path {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A glob is malformed.
    #[error("bad glob: {0}")]
    Glob(String),
    /// git did not answer.
    #[error("asking git for {what}: {why}; run this inside a repository")]
    Git {
        /// What was asked.
        what: String,
        /// What it said.
        why: String,
    },
}

/// The files under `root`, in order of path; `root` itself when it is a file. Symbolic links are not followed.
pub fn files(root: &Path, o: &Options) -> Result<(Vec<PathBuf>, Skipped), WalkError> {
    let path_error = |source| WalkError::Path { path: root.to_path_buf(), source };
    let meta = std::fs::symlink_metadata(root).map_err(path_error)?;
    let mut skipped = Skipped::default();
    if meta.is_file() {
        return Ok((vec![root.to_path_buf()], skipped));
    }
    if !meta.is_dir() {
        skipped.special += 1;
        return Ok((Vec::new(), skipped));
    }
    let mut globs = ignore::overrides::OverrideBuilder::new(root);
    for g in &o.include {
        globs.add(g).map_err(|e| WalkError::Glob(e.to_string()))?;
    }
    for g in &o.exclude {
        globs.add(&format!("!{g}")).map_err(|e| WalkError::Glob(e.to_string()))?;
    }
    let globs = globs.build().map_err(|e| WalkError::Glob(e.to_string()))?;
    let mut walk = ignore::WalkBuilder::new(root);
    walk.hidden(false).follow_links(false).require_git(false).overrides(globs).sort_by_file_path(Path::cmp);
    if o.no_ignore {
        walk.ignore(false).git_ignore(false).git_exclude(false).git_global(false).parents(false);
    }
    walk.filter_entry(|e| e.file_name() != ".git");
    let mut out = Vec::new();
    for entry in walk.build() {
        let Ok(entry) = entry else {
            skipped.unreadable += 1;
            continue;
        };
        match entry.file_type() {
            Some(t) if t.is_file() => out.push(entry.into_path()),
            Some(t) if t.is_dir() => {}
            _ => skipped.special += 1,
        }
    }
    Ok((out, skipped))
}

/// A file to be read, or what it counts as. Opened without following a link, so that a swapped file cannot escape.
pub fn open(path: &Path, o: &Options) -> Result<impl Read + use<>, Skipped> {
    use rustix::fs::{Mode, OFlags};
    let unreadable = Skipped { unreadable: 1, ..Skipped::default() };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|_| unreadable)?;
    let mut file = std::fs::File::from(fd);
    let meta = file.metadata().map_err(|_| unreadable)?;
    if !meta.is_file() {
        return Err(Skipped { special: 1, ..Skipped::default() });
    }
    if meta.len() > o.max_file_size {
        return Err(Skipped { large: 1, ..Skipped::default() });
    }
    let mut head = Vec::with_capacity(1024);
    file.by_ref().take(1024).read_to_end(&mut head).map_err(|_| unreadable)?;
    if !o.all_files && binary(&head) {
        return Err(Skipped { binary: 1, ..Skipped::default() });
    }
    // A file that grows while it is read ends where it ended when it was opened.
    let left = o.max_file_size.saturating_sub(head.len() as u64);
    Ok(std::io::Cursor::new(head).chain(file.take(left)))
}

/// NUL bytes that are not UTF-16, in the first 1,024 bytes.
fn binary(bytes: &[u8]) -> bool {
    let head = bytes.get(..bytes.len().min(1024)).unwrap_or_default();
    let zeros = head.iter().filter(|b| **b == 0).count();
    let odd = head.iter().skip(1).step_by(2).filter(|b| **b == 0).count();
    let utf16 = head.len() >= 8 && (odd * 5 >= head.len() * 2 || (zeros - odd) * 5 >= head.len() * 2);
    zeros > 0 && !utf16 && !head.starts_with(&[0xff, 0xfe]) && !head.starts_with(&[0xfe, 0xff])
}

fn git(what: &str, args: &[&str]) -> Result<Vec<u8>, WalkError> {
    let fail = |why: String| WalkError::Git { what: what.to_string(), why };
    let out = Command::new("git").args(args).output().map_err(|e| fail(e.to_string()))?;
    if out.status.success() {
        Ok(out.stdout)
    } else {
        // git says what is wrong first; its usage text may follow for pages.
        let said = String::from_utf8_lossy(&out.stderr);
        Err(fail(said.lines().next().unwrap_or_default().trim().to_string()))
    }
}

fn names(list: &[u8]) -> Vec<String> {
    list.split(|b| *b == 0)
        .filter(|n| !n.is_empty())
        .map(|n| String::from_utf8_lossy(n).into_owned())
        .collect()
}

/// Names of the files that the next commit adds or changes; submodules are none.
pub fn staged() -> Result<Vec<String>, WalkError> {
    let list = git(
        "staged files",
        &["diff", "--cached", "--raw", "--no-abbrev", "-z", "--no-renames", "--diff-filter=ACMT"],
    )?;
    let mut out = Vec::new();
    let mut parts = list.split(|b| *b == 0);
    // `:old-mode new-mode old-hash new-hash status` NUL `name` NUL …
    while let (Some(about), Some(name)) = (parts.next(), parts.next()) {
        let mode = about.split(|b| *b == b' ').nth(1).unwrap_or_default();
        if mode != b"160000" && !name.is_empty() {
            out.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(out)
}

/// The staged content of the file `name`, as the next commit will hold it.
pub fn staged_content(name: &str) -> Result<Vec<u8>, WalkError> {
    git(&format!("the staged content of {name}"), &["cat-file", "blob", &format!(":0:{name}")])
}

/// Paths in the work tree that differ from `rev`.
pub fn changed_since(rev: &str) -> Result<Vec<PathBuf>, WalkError> {
    let what = format!("changes since {rev}");
    if rev.starts_with('-') {
        return Err(WalkError::Git { what, why: "not a revision".into() });
    }
    let top = git(&what, &["rev-parse", "--show-toplevel"])?;
    let top = PathBuf::from(String::from_utf8_lossy(&top).trim_end());
    let list = git(&what, &["diff", "--name-only", "-z", "--diff-filter=ACMRT", rev, "--"])?;
    Ok(names(&list)
        .into_iter()
        .map(|n| top.join(n))
        .filter(|p| p.symlink_metadata().is_ok_and(|m| m.is_file()))
        .collect())
}
