//! Values of words: text with holes, and where it came from.

use super::limits;

/// Stands for text that is not known before the command runs. No argument can hold a NUL byte itself.
pub const HOLE: char = '\0';

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taint(u8);

impl Taint {
    /// Known text.
    pub const NONE: Taint = Taint(0);
    /// The content of a secret file.
    pub const SECRET: Taint = Taint(1);
    /// The content of a file, or something else about this machine.
    pub const FILE: Taint = Taint(2);
    /// What another machine answered.
    pub const NET: Taint = Taint(4);
    /// A variable of the environment that holds a credential, or all of them.
    pub const ENV: Taint = Taint(8);
    /// Text that was put through a decoder.
    pub const CODED: Taint = Taint(16);

    /// What a file holds that came from another machine in an earlier call.
    pub const ARRIVED: Taint = Taint(32);

    /// Both.
    pub fn with(self, other: Taint) -> Taint {
        Taint(self.0 | other.0)
    }

    /// Whether any of `other` is in it.
    pub fn any(self, other: Taint) -> bool {
        self.0 & other.0 != 0
    }

    /// Without `other`.
    pub fn without(self, other: Taint) -> Taint {
        Taint(self.0 & !other.0)
    }

    /// What must not leave the machine.
    pub const LOCAL: Taint = Taint(1 | 2 | 8);
}

/// A text with holes and its origin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Val {
    /// The text; [`HOLE`] where it is not known.
    pub text: String,
    /// Where it came from.
    pub taint: Taint,
}

impl Val {
    /// Known text.
    pub fn known(text: impl Into<String>) -> Val {
        Val { text: text.into(), taint: Taint::NONE }
    }

    /// Nothing known but the origin.
    pub fn unknown(taint: Taint) -> Val {
        Val { text: HOLE.to_string(), taint }
    }

    /// Whether every character is known.
    pub fn is_known(&self) -> bool {
        !self.text.contains(HOLE)
    }

    /// Appends; beyond [`limits::VALUE`] the value becomes unknown.
    pub fn push(&mut self, other: &Val) {
        self.taint = self.taint.with(other.taint);
        if self.text.len() + other.text.len() > limits::VALUE {
            self.text = HOLE.to_string();
        } else {
            self.text.push_str(&other.text);
        }
    }

    /// The same origin with another text.
    pub fn map(&self, text: impl Into<String>) -> Val {
        Val { text: text.into(), taint: self.taint }
    }
}

/// One word after expansion.
#[derive(Debug, Clone, Default)]
pub struct Field {
    /// What the program gets.
    pub val: Val,
    /// The same with quoted glob characters behind a backslash; meaningful when `glob`.
    pub pattern: String,
    /// Whether an unquoted glob character is in it.
    pub glob: bool,
    /// Whether something quoted is in it, so that it stays a word when empty.
    pub quoted: bool,
}

/// Whether `name` matches the glob `pattern` (`*`, `?`, `[…]`, `\x`; `@(a|b)` and its kin match anything). A leading dot
/// has to be matched by a dot. Worst case quadratic.
pub fn glob_matches(pattern: &str, name: &str) -> bool {
    let p: Vec<char> = pattern.chars().collect();
    let n: Vec<char> = name.chars().collect();
    if n.first() == Some(&'.') && !matches!(p.first(), Some('.' | '\\' | '[' | '@' | '+' | '!')) {
        return false;
    }
    let (mut i, mut j) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while j < n.len() {
        let step = match p.get(i) {
            Some('*') => {
                back = Some((i, j));
                i += 1;
                continue;
            }
            Some('@' | '+' | '!' | '?') if p.get(i + 1) == Some(&'(') => {
                return true;
            }
            Some(&HOLE) => {
                back = Some((i, j));
                i += 1;
                continue;
            }
            Some('?') => Some(1),
            Some('[') => class(&p[i..], n[j]),
            Some('\\') if i + 1 < p.len() => (p[i + 1] == n[j]).then_some(2),
            Some(c) => (*c == n[j]).then_some(1),
            None => None,
        };
        match (step, back) {
            (Some(len), _) => {
                i += len;
                j += 1;
            }
            (None, Some((bi, bj))) => {
                i = bi + 1;
                j = bj + 1;
                back = Some((bi, bj + 1));
            }
            (None, None) => return false,
        }
    }
    p[i.min(p.len())..].iter().all(|c| matches!(c, '*' | '\0'))
}

/// Length of the bracket expression at the start of `p` if it matches `c`. One that does not close is a plain `[`.
fn class(p: &[char], c: char) -> Option<usize> {
    let mut i = 1;
    let negated = matches!(p.get(i), Some('!' | '^'));
    if negated {
        i += 1;
    }
    let start = i;
    let mut hit = false;
    loop {
        match p.get(i) {
            None => return (c == '[').then_some(1),
            Some(']') if i > start => break,
            Some('[') if p.get(i + 1) == Some(&':') => {
                let end = p[i..].iter().position(|x| *x == ']').map(|e| i + e);
                let name: String =
                    p[i + 2..end.unwrap_or(p.len()).max(i + 2)].iter().filter(|x| **x != ':').collect();
                hit |= match name.as_str() {
                    "alpha" => c.is_alphabetic(),
                    "digit" => c.is_ascii_digit(),
                    "alnum" => c.is_alphanumeric(),
                    "lower" => c.is_lowercase(),
                    "upper" => c.is_uppercase(),
                    "punct" => c.is_ascii_punctuation(),
                    _ => true,
                };
                i = end.unwrap_or(p.len()) + 1;
            }
            Some(&lo) => {
                if p.get(i + 1) == Some(&'-') && p.get(i + 2).is_some_and(|x| *x != ']') {
                    let hi = p[i + 2];
                    hit |= lo <= c && c <= hi;
                    i += 3;
                } else {
                    hit |= lo == c;
                    i += 1;
                }
            }
        }
    }
    (hit != negated).then_some(i + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_as_in_a_shell() {
        for (p, n, yes) in [
            (".e*v", ".env", true),
            (".en?", ".env", true),
            ("*", ".env", false),
            ("*", "env", true),
            ("[.]env", ".env", true),
            ("*.rs", "a.rs", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("[a-c]x", "bx", true),
            ("[!a]x", "ax", false),
            ("a*b*c", "aXbYc", true),
            ("[", "[", true),
            (".[!.]*", ".env", true),
            ("id_*", "id_rsa", true),
            ("[[:alpha:]]", "q", true),
        ] {
            assert_eq!(glob_matches(p, n), yes, "{p} {n}");
        }
    }
}
