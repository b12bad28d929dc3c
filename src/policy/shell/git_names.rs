//! Questions to git's history that are answered with names, dates and counts, never with what a file holds.

use super::value::Val;

/// Options of `git log` that print nothing of a file's content.
const LOG: &[&str] = &[
    "--abbrev-commit",
    "--all",
    "--author-date-order",
    "--branches",
    "--color",
    "--date-order",
    "--decorate",
    "--first-parent",
    "--follow",
    "--full-history",
    "--graph",
    "--merges",
    "--no-color",
    "--no-decorate",
    "--no-merges",
    "--no-patch",
    "--oneline",
    "--relative-date",
    "--remotes",
    "--reverse",
    "--simplify-merges",
    "--tags",
    "--topo-order",
    "-s",
];

/// The same with a value behind `=`.
const LOG_VALUED: &[&str] = &[
    "--after",
    "--author",
    "--before",
    "--committer",
    "--date",
    "--decorate",
    "--diff-filter",
    "--format",
    "--max-count",
    "--pretty",
    "--since",
    "--skip",
    "--until",
];

/// Options that replace the content of a difference by names or counts.
const NAMES: &[&str] = &[
    "--dirstat",
    "--name-only",
    "--name-status",
    "--numstat",
    "--quiet",
    "--shortstat",
    "--stat",
    "--summary",
];

/// Whether `git log` or `git diff` with `args` prints names and counts only.
///
/// Every option has to be a known one in full: git takes starts of options, and one that prints content undoes the rest.
pub(super) fn names_only(sub: &str, args: &[Val]) -> bool {
    let own = args.iter().position(|a| a.text == "--").unwrap_or(args.len());
    let args = args.get(..own).unwrap_or_default();
    if !matches!(sub, "log" | "diff") || !args.iter().all(Val::is_known) {
        return false;
    }
    let mut names = false;
    let mut rest = args.iter().map(|a| a.text.as_str());
    while let Some(arg) = rest.next() {
        if !arg.starts_with('-') {
            continue;
        }
        let count = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (arg, None),
        };
        let known = if NAMES.contains(&name) {
            names = true;
            value.is_none() || matches!(name, "--stat" | "--dirstat")
        } else {
            match sub {
                "log" if arg == "-n" => rest.next().is_some_and(count),
                "log" if arg.strip_prefix("-n").or_else(|| arg.strip_prefix('-')).is_some_and(count) => true,
                "log" if value.is_some() => LOG_VALUED.contains(&name),
                "log" => LOG.contains(&name),
                "diff" => matches!(arg, "--cached" | "--staged"),
                _ => false,
            }
        };
        if !known {
            return false;
        }
    }
    // Without an option `git diff` prints content and `git log` does not.
    names || sub == "log"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(line: &str) -> bool {
        let mut words = line.split(' ').map(Val::known);
        let sub = words.next().unwrap();
        names_only(&sub.text, &words.collect::<Vec<_>>())
    }

    #[test]
    fn names_and_counts_are_told_from_content() {
        for line in [
            "log -- .env",
            "log --oneline -- .env",
            "log --stat -- .env",
            "log --all --full-history -- .env",
            "log --diff-filter=D --name-only --oneline -- .env",
            "log -5 --format=%h main..HEAD -- .env",
            "log -n 3 --stat=80 .env",
            "log -n3 .env",
            "diff --stat .env",
            "diff --cached --name-only -- .env",
        ] {
            assert!(judged(line), "{line}");
        }
        for line in [
            "log -p -- .env",
            "log --stat -p -- .env",
            "log --patch -- .env",
            "log --patch-with-stat -- .env",
            "log -u -- .env",
            "log -U3 -- .env",
            "log -c -- .env",
            "log --cc -- .env",
            "log --full-diff -p -- .env",
            "log -S planted -- .env",
            "log -Gplanted -- .env",
            "log -L1,3:.env",
            "log --st -- .env",
            "log --output=x -- .env",
            "log -n -p -- .env",
            "log --binary -- .env",
            "log --word-diff -- .env",
            "log --remerge-diff -- .env",
            "log --grep=x -- .env",
            "diff .env",
            "diff --cached .env",
            "diff --stat -p .env",
            "diff --stat --no-index .env x",
            "diff --stat --ext-diff .env",
            "show --stat HEAD:.env",
            "blame .env",
        ] {
            assert!(!judged(line), "{line}");
        }
        let unknown = [Val::unknown(super::super::value::Taint::NONE), Val::known("--"), Val::known(".env")];
        assert!(!names_only("log", &unknown));
    }
}
