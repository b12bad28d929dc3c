//! Command-line arguments, split into options and operands as `getopt_long` would.

use super::value::Val;

/// Arguments of one command.
#[derive(Default)]
pub(super) struct Options {
    /// Option names as given (`-x`, `--long`), with the value where one was taken.
    pub given: Vec<(String, Option<Val>)>,
    /// What is left.
    pub operands: Vec<Val>,
}

impl Options {
    /// Splits `args`; `valued` names the options that take a value. With `stop`, everything after the first operand is
    /// an operand (a wrapper's command).
    pub fn split(args: &[Val], valued: &[&str], stop: bool) -> Options {
        let mut out = Options::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let text = arg.text.as_str();
            if text == "--" {
                out.operands.extend(rest.cloned());
                break;
            }
            if !text.starts_with('-') || text == "-" {
                out.operands.push(arg.clone());
                if stop {
                    out.operands.extend(rest.cloned());
                    break;
                }
                continue;
            }
            if text.starts_with("--") || valued.contains(&text) {
                match text.split_once('=') {
                    Some((name, value)) => out.given.push((name.to_owned(), Some(arg.map(value)))),
                    None if valued.contains(&text) => out.given.push((text.to_owned(), rest.next().cloned())),
                    None => out.given.push((text.to_owned(), None)),
                }
                continue;
            }
            // A cluster of short options; the first that takes a value takes the rest.
            let letters: Vec<char> = text.chars().skip(1).collect();
            for (i, c) in letters.iter().enumerate() {
                let name = format!("-{c}");
                if valued.contains(&name.as_str()) {
                    let tail: String = letters.get(i + 1..).unwrap_or_default().iter().collect();
                    let value = if tail.is_empty() { rest.next().cloned() } else { Some(arg.map(tail)) };
                    out.given.push((name, value));
                    break;
                }
                out.given.push((name, None));
            }
        }
        out
    }

    /// Whether one of `names` was given.
    pub fn has(&self, names: &[&str]) -> bool {
        self.given.iter().any(|(n, _)| names.contains(&n.as_str()))
    }

    /// The values given to any of `names`.
    pub fn values(&self, names: &[&str]) -> Vec<Val> {
        self.given
            .iter()
            .filter(|(n, _)| names.contains(&n.as_str()))
            .filter_map(|(_, v)| v.clone())
            .collect()
    }
}
