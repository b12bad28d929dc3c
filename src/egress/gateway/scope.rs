//! What several runs spend together: a session, a day. Kept in a file that runs lock in turn.
//!
//! A file holds what was spent and what is reserved by answers under way, so that runs at the same time stay within the
//! limit together. What a killed run had reserved stays counted: an answer whose cost nobody learnt is charged in full.
//! The file is not synced to the disk; a machine that loses power may forget the last answers.

use super::budget::Budget;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes of a file: four numbers of twenty digits, each with an end of line.
const LENGTH: usize = 84;

/// A budget that is shared with other runs of the same user.
#[derive(Debug, Clone)]
pub struct Scope {
    /// For messages: `session NAME`, `day 2026-11-30`.
    pub name: String,
    /// The flag that sets it.
    pub flag: &'static str,
    /// Where it is kept.
    pub file: PathBuf,
    /// What may be spent.
    pub budget: Budget,
}

/// What a file says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub spent_nano: u64,
    pub spent_tokens: u64,
    pub reserved_nano: u64,
    pub reserved_tokens: u64,
}

/// A file that is locked until this is dropped.
pub(super) struct Locked {
    file: File,
    pub totals: Totals,
}

impl Scope {
    /// The scope that is called `name` and kept in the directory `dir`, which is made if need be.
    pub fn new(dir: &Path, name: &str, flag: &'static str, budget: Budget) -> std::io::Result<Scope> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let file = dir.join(name.replace(' ', "-"));
        let scope = Scope { name: name.to_owned(), flag, file, budget };
        scope.lock().map(|_| scope)
    }

    /// Waits for other runs, which hold a lock for microseconds.
    pub(super) fn lock(&self) -> std::io::Result<Locked> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::from(rustix::fs::open(&self.file, flags, Mode::from_raw_mode(0o600))?);
        let about = file.metadata()?;
        if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() || about.mode() & 0o022 != 0
        {
            return Err(std::io::Error::other("not a file of this user's alone"));
        }
        rustix::io::retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::LockExclusive))?;
        let length = file.metadata()?.len();
        let totals = match length {
            0 => Totals::default(),
            _ => Totals::read(&file, length)
                .ok_or_else(|| std::io::Error::other("its content is not jess's"))?,
        };
        Ok(Locked { file, totals })
    }
}

impl Totals {
    fn read(file: &File, length: u64) -> Option<Totals> {
        let mut bytes = [0; LENGTH];
        (length == LENGTH as u64).then_some(())?;
        file.read_exact_at(&mut bytes, 0).ok()?;
        let text = std::str::from_utf8(&bytes).ok()?;
        let numbers: Vec<u64> = text.lines().map(str::parse).collect::<Result<_, _>>().ok()?;
        let [spent_nano, spent_tokens, reserved_nano, reserved_tokens] = numbers.try_into().ok()?;
        Some(Totals { spent_nano, spent_tokens, reserved_nano, reserved_tokens })
    }

    /// What is left of `limit_nano` and `limit_tokens`.
    pub fn left(&self, limit_nano: u64, limit_tokens: u64) -> (u64, u64) {
        let left = |limit: u64, a: u64, b: u64| limit.saturating_sub(a).saturating_sub(b);
        (
            left(limit_nano, self.spent_nano, self.reserved_nano),
            left(limit_tokens, self.spent_tokens, self.reserved_tokens),
        )
    }
}

impl Locked {
    /// Writes the totals back.
    pub fn save(&self) -> std::io::Result<()> {
        let t = &self.totals;
        let mut text = String::with_capacity(LENGTH);
        for number in [t.spent_nano, t.spent_tokens, t.reserved_nano, t.reserved_tokens] {
            let _ = writeln!(text, "{number:020}");
        }
        self.file.write_all_at(text.as_bytes(), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(dir: &Path) -> std::io::Result<Scope> {
        Scope::new(dir, "day 2026-11-30", "--day-budget-usd", Budget::default())
    }

    #[test]
    fn totals_survive_and_are_shared() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (scope(dir.path()).unwrap(), scope(dir.path()).unwrap());
        let totals = Totals { spent_nano: u64::MAX, spent_tokens: 7, reserved_nano: 0, reserved_tokens: 9 };
        let mut locked = a.lock().unwrap();
        locked.totals = totals;
        locked.save().unwrap();
        drop(locked);
        assert_eq!(b.lock().unwrap().totals, totals);
    }

    #[test]
    fn a_file_that_is_not_ours_is_an_error_and_no_empty_account() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("day-2026-11-30");
        for content in ["x", "00000000000000000001\n", &"9".repeat(84)] {
            std::fs::write(&at, content).unwrap();
            assert!(scope(dir.path()).is_err(), "{content}");
        }
        std::fs::remove_file(&at).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &at).unwrap();
        assert!(scope(dir.path()).is_err(), "a link");
    }
}
