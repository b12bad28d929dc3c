//! Programs that administer the machine, and those that show its secrets.

use super::eval::Machine;
use super::options::Options;
use super::value::Val;

impl Machine<'_> {
    /// Programs that change the machine: services, accounts, disks, schedules, packages, power.
    pub(super) fn administers(&mut self, base: &str, args: &[Val], stdin: &Val) -> bool {
        let text: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        let has = |w: &[&str]| text.iter().any(|t| w.contains(t));
        let help = has(&["--help", "--version"]);
        if help {
            return false;
        }
        match base {
            "crontab" => {
                if !has(&["-l"]) {
                    self.ask(
                        "persist.schedule",
                        "The command changes what runs on a schedule. A person has to agree.",
                    );
                }
            }
            "systemctl" | "service" | "rc-service" | "rc-update" | "update-rc.d" | "chkconfig"
            | "initctl" | "launchctl" | "loginctl" | "sv" => {
                let read = has(&[
                    "status",
                    "show",
                    "list-units",
                    "is-active",
                    "is-enabled",
                    "cat",
                    "list-timers",
                    "list-unit-files",
                    "list",
                    "print",
                    "is-failed",
                    "get-default",
                    "--status-all",
                    "list-sessions",
                    "list-jobs",
                    "list-dependencies",
                ]);
                if !read {
                    self.ask(
                        "persist.service",
                        format!("{base} changes a service of the machine. A person has to agree."),
                    );
                }
            }
            "vagrant" | "multipass" | "virsh" | "VBoxManage" | "qm" | "lxc" | "incus" => {
                if has(&["destroy", "delete", "undefine", "unregistervm", "purge", "rm"]) {
                    self.ask(
                        "destroy.machine",
                        format!("{base} would delete a machine. A person has to agree."),
                    );
                }
            }
            "killall5" => self.ask("destroy.processes", "The command signals every process."),
            "shutdown" | "reboot" | "poweroff" | "halt" | "init" | "telinit" | "kexec"
            | "systemd-sysusers" => self.ask("destroy.power", "The command stops the machine."),
            "mkfs" | "wipefs" | "fdisk" | "sfdisk" | "parted" | "sgdisk" | "gdisk" | "cfdisk" | "mkswap"
            | "blkdiscard" | "hdparm" | "cryptsetup" | "pvremove" | "vgremove" | "lvremove" | "zpool"
            | "zfs" | "mdadm" | "badblocks" | "nvme" | "dmsetup" | "losetup" | "swapoff" | "umount"
            | "mount" | "fsck" | "diskutil" | "e2fsck" | "resize2fs" | "tune2fs" | "btrfs" => {
                if !(has(&["-l", "--list", "list", "status", "info", "-n"])
                    || base == "mount" && text.is_empty())
                {
                    self.ask(
                        "destroy.disk",
                        format!("{base} changes disks or mounts. A person has to agree."),
                    );
                }
            }
            _ if base.starts_with("mkfs.") || base.starts_with("fsck.") => {
                self.ask("destroy.disk", "The command overwrites a file system.")
            }
            "useradd" | "usermod" | "userdel" | "groupadd" | "groupmod" | "groupdel" | "adduser"
            | "deluser" | "passwd" | "chpasswd" | "gpasswd" | "visudo" | "vipw" | "chsh" | "chfn"
            | "newusers" | "pwconv" | "dscl" | "sysadminctl" => {
                self.ask(
                    "persist.account",
                    format!("{base} changes accounts of the machine. A person has to agree."),
                );
            }
            "setcap"
            | "insmod"
            | "modprobe"
            | "rmmod"
            | "sysctl"
            | "iptables"
            | "ip6tables"
            | "nft"
            | "ufw"
            | "firewall-cmd"
            | "setenforce"
            | "aa-disable"
            | "aa-teardown"
            | "apparmor_parser"
            | "auditctl"
            | "update-alternatives"
            | "alternatives"
            | "ldconfig"
            | "update-ca-certificates"
            | "trust"
            | "certutil"
            | "spctl"
            | "csrutil"
            | "tccutil"
            | "defaults"
            | "dpkg-divert"
            | "authselect"
            | "pam-auth-update"
            | "grub-install"
            | "update-grub"
            | "efibootmgr"
            | "bcdedit"
            | "reg"
            | "ip"
            | "route"
            | "ifconfig"
            | "tc"
            | "nmcli"
            | "hostnamectl"
            | "timedatectl"
            | "localectl" => {
                let reads = match base {
                    "sysctl" => !has(&["-w", "-p"]) && !text.iter().any(|t| t.contains('=')),
                    "iptables" | "ip6tables" => has(&["-L", "-S", "-nL", "--list", "-vnL"]),
                    "nft" | "ufw" => has(&["list", "status"]),
                    "ip" | "route" | "ifconfig" | "nmcli" | "tc" => {
                        !has(&["add", "del", "delete", "set", "flush", "replace", "up", "down"])
                    }
                    "ldconfig" => has(&["-p"]),
                    "hostnamectl" | "timedatectl" | "localectl" => {
                        text.is_empty() || has(&["status", "show"])
                    }
                    "defaults" => has(&["read"]),
                    _ => false,
                };
                if !reads {
                    self.ask(
                        "persist.system",
                        format!("{base} changes how the machine works or is guarded. A person has to agree."),
                    );
                }
            }
            "terraform" | "tofu" | "terragrunt" | "pulumi" | "cdk" | "cdktf" | "sam" | "ansible"
            | "ansible-playbook" | "chef" | "puppet" | "salt" | "helm" | "helmfile" | "packer" | "nomad"
            | "consul" => {
                let acts = has(&[
                    "destroy",
                    "apply",
                    "delete",
                    "uninstall",
                    "up",
                    "taint",
                    "deploy",
                    "import",
                    "rollback",
                    "upgrade",
                    "install",
                    "force-unlock",
                ]) || text.windows(2).any(|w| matches!(w, ["state", "rm" | "push" | "mv"]))
                    || base == "ansible"
                    || base == "ansible-playbook" && !has(&["--check", "--syntax-check"]);
                if acts {
                    self.ask(
                        "destroy.infrastructure",
                        format!("{base} would change running infrastructure. A person has to agree."),
                    );
                }
                if has(&["output"]) && has(&["-raw", "-json"])
                    || text.windows(2).any(|w| matches!(w, ["state", "pull" | "show"]))
                    || has(&["--show-secrets"])
                {
                    self.ask("secret.read", "The output can hold secrets.");
                }
            }
            "vault" | "consul-template" => {
                if has(&["read", "get", "print", "list", "login", "kv", "token", "unwrap"]) {
                    self.deny("secret.read", "The command prints secrets.");
                }
            }
            "apt" | "apt-get" | "aptitude" | "dnf" | "yum" | "zypper" | "pacman" | "apk" | "snap"
            | "flatpak" | "dpkg" | "rpm" | "brew" | "port" | "nix-env" | "emerge" => {
                if has(&[
                    "remove",
                    "purge",
                    "autoremove",
                    "uninstall",
                    "erase",
                    "-R",
                    "-Rns",
                    "-Rs",
                    "-e",
                    "del",
                    "--purge",
                    "add-repository",
                ]) || text
                    .iter()
                    .any(|t| t.contains("://") || t.ends_with(".deb") && t.starts_with("http"))
                {
                    self.ask(
                        "persist.packages",
                        format!("{base} removes or adds software of unusual origin. A person has to agree."),
                    );
                }
                if let Some(at) = text.iter().position(|t| *t == "-o") {
                    let option = text.get(at + 1).copied().unwrap_or_default();
                    if option.contains("Invoke") {
                        let line = option.split_once('=').map(|(_, v)| v.to_owned()).unwrap_or_default();
                        self.program(&line, stdin);
                    }
                }
            }
            "add-apt-repository" | "apt-key" | "rpmkeys" => {
                self.ask("persist.packages", "The command trusts another source of software.")
            }
            "code" | "cursor" | "codium" | "code-insiders" | "windsurf" => {
                if text.iter().any(|t| t.contains("extension") && !t.contains("list")) {
                    self.ask("persist.editor", "The command installs something into the editor.");
                }
            }
            "docker-machine" | "minikube" | "kind" | "k3d" | "eksctl" | "kops" => {
                if has(&["rm", "delete", "stop"]) {
                    self.ask(
                        "destroy.cluster",
                        format!("{base} would delete a cluster or a machine. A person has to agree."),
                    );
                }
            }
            "ssh-add" | "ssh-keygen" => {
                let o = Options::split(
                    args,
                    &["-f", "-t", "-b", "-C", "-N", "-P", "-m", "-I", "-s", "-R", "-F"],
                    false,
                );
                for file in o.values(&["-f"]) {
                    if o.has(&["-y", "-p", "-e"]) {
                        self.read_file(&file);
                    } else if !o.has(&["-l", "-F", "-R"]) {
                        self.write_file(&file, true);
                    }
                }
                if base == "ssh-add" && !has(&["-l", "-L"]) {
                    self.ask("secret.use", "The command loads or drops keys of the operator.");
                }
                return true;
            }
            "ssh-agent" | "keychain" => return false,
            _ => return false,
        }
        true
    }

    /// Verbs that have something run from now on.
    pub(super) fn persists(&mut self, base: &str, args: &[Val]) {
        let first: Vec<&str> =
            args.iter().map(|a| a.text.as_str()).filter(|a| !a.starts_with('-')).take(2).collect();
        let hit = matches!(
            (base, first.as_slice()),
            ("direnv", ["allow" | "permit" | "grant", ..])
                | ("mise", ["trust", ..])
                | ("asdf", ["plugin" | "plugin-add", ..])
                | ("pre-commit" | "lefthook" | "husky" | "overcommit", ["install" | "init" | "add", ..])
                | ("npx" | "bunx", ["husky", ..])
                | ("go", ["env", ..])
        ) && (base != "go" || args.iter().any(|a| a.text == "-w"));
        if hit {
            self.ask(
                "persist.hook",
                format!("{base} has something run by itself from now on. A person has to agree."),
            );
        }
        if base == "history" && args.iter().any(|a| matches!(a.text.as_str(), "-w" | "-a")) {
            for file in args.iter().filter(|a| !a.text.starts_with('-')) {
                self.write_file(file, true);
            }
        }
    }

    /// Programs that print credentials.
    pub(super) fn reveals(&mut self, base: &str, args: &[Val]) -> bool {
        let text: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
        let has = |w: &[&str]| text.iter().any(|t| w.contains(t));
        let hit = match base {
            "gpg" | "gpg2" => {
                text.iter().any(|t| t.starts_with("--export-secret"))
                    || has(&[
                        "--export-secret-keys",
                        "--export-secret-subkeys",
                        "--decrypt",
                        "-d",
                        "--export-ownertrust",
                        "--delete-secret-keys",
                        "--delete-secret-key",
                    ])
            }
            "pass" | "gopass" | "passage" => {
                !has(&["ls", "list", "find", "--help", "version"]) && !text.is_empty()
            }
            "security" => {
                text.iter().any(|t| t.starts_with("find-") || t.starts_with("dump-") || *t == "export")
            }
            "secret-tool" | "kwallet-query" | "lssecret" | "keyring" => true,
            "op" | "bw" | "lpass" | "dashlane" | "keepassxc-cli" | "rbw" | "1password" => {
                !has(&["--version", "--help", "status"]) && !text.is_empty()
            }
            "sops" | "ansible-vault" | "age" | "eyaml" | "git-crypt" | "blackbox_cat" => {
                has(&[
                    "-d",
                    "--decrypt",
                    "decrypt",
                    "view",
                    "edit",
                    "exec-env",
                    "exec-file",
                    "unlock",
                    "decrypt-file",
                ]) || text.iter().any(|t| t.starts_with("dec"))
            }
            "heroku" | "vercel" | "netlify" | "flyctl" | "fly" | "railway" | "doppler" | "wrangler"
            | "supabase" | "firebase" | "stripe" | "infisical" | "chamber" | "eas" | "render" => {
                text.iter().any(|t| {
                    matches!(
                        *t,
                        "config"
                            | "env"
                            | "secrets"
                            | "variables"
                            | "env:get"
                            | "config:get"
                            | "env:list"
                            | "auth:token"
                            | "env:pull"
                    )
                }) && !has(&["set", "--help"])
            }
            "getfattr" => false,
            "unshadow" | "john" | "hashcat" | "mimipenguin" | "lazagne" => true,
            "strings" | "gcore" | "gdbserver" => base == "gcore",
            "xclip" | "xsel" | "pbpaste" | "wl-paste" => {
                has(&["-o", "--output"]) || matches!(base, "pbpaste" | "wl-paste")
            }
            "import" | "scrot" | "screencapture" | "gnome-screenshot" | "grim" => false,
            "journalctl" | "dmesg" => false,
            "ps" => false,
            _ => false,
        };
        if hit {
            self.deny("secret.read", format!("{base} would print credentials of the operator."));
            for a in args {
                self.read_file(a);
            }
        }
        hit
    }
}
