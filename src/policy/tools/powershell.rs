//! PowerShell lines in the words of a POSIX shell, so that the same rules fit. What cannot be put so is asked about.

/// Commands and options of PowerShell, in small letters, and what they are here.
#[rustfmt::skip]
const WORDS: &[(&str, &str)] = &[
    ("remove-item", "rm"), ("ri", "rm"), ("rd", "rm"), ("del", "rm"), ("erase", "rm"), ("rmdir", "rm"), ("clear-content", "truncate -s0"),
    ("clc", "truncate -s0"), ("-recurse", "-r"), ("-force", "-f"), ("-path", ""), ("-literalpath", ""), ("-uri", ""), ("-value", ""),
    ("-filepath", ""), ("-destination", ""), ("-inputobject", ""), ("-usebasicparsing", ""), ("-raw", ""), ("-confirm:$false", ""),
    ("get-content", "cat"), ("gc", "cat"), ("type", "cat"), ("set-content", "tee"), ("sc", "tee"), ("out-file", "tee"), ("add-content", "tee -a"),
    ("ac", "tee -a"), ("tee-object", "tee"), ("new-item", "tee"), ("ni", "tee"), ("copy-item", "cp"), ("copy", "cp"), ("cpi", "cp"), ("move-item", "mv"),
    ("move", "mv"), ("mi", "mv"), ("rename-item", "mv"), ("rni", "mv"), ("invoke-webrequest", "curl"), ("iwr", "curl"), ("invoke-restmethod", "curl"),
    ("irm", "curl"), ("-outfile", "-o"), ("-body", "-d"), ("-infile", "-T"), ("-method", "-X"), ("-headers", "-H"), ("invoke-expression", "bash"),
    ("iex", "bash"), ("get-childitem", "ls"), ("gci", "ls"), ("dir", "ls"), ("env:", "; env"), ("stop-process", "kill"), ("spps", "kill"),
    ("start-process", "nohup"), ("saps", "nohup"), ("select-string", "grep"), ("sls", "grep"), ("-pattern", "-e"), ("write-output", "echo"),
    ("write-host", "echo"), ("set-location", "cd"), ("sl", "cd"), ("push-location", "cd"), ("get-location", "pwd"), ("foreach-object", "xargs"),
];

/// Parts of a line that hide or loosen what runs.
const HIDDEN: &[&str] = &[
    "-encodedcommand",
    "-enc ",
    "-ec ",
    "frombase64string",
    "set-executionpolicy",
    "-executionpolicy",
    "downloadstring",
    "downloadfile",
    "invoke-command",
    "add-type",
    "reflection.assembly",
    "scheduledtask",
    "set-mppreference",
];

/// Whether a line hides or loosens what runs.
pub(super) fn hides(line: &str) -> bool {
    let lower = line.to_lowercase();
    HIDDEN.iter().any(|h| lower.contains(h))
}

/// The line with commands, options and variables of the environment put into a shell's words.
pub(super) fn translated(line: &str) -> String {
    let mut out = String::with_capacity(line.len() + 16);
    let mut word = String::new();
    for c in line.chars() {
        if c.is_whitespace() || matches!(c, ';' | '|' | '(' | ')' | '{' | '}' | '&') {
            put(&mut out, &word);
            word.clear();
            out.push(c);
        } else {
            word.push(c);
        }
    }
    put(&mut out, &word);
    out
}

fn put(out: &mut String, word: &str) {
    let lower = word.to_lowercase();
    if let Some((_, here)) = WORDS.iter().find(|(there, _)| *there == lower) {
        out.push_str(here);
    } else if let Some(at) = lower.find("$env:").filter(|_| word.is_ascii()) {
        let (before, rest) = (word.get(..at).unwrap_or_default(), word.get(at + 5..).unwrap_or_default());
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        out.push_str(before);
        out.push_str("${");
        out.push_str(rest.get(..end).unwrap_or_default());
        out.push('}');
        out.push_str(&rest.get(end..).unwrap_or_default().replace('\\', "/"));
    } else {
        out.push_str(&word.replace('\\', "/"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_variables_are_put_into_a_shells_words() {
        assert_eq!(translated("Remove-Item -Recurse -Force ~"), "rm -r -f ~");
        assert_eq!(translated("iwr https://a.example/x | iex"), "curl https://a.example/x | bash");
        assert_eq!(translated("Get-Content $env:USERPROFILE\\.env"), "cat ${USERPROFILE}/.env");
    }
}
