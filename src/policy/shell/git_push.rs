//! git: what a push changes for others, and paths that git prints or changes.

use super::eval::Machine;
use super::value::{HOLE, Taint, Val};
use crate::policy::paths;

impl Machine<'_> {
    /// A path that git prints or changes.
    pub(super) fn git_path(&mut self, v: &Val, reads: bool) {
        if v.text.starts_with('-') && v.text.len() > 1 {
            return;
        }
        for path in self.meanings(v) {
            if reads && self.is_secret(&path).is_some() {
                self.deny_secret(&path);
            } else if !reads
                && let Some(what) = paths::protected(&path, self.scope)
                && !what.contains("continuous integration")
            {
                self.find(crate::policy::tools::protected_denied(&path, what));
            }
        }
    }

    pub(super) fn git_push(&mut self, args: &[Val], words: &[&Val]) {
        let has = |names: &[&str]| args.iter().any(|a| names.contains(&a.text.as_str()));
        let short = |l: char| {
            args.iter().any(|a| a.text.starts_with('-') && !a.text.starts_with("--") && a.text.contains(l))
        };
        for (i, a) in args.iter().enumerate() {
            if matches!(a.text.as_str(), "--receive-pack" | "--exec")
                && let Some(line) = args.get(i + 1).cloned()
            {
                self.program(&line.text, &Val::default());
            }
        }
        if args.iter().any(|a| a.taint.any(Taint::SECRET.with(Taint::ENV).with(Taint::FILE))) {
            self.deny("exfil.git", "A name that is pushed carries data of this machine.");
        }
        if has(&["--force", "--mirror", "--delete", "--prune", "--force-if-includes"])
            || short('f')
            || short('d')
            || args.iter().any(|a| a.text.starts_with("--force-with-lease"))
        {
            self.ask("destroy.git", "The push overwrites or deletes what others see. A person has to agree.");
        }
        for line in args
            .iter()
            .filter_map(|a| a.text.strip_prefix("--receive-pack=").or_else(|| a.text.strip_prefix("--exec=")))
        {
            self.program(line, &Val::default());
        }
        if let Some(remote) = words.first() {
            let name = remote.text.clone();
            let added = self.state.vars.contains_key(&format!("_git_remote_{name}"));
            if added
                || name.contains("://")
                || name.contains('@')
                || name.contains(':')
                || name.contains(HOLE)
            {
                self.ask(
                    "exfil.git",
                    "The push goes to an address that the repository does not know. A person has to agree.",
                );
            }
            if remote.taint.any(Taint::LOCAL) {
                self.deny("exfil.address", "The address carries data of this machine.");
            }
        }
        for spec in words.iter().skip(1) {
            if spec.text.starts_with('+') || (spec.text.starts_with(':') && spec.text.len() > 1) {
                self.ask(
                    "destroy.git",
                    "The push overwrites or deletes what others see. A person has to agree.",
                );
            }
        }
    }
}
