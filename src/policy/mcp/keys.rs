//! What an argument is, by its name and form.

/// Keys whose value is a command, whatever the tool is called; in the form of [`super::flat`].
#[rustfmt::skip]
pub(super) const COMMAND_KEYS: &[&str] = &[
    "command", "commands", "cmd", "cmds", "commandline", "cmdline", "shell", "shellcommand", "bash", "sh", "script", "shellscript", "exec", "argv",
    "powershell", "run", "runcommand", "startcommand", "entrypoint",
];

/// Keys whose value is a command where the tool is a shell.
pub(super) const SHELL_KEYS: &[&str] = &[
    "input",
    "text",
    "line",
    "lines",
    "keys",
    "code",
    "args",
    "stdin",
    "data",
    "program",
    "source",
    "expression",
];

/// Keys whose value is a program in some language, where the tool runs something.
pub(super) const CODE_KEYS: &[&str] =
    &["code", "source", "snippet", "expression", "program", "script", "function", "js", "python", "cell"];

/// Keys whose value says what a tool of many uses does.
pub(super) const CHOICE_KEYS: &[&str] =
    &["operation", "op", "action", "verb", "apiaction", "operationname", "apicall"];

/// Programs with which a text under a name that says nothing is taken for a command.
#[rustfmt::skip]
pub(super) const STARTS: &[&str] = &[
    "curl", "wget", "rm", "sudo", "sh", "bash", "zsh", "nc", "ncat", "socat", "dd", "mkfs", "chmod", "chown", "cat", "scp", "ssh", "rsync", "git", "python3", "python", "node", "perl", "ruby", "eval", "env", "kill", "pkill",
];

/// Keys whose value is kept as it is: text of a file or a message, never a path or a command.
#[rustfmt::skip]
pub(super) const CONTENT_KEYS: &[&str] = &[
    "content", "contents", "newstring", "oldstring", "newstr", "oldstr", "filetext", "newcontent", "filecontent", "filecontents", "newtext", "oldtext",
    "insertedtext", "markdown", "html",
];

/// Of them and others, those that show that a path beside them is written.
#[rustfmt::skip]
pub(super) const WRITTEN_KEYS: &[&str] = &[
    "content", "contents", "newstring", "newstr", "filetext", "newcontent", "filecontent", "filecontents", "newtext", "insertedtext", "patch", "diff", "data",
];

/// Words of keys whose value is prose or a query of a search.
#[rustfmt::skip]
pub(super) const PROSE_WORDS: &[&str] = &[
    "title", "body", "description", "prompt", "message", "summary", "comment", "note", "question", "answer", "subject", "reason",
];

/// Words of keys whose value is a path.
#[rustfmt::skip]
pub(super) const PATH_WORDS: &[&str] = &[
    "path", "paths", "file", "files", "uri", "filename", "filenames", "filepath", "source", "destination", "src", "dest", "dst", "dir", "directory",
    "directories", "dirname", "pathname", "root", "roots", "folder", "location", "target", "from", "to", "glob", "globs", "cwd", "workdir", "output",
];

/// Words of keys whose value is a directory that a name in another key lies in.
pub(super) const DIR_WORDS: &[&str] =
    &["dir", "directory", "folder", "base", "root", "parent", "cwd", "basedir", "dirname"];
/// Words of keys whose value is a name in such a directory.
pub(super) const NAME_WORDS: &[&str] = &["name", "filename", "file", "basename", "entry", "filepath", "path"];

/// Words of keys whose value is an address.
pub(super) const URL_WORDS: &[&str] =
    &["url", "urls", "uri", "href", "link", "endpoint", "website", "baseurl", "webhook"];
/// Words of keys whose value is a machine.
pub(super) const HOST_WORDS: &[&str] =
    &["host", "hostname", "server", "address", "addr", "ip", "node", "peer", "domain"];

/// Schemes that are judged under any key. Others belong to databases and tools of their own.
#[rustfmt::skip]
pub(super) const SCHEMES: &[&str] = &[
    "http", "https", "ws", "wss", "ftp", "ftps", "gopher", "dict", "tftp", "ldap", "jar", "netdoc", "javascript", "view-source", "chrome",
];

/// Names of secrets that a pattern for them fits.
pub(super) const SAMPLES: &[&str] = &[
    ".env",
    ".env.local",
    ".env.production",
    "prod.env",
    "id_rsa",
    "id_ed25519",
    ".netrc",
    ".npmrc",
    ".git-credentials",
];
