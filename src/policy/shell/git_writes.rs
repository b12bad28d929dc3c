//! Files and trees that git makes where it is told, and files that it prints or takes in by name.

use super::eval::Machine;
use super::options::Options;
use super::value::Val;

/// Options with a value that these commands share, so that it is no operand.
const VALUED: &[&str] = &[
    "--branch",
    "--depth",
    "--format",
    "--message",
    "--origin",
    "--output",
    "--output-directory",
    "--prefix",
    "--reason",
    "--reference",
    "--separate-git-dir",
    "--suffix",
    "-B",
    "-b",
    "-m",
    "-o",
];

/// Those of `git clone`.
#[rustfmt::skip]
const CLONE: &[&str] = &[
    "--branch", "--config", "--depth", "--filter", "--jobs", "--origin", "--reference", "--separate-git-dir", "--template", "--upload-pack", "-b",
    "-c", "-j", "-o", "-u",
];

impl Machine<'_> {
    /// Judges the writes and reads of `git SUB` that depend on nothing but its arguments.
    pub(super) fn git_writes(&mut self, sub: &str, args: &[Val]) {
        let o = Options::split(args, if sub == "clone" { CLONE } else { VALUED }, false);
        let first = o.operands.first().map(|a| a.text.as_str()).unwrap_or_default();
        let mut files: Vec<Val> = Vec::new();
        let mut dirs: Vec<Val> = o.values(&["--separate-git-dir"]);
        match (sub, first) {
            ("archive", _) => files.extend(o.values(&["--output", "-o"])),
            ("diff" | "log" | "show" | "whatchanged" | "range-diff", _) => {
                files.extend(o.values(&["--output"]));
            }
            ("bundle", "create") => files.extend(o.operands.get(1).cloned()),
            ("fast-export", _) => files.extend(
                args.iter().filter_map(|a| a.text.strip_prefix("--export-marks=").map(|file| a.map(file))),
            ),
            ("format-patch" | "bugreport" | "diagnose", _) => {
                dirs.extend(o.values(&["--output-directory", "-o"]));
            }
            ("mailsplit", _) => dirs.extend(o.values(&["-o"])),
            ("checkout-index", _) => dirs.extend(o.values(&["--prefix"])),
            ("worktree", "add") => dirs.extend(o.operands.get(1).cloned()),
            ("submodule", "add") => dirs.extend(o.operands.get(2).cloned()),
            ("clone", _) => dirs.extend(o.operands.get(1).cloned()),
            ("init", _) => dirs.extend(o.operands.first().cloned()),
            ("interpret-trailers" | "mailinfo" | "merge-file" | "fmt-merge-msg" | "commit-tree", _) => {
                let named = Options::split(args, &["-F", "--file"], false);
                for file in o.operands.iter().chain(&named.values(&["-F", "--file"])) {
                    self.read_file(file);
                }
            }
            ("stash", "push" | "save") | ("update-index", _) => {
                let secret =
                    o.operands.iter().any(|a| self.meanings(a).iter().any(|p| self.is_secret(p).is_some()));
                let drops = o.has(&["--assume-unchanged", "--force-remove", "--remove", "--skip-worktree"]);
                if secret && !drops {
                    self.ask(
                        "exfil.git",
                        "The command puts a secret file into the repository. Add it to .gitignore instead.",
                    );
                }
            }
            _ => {}
        }
        for file in files {
            self.write_file(&file, true);
        }
        for dir in dirs {
            self.write_file(&dir, false);
            self.lands_in(&dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_order() {
        for table in [VALUED, CLONE] {
            assert!(table.windows(2).all(|w| w[0] < w[1]), "{table:?}");
        }
    }
}
