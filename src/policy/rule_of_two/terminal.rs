//! Looks for a person's terminal. The only part of `policy` that reads anything, and it reads only `/proc`.

use super::{Attended, Signs, TERMINAL_MAX_AGE_S, says_unattended};
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// The most parents looked at.
const MAX_HOPS: usize = 256;

/// Whether a person is provably there, from this process's environment, standard input and parents.
///
/// Anything that cannot be read counts as nobody.
pub fn attended() -> Attended {
    signs().verdict()
}

/// What [`attended`] saw.
pub fn signs() -> Signs {
    Signs {
        says_unattended: says_unattended(|name| {
            std::env::var_os(name).map(|v| v.to_string_lossy().into_owned())
        }),
        stdin_is_terminal: rustix::termios::isatty(rustix::stdio::stdin()),
        terminal_in_use: terminal_in_use(),
    }
}

fn terminal_in_use() -> bool {
    let mut seen = HashSet::new();
    let mut pid = std::process::id();
    for _ in 0..MAX_HOPS {
        if pid <= 1 || !seen.insert(pid) {
            return false;
        }
        let Some((parent, tty)) = parent_and_tty(pid) else { return false };
        if tty != 0 && used_lately(pid, tty) {
            return true;
        }
        pid = parent;
    }
    false
}

/// `(ppid, tty_nr)` of `/proc/PID/stat`. The command name may hold any character, so fields count from the last `)`.
fn parent_and_tty(pid: u32) -> Option<(u32, u64)> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&stat))
}

fn parse_stat(stat: &str) -> Option<(u32, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let tty: i64 = fields.nth(2)?.parse().ok()?;
    Some((parent, u64::from(tty as u32)))
}

/// True when one of the process's standard descriptors is the terminal `tty` and it was read within the age limit.
fn used_lately(pid: u32, tty: u64) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(u64::MAX, |d| d.as_secs());
    (0..3).filter_map(|fd| std::fs::metadata(format!("/proc/{pid}/fd/{fd}")).ok()).any(|meta| {
        let atime = u64::try_from(meta.atime()).unwrap_or(0);
        meta.rdev() == tty && now.saturating_sub(atime) <= TERMINAL_MAX_AGE_S
    })
}

#[cfg(test)]
mod tests {
    use super::parse_stat;

    #[test]
    fn a_command_name_with_parentheses_does_not_shift_the_fields() {
        assert_eq!(parse_stat("42 (a) 1 2) S 7 42 42 34816 42 0"), Some((7, 34816)));
    }

    #[test]
    fn a_truncated_line_is_no_answer() {
        assert_eq!(parse_stat("42 (sh) S"), None);
    }
}
