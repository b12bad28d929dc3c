//! Programs that copy out, or speak to a forge or a cloud.

use super::eval::Machine;
use super::options::Options;
use super::value::{Taint, Val};

impl Machine<'_> {
    pub(super) fn copy_out(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let o = Options::split(
            args,
            &[
                "-e",
                "--rsh",
                "-i",
                "-P",
                "-o",
                "-F",
                "-S",
                "-c",
                "-l",
                "--exclude",
                "--include",
                "--exclude-from",
                "--files-from",
                "--rsync-path",
                "--filter",
                "-f",
                "-J",
                "--password-file",
                "-b",
                "-u",
            ],
            false,
        );
        for shell in o.values(&["-e", "--rsh", "--rsync-path"]) {
            if base == "rsync" {
                self.text(&shell, &[], &Val::default());
            } else if base == "lftp" {
                if shell.text.contains("put") || shell.text.contains("mirror -R") {
                    self.ask("exfil.copy", "The command copies files to another machine.");
                }
                if let Some(line) = shell.text.split('!').nth(1) {
                    let line = line.to_owned();
                    self.program(&line, &Val::default());
                }
            }
        }
        for option in o.values(&["-o", "-S"]) {
            if base == "scp" || base == "sftp" {
                let value = option
                    .text
                    .split_once('=')
                    .filter(|(n, _)| n.to_lowercase() == "proxycommand")
                    .map(|(_, v)| v.to_owned());
                if let Some(line) = value.or_else(|| (option.text.contains('/')).then(|| option.text.clone()))
                {
                    self.program(&line, &Val::default());
                }
            }
        }
        let ops = &o.operands;
        let remote = |v: &Val| {
            let t = v.text.as_str();
            t.contains("://")
                || (t.contains(':')
                    && !t.starts_with(['/', '.'])
                    && !t.split(':').next().unwrap_or_default().contains('/'))
        };
        match base {
            "ftp" | "tftp" | "ncftpput" | "croc" | "wormhole" | "magic-wormhole" | "smbclient" | "sftp" => {
                let sends = base != "croc" && base != "wormhole" && base != "magic-wormhole"
                    || ops.first().is_some_and(|a| a.text == "send");
                if sends
                    && (stdin.text.contains("put")
                        || !stdin.is_known()
                        || matches!(
                            base,
                            "croc" | "wormhole" | "magic-wormhole" | "ncftpput" | "tftp" | "smbclient"
                        ))
                {
                    self.ask(
                        "exfil.copy",
                        format!("{base} copies files to another machine. A person has to agree."),
                    );
                }
                if base == "sftp" || base == "ftp" {
                    self.ask("net.transfer", format!("{base} opens a file transfer. A person has to agree."));
                }
            }
            "rclone" | "s3cmd" | "gsutil" | "azcopy" | "mc" | "b2" | "lftp" | "unison" => {
                let verb = ops.first().map(|a| a.text.clone()).unwrap_or_default();
                if matches!(
                    verb.as_str(),
                    "copy"
                        | "sync"
                        | "move"
                        | "copyto"
                        | "moveto"
                        | "put"
                        | "cp"
                        | "mv"
                        | "rsync"
                        | "mirror"
                        | "upload_file"
                        | "upload-file"
                        | "file"
                        | "bisync"
                        | "rcat"
                        | "serve"
                        | "mount"
                ) && (ops.last().is_some_and(remote)
                    || matches!(
                        verb.as_str(),
                        "put" | "upload-file" | "upload_file" | "rcat" | "serve" | "mirror"
                    ))
                {
                    self.ask(
                        "exfil.copy",
                        format!("{base} copies files to another machine. A person has to agree."),
                    );
                }
                if matches!(
                    verb.as_str(),
                    "delete" | "purge" | "rb" | "rm" | "del" | "deletefile" | "cleanup" | "config"
                ) {
                    self.ask(
                        "destroy.cloud",
                        format!("{base} {verb} deletes or reveals data elsewhere. A person has to agree."),
                    );
                }
            }
            _ => {
                if let Some((to, from)) = ops.split_last()
                    && remote(to)
                    && from.iter().any(|f| !remote(f))
                {
                    self.ask(
                        "exfil.copy",
                        format!("{base} copies files to another machine. A person has to agree."),
                    );
                } else if let Some((to, from)) = ops.split_last() {
                    self.write_file(to, false);
                    self.lands_in(to);
                    self.gathers(from, args);
                }
                if base == "rsync"
                    && args.iter().any(|a| a.text.starts_with("--del"))
                    && let Some(to) = ops.last().filter(|t| !remote(t)).cloned()
                {
                    self.removal(&to, true, false);
                }
            }
        }
        for a in ops {
            if !remote(a) {
                self.read_file(a);
            }
            if a.taint.any(Taint::LOCAL) && remote(a) {
                self.deny("exfil.address", "The address carries data of this machine.");
            }
        }
        Val::unknown(Taint::NET)
    }

    /// GitHub and its like.
    pub(super) fn forge(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let words: Vec<&str> = args.iter().map(|a| a.text.as_str()).filter(|a| !a.starts_with('-')).collect();
        for a in args {
            if a.taint.any(Taint::SECRET.with(Taint::ENV)) {
                self.deny("exfil.secret", format!("{base} would publish a secret."));
            }
        }
        let valued = [
            "--body-file",
            "-F",
            "-b",
            "--body",
            "-t",
            "--title",
            "-f",
            "--field",
            "--raw-field",
            "--input",
            "-R",
            "--repo",
            "-H",
            "--header",
            "-X",
            "--method",
            "-q",
            "--jq",
            "-d",
            "--desc",
            "--notes",
            "-n",
            "--notes-file",
        ];
        let o = Options::split(args, &valued, false);
        for file in o.values(&["--body-file", "--input", "--notes-file"]) {
            self.read_file(&file);
        }
        for field in o.values(&["-F", "--field"]) {
            if let Some((_, file)) = field.text.split_once("=@") {
                self.read_file(&field.map(file));
            } else if !field.text.contains('=') {
                self.read_file(&field);
            }
        }
        match words.as_slice() {
            ["auth", "token", ..] => self.deny("secret.read", "The command prints the access token."),
            ["auth", "status", ..]
                if args.iter().any(|a| matches!(a.text.as_str(), "-t" | "--show-token")) =>
            {
                self.deny("secret.read", "The command prints the access token.")
            }
            ["auth", "login" | "refresh" | "setup-git" | "logout", ..] => {
                self.ask("persist.access", format!("{base} auth changes who the machine acts as."))
            }
            ["gist", "create" | "edit", ..] => {
                self.ask("exfil.publish", "The command publishes files. A person has to agree.")
            }
            ["repo", "delete" | "archive" | "rename" | "edit" | "transfer", ..] => self.ask(
                "destroy.repository",
                "The command changes or deletes a repository for others. A person has to agree.",
            ),
            ["repo", "create", ..] => self.ask(
                "exfil.publish",
                "The command makes a repository for others to see. A person has to agree.",
            ),
            ["release", "create" | "delete" | "upload" | "edit", ..] => {
                self.ask("publish.release", "The command changes a release. A person has to agree.")
            }
            ["secret" | "variable", "set" | "delete" | "remove", ..]
            | ["ssh-key" | "gpg-key" | "deploy-key", "add" | "delete", ..]
            | ["repo", "deploy-key", ..] => {
                self.ask(
                    "persist.access",
                    "The command changes keys or secrets of a repository. A person has to agree.",
                );
            }
            ["workflow", "run" | "enable" | "disable", ..]
            | ["extension", "install" | "upgrade", ..]
            | ["alias", "set" | "import", ..]
            | ["codespace", ..] => {
                self.ask(
                    "run.elsewhere",
                    format!(
                        "{base} {} runs or installs something. A person has to agree.",
                        words.join(" ").chars().take(40).collect::<String>()
                    ),
                );
            }
            ["pr", "merge", ..] if args.iter().any(|a| a.text == "--admin") => {
                self.ask("persist.access", "The command merges past the checks.")
            }
            ["issue" | "pr" | "run", "delete", ..] => {
                self.ask("destroy.repository", "The command deletes something for others.")
            }
            ["api", ..] => {
                let method = o.values(&["-X", "--method"]).first().map(|v| v.text.to_uppercase());
                let writes = method.as_deref().is_some_and(|m| m != "GET")
                    || method.is_none()
                        && o.has(&["-f", "-F", "--field", "--raw-field", "--input"])
                        && !words.iter().any(|w| w.contains("graphql"));
                if writes {
                    self.ask(
                        "exfil.publish",
                        "The command changes something at the forge. A person has to agree.",
                    );
                }
            }
            _ => {}
        }
        if args.iter().any(|a| matches!(a.text.as_str(), "delete" | "delete-asset"))
            && !matches!(words.first(), Some(&"api"))
        {
            self.ask("destroy.repository", "The command deletes something for others.");
        }
        if words.first() == Some(&"gist") && stdin.taint.any(Taint::LOCAL) {
            self.deny("exfil.publish", "The command publishes data of this machine.");
        }
        Val::unknown(Taint::NET)
    }

    pub(super) fn cloud(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let words: Vec<String> =
            args.iter().map(|a| a.text.clone()).filter(|a| !a.starts_with('-')).collect();
        let line = words.join(" ");
        let verb = |list: &[&str]| {
            words.iter().take(5).any(|w| list.iter().any(|v| w == v || w.starts_with(&format!("{v}-"))))
        };
        for a in args {
            self.read_file(a);
            if let Some((_, file)) = a.text.split_once("file://").or_else(|| a.text.split_once("fileb://")) {
                self.read_file(&a.map(file));
            }
        }
        if verb(&[
            "delete",
            "terminate",
            "rb",
            "destroy",
            "deregister",
            "batch",
            "send",
            "change",
            "modify",
            "reset",
            "revoke",
            "disable",
            "detach",
            "update",
            "remove",
            "purge",
            "rm",
            "wipe",
            "schedule-key-deletion",
            "put-bucket-policy",
            "empty",
        ]) || args.iter().any(|a| a.text == "--delete")
        {
            self.ask(
                "destroy.cloud",
                format!("{base} would delete something in the cloud. A person has to agree."),
            );
        }
        if [
            "get-secret-value",
            "get-session-token",
            "get-federation-token",
            "export-credentials",
            "print-access-token",
            "print-identity-token",
            "get-access-token",
            "get-login-password",
            "get-authorization-token",
            "assume-role",
            "secrets versions access",
            "keyvault secret show",
            "account get-access-token",
            "get-credentials",
            "configure get",
            "configure export",
            "print-refresh-token",
            "list-keys",
            "get-parameter",
            "storage account keys",
            "keys list",
            "acr credential show",
            "describe-secret",
        ]
        .iter()
        .any(|s| {
            line.contains(s)
                && (s != &"get-parameter" || args.iter().any(|a| a.text == "--with-decryption"))
                && s != &"describe-secret"
        }) {
            self.deny("secret.read", format!("{base} would print a credential."));
        }
        if verb(&[
            "create-access-key",
            "create-user",
            "attach-user-policy",
            "attach-role-policy",
            "put-user-policy",
            "create-login-profile",
            "add-iam-policy-binding",
            "authorize-security-group-ingress",
            "create-key",
            "update-assume-role-policy",
            "put-role-policy",
        ]) {
            self.ask("persist.access", format!("{base} would change who has access. A person has to agree."));
        }
        let copies = words.iter().any(|w| {
            matches!(w.as_str(), "cp" | "sync" | "mv" | "put-object" | "upload" | "upload-batch" | "rsync")
        });
        let to =
            words.iter().rev().find(|w| w.contains("://") || w.contains('/')).cloned().unwrap_or_default();
        if copies
            && (["s3://", "gs://", "https://"].iter().any(|p| to.starts_with(p))
                || words.iter().any(|w| matches!(w.as_str(), "put-object" | "upload" | "upload-batch")))
        {
            self.ask("exfil.copy", format!("{base} copies files to the cloud. A person has to agree."));
        }
        if stdin.taint.any(Taint::LOCAL) && copies {
            self.deny("exfil.copy", format!("{base} copies data of this machine to the cloud."));
        }
        Val::unknown(Taint::NET)
    }
}
