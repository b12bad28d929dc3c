//! Programs that hand out credentials when they are asked with certain words.

use super::eval::Machine;
use super::value::{Taint, Val};

/// A program and phrases of consecutive words (options among them) with which it prints a credential. In order.
#[rustfmt::skip]
const PRINTERS: &[(&str, &[&str])] = &[
    ("argocd", &["account generate-token"]),
    ("aws-vault", &["export"]),
    ("berglas", &["access"]),
    ("chamber", &["env", "export", "read"]),
    ("cloudflared", &["access token"]),
    ("databricks", &["auth token", "tokens create"]),
    ("doctl", &["auth token"]),
    ("envchain", &["--list -v"]),
    ("fly", &["auth token", "tokens create"]),
    ("flyctl", &["auth token", "tokens create"]),
    ("getent", &["gshadow", "shadow"]),
    ("git-credential", &["fill"]),
    ("hcp", &["auth print-access-token"]),
    ("hf", &["auth token"]),
    ("keyctl", &["pipe", "print", "read"]),
    ("nmcli", &["--show-secrets", "-s"]),
    ("nomad", &["acl token"]),
    ("oc", &["whoami --show-token", "whoami -t"]),
    ("wg", &["all dump", "private-key", "private-keys", "preshared-keys", "showconf"]),
];

/// Listings of settings, among which there can be a token or an address with a password. In order.
const LISTINGS: &[(&str, &[&str])] = &[
    ("conda", &["config --show"]),
    ("pip", &["config debug", "config list"]),
    ("pip3", &["config debug", "config list"]),
    ("yarn", &["config --json", "config list --json"]),
];

impl Machine<'_> {
    /// Output that goes to the model although nothing takes it up here.
    pub(super) fn shown(&mut self, out: &Val) {
        if out.taint.any(Taint::ENV) {
            self.ask(
                "secret.env",
                "The command prints variables of the environment that hold credentials. Name the one harmless variable you need.",
            );
        }
    }

    /// Denies what prints a credential of the operator or of the machine.
    pub(super) fn prints_credentials(&mut self, base: &str, args: &[Val]) {
        let words: Vec<&str> = args.iter().map(|a| a.text.as_str()).take(16).collect();
        let helper = base.starts_with("docker-credential-") || base.starts_with("git-credential-");
        let prints = helper && words.iter().any(|w| matches!(*w, "fill" | "get" | "list"))
            || PRINTERS.iter().any(|(program, phrases)| *program == base && any_phrase(&words, phrases))
            || base == "wg" && words.first() == Some(&"show") && words.last() == Some(&"dump")
            || base == "git"
                && words.first().is_some_and(|w| w.starts_with("credential-"))
                && words.iter().any(|w| matches!(*w, "fill" | "get"));
        if prints {
            self.deny("secret.read", "The command prints a stored credential.");
        } else if LISTINGS.iter().any(|(program, phrases)| *program == base && any_phrase(&words, phrases))
            && words.last().is_some_and(|w| w.starts_with("--") || matches!(*w, "debug" | "list"))
        {
            self.ask("secret.read", "The listing can hold tokens. Name the one setting you need.");
        }
    }
}

/// Whether one of `phrases` stands among `words`, its words one after the other.
pub(super) fn any_phrase(words: &[&str], phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| {
        let parts: Vec<&str> = phrase.split(' ').collect();
        words.windows(parts.len()).any(|w| w == parts)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_order() {
        for table in [PRINTERS, LISTINGS] {
            assert!(table.windows(2).all(|w| w[0].0 < w[1].0));
        }
    }

    #[test]
    fn a_phrase_is_words_one_after_the_other() {
        assert!(any_phrase(&["x", "auth", "token"], &["auth token"]));
        assert!(!any_phrase(&["auth", "x", "token"], &["auth token"]));
        assert!(!any_phrase(&[], &["auth token"]));
    }
}
