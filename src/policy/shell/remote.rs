//! Programs that run a command in another place: another machine, a container, a cluster.

use super::carry::joined;
use super::eval::Machine;
use super::options::Options;
use super::value::{Taint, Val};
use crate::policy::paths;
use std::path::Path;

impl Machine<'_> {
    pub(super) fn ssh(&mut self, args: &[Val], stdin: &Val) -> Val {
        self.reaches = true;
        let o = Options::split(
            args,
            &[
                "-p", "-i", "-l", "-o", "-F", "-L", "-R", "-D", "-J", "-W", "-b", "-c", "-E", "-m", "-S",
                "-w", "-e", "-I", "-O", "-Q",
            ],
            true,
        );
        for option in o.values(&["-o"]) {
            let (name, value) = option.text.split_once(['=', ' ']).unwrap_or((&option.text, ""));
            if matches!(
                name.trim().to_lowercase().as_str(),
                "proxycommand" | "localcommand" | "knownhostscommand" | "remotecommand"
            ) {
                let value = value.trim().to_owned();
                self.program(&value, &Val::default());
            }
        }
        if o.has(&["-R", "-D", "-w"]) {
            self.ask("net.tunnel", "The command opens a tunnel into this machine. A person has to agree.");
        }
        if stdin.taint.any(Taint::LOCAL) {
            self.deny("exfil.ssh", "The command sends data of this machine to another one.");
        }
        if o.operands.first().is_some_and(|host| host.taint.any(Taint::LOCAL)) {
            self.deny("exfil.ssh", "The address carries data of this machine.");
        }
        if stdin.taint.any(Taint::NET) {
            self.ask("run.fetched", "Another machine would be given what a third one answers.");
        }
        for file in o.values(&["-E"]) {
            self.write_file(&file, false);
        }
        for file in o.values(&["-F"]) {
            let settings = self.content(&file);
            for line in settings.text.lines().take(1_000) {
                let (name, value) = line.trim().split_once([' ', '=']).unwrap_or_default();
                if matches!(
                    name.to_lowercase().as_str(),
                    "proxycommand" | "localcommand" | "knownhostscommand"
                ) {
                    self.program(value, &Val::default());
                }
            }
        }
        let rest = o.operands.get(1..).unwrap_or_default();
        if !rest.is_empty() {
            let line = joined(rest);
            if line.taint.any(Taint::LOCAL) {
                self.deny("exfil.ssh", "The command sends data of this machine to another one.");
            }
            self.text(&line, &[], &Val::default());
        }
        Val::unknown(Taint::NET)
    }

    pub(super) fn container(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let mut rest: Vec<Val> = args.to_vec();
        // An option of the client can name another machine's service, or the settings that do.
        let here = args.first().is_some_and(|a| !a.text.starts_with('-'));
        if base != "docker-compose" {
            while rest.first().is_some_and(|a| a.text.starts_with('-')) {
                let valued =
                    matches!(rest[0].text.as_str(), "-H" | "--host" | "-c" | "--context" | "--config");
                if matches!(rest[0].text.as_str(), "-H" | "--host") {
                    self.ask("run.container", "The command talks to another machine's container service.");
                }
                rest.drain(..(1 + usize::from(valued)).min(rest.len()));
            }
        }
        if base == "docker-compose" || rest.first().is_some_and(|a| a.text == "compose") {
            if base != "docker-compose" {
                rest.remove(0);
            }
            while rest.first().is_some_and(|a| a.text.starts_with('-')) {
                let valued = matches!(
                    rest[0].text.as_str(),
                    "-f" | "--file" | "-p" | "--project-name" | "--env-file" | "--profile"
                );
                rest.drain(..(1 + usize::from(valued)).min(rest.len()));
            }
            if rest.first().is_some_and(|a| a.text == "config") {
                return Val::unknown(Taint::ENV);
            }
            if rest.first().is_some_and(|a| a.text == "rm")
                && rest.iter().any(|a| a.text.starts_with('-') && a.text.contains('v'))
            {
                self.ask("destroy.container", "The command deletes containers and the volumes they hold.");
            }
            if rest.first().is_some_and(|a| a.text == "down")
                && rest.iter().any(|a| matches!(a.text.as_str(), "-v" | "--volumes" | "-vt"))
            {
                self.ask("destroy.container", "The command deletes the volumes and the data in them.");
            }
        }
        let sub = rest.first().map(|a| a.text.clone()).unwrap_or_default();
        let mut more: Vec<Val> = rest.get(1..).unwrap_or_default().to_vec();
        let mut sub = sub;
        if matches!(
            sub.as_str(),
            "container" | "image" | "volume" | "system" | "network" | "builder" | "buildx"
        ) {
            let inner = more.first().map(|a| a.text.clone()).unwrap_or_default();
            if matches!(inner.as_str(), "prune" | "rm" | "remove" | "reset") {
                self.ask("destroy.container", "The command deletes containers' data. A person has to agree.");
            }
            if sub == "container" && !more.is_empty() {
                sub = inner;
                more.remove(0);
            }
        }
        match sub.as_str() {
            "run" | "exec" | "create" => {
                #[rustfmt::skip]
                let valued = ["-v", "--volume", "--mount", "-e", "--env", "--env-file", "-w", "--workdir", "-u", "--user", "--name", "-p", "--publish", "--network", "--net", "--entrypoint", "-h", "--hostname", "-m", "--memory", "--cpus", "-l", "--label", "--add-host", "--device", "--cap-add", "--security-opt", "--pid", "--ipc", "--ulimit", "--platform", "--pull", "--restart", "--gpus", "--tmpfs", "--index", "--userns", "--uts", "--cgroupns"];
                let o = Options::split(&more, &valued, true);
                if o.has(&["--privileged"])
                    || o.values(&["--pid", "--net", "--network", "--ipc", "--userns", "--uts", "--cgroupns"])
                        .iter()
                        .any(|v| v.text == "host")
                        && o.has(&["--pid", "--userns"])
                    || o.has(&["--device"])
                    || o.values(&["--cap-add"]).iter().any(|c| {
                        matches!(
                            c.text.to_uppercase().trim_start_matches("CAP_"),
                            "ALL" | "SYS_ADMIN" | "SYS_PTRACE" | "SYS_MODULE" | "DAC_READ_SEARCH"
                        )
                    })
                {
                    self.ask("run.container", "The container would be allowed to control this machine.");
                }
                let mut mounts: Vec<(String, String)> = Vec::new();
                for v in o.values(&["-v", "--volume"]) {
                    let mut parts = v.text.split(':');
                    mounts.push((
                        parts.next().unwrap_or_default().to_owned(),
                        parts.next().unwrap_or_default().to_owned(),
                    ));
                }
                for v in o.values(&["--mount"]) {
                    let part = |k: &[&str]| {
                        v.text
                            .split(',')
                            .find_map(|p| {
                                p.split_once('=').filter(|(n, _)| k.contains(n)).map(|(_, v)| v.to_owned())
                            })
                            .unwrap_or_default()
                    };
                    mounts.push((part(&["src", "source"]), part(&["dst", "target", "destination"])));
                }
                for (from, _) in &mounts {
                    if from.is_empty() || !from.contains(['/', '.', '~']) {
                        continue;
                    }
                    let from = Val::known(from.clone());
                    for path in self.meanings(&from) {
                        if path.ends_with("docker.sock")
                            || path.ends_with("podman.sock")
                            || path.ends_with("containerd.sock")
                        {
                            self.ask(
                                "run.container",
                                "The container would control the machine's containers.",
                            );
                        } else if let Some(what) =
                            self.is_secret(&path).or_else(|| paths::secret_place(&path, self.scope))
                        {
                            self.find(crate::policy::tools::secret_denied(&path, what));
                        } else if path.starts_with("/etc")
                            || path == Path::new("/var")
                            || path == Path::new("/usr")
                        {
                            self.ask("run.container", "The container would see the machine's own files.");
                        }
                    }
                }
                // With a command of the call's own, what is in the file can be printed.
                let plain = here
                    && !self.containers_elsewhere
                    && sub != "exec"
                    && o.operands.len() == 1
                    && !o.has(&["--entrypoint"]);
                for file in o.values(&["--env-file"]) {
                    let places = self.meanings(&file);
                    if plain && !places.is_empty() && places.iter().all(|p| self.of_project(p)) {
                        self.ask(
                            "secret.use",
                            "The container would get what is in the project's secret file. A person has to agree.",
                        );
                    } else {
                        self.read_file(&file);
                    }
                }
                for e in o.values(&["-e", "--env"]) {
                    if e.taint.any(Taint::SECRET) {
                        self.ask("secret.read", "The command hands a secret to a container.");
                    }
                }
                let mut inner: Vec<Val> = o.operands.get(1..).unwrap_or_default().to_vec();
                if let Some(entry) = o.values(&["--entrypoint"]).first() {
                    inner.insert(0, entry.clone());
                }
                // Paths inside lead back through the mounts.
                for a in &mut inner {
                    for (from, to) in &mounts {
                        if !to.is_empty() && a.text.contains(to.as_str()) {
                            a.text = a.text.replace(to.as_str(), from);
                        }
                    }
                }
                if inner.is_empty() { Val::default() } else { self.run(&inner, stdin) }
            }
            "cp" => {
                for a in &more {
                    if !a.text.contains(':') {
                        self.read_file(a);
                    }
                }
                Val::default()
            }
            "rm" | "rmi"
                if more.iter().any(|a| !a.is_known())
                    || more.iter().any(|a| a.text.starts_with('-') && a.text.contains('v')) =>
            {
                self.ask(
                    "destroy.container",
                    "The command deletes containers or images that it does not name.",
                );
                Val::default()
            }
            "stack" | "swarm" | "service" | "secret" | "config"
                if more.first().is_some_and(|a| matches!(a.text.as_str(), "rm" | "remove" | "leave")) =>
            {
                self.ask("destroy.container", "The command deletes running services. A person has to agree.");
                Val::default()
            }
            "push" => {
                self.ask("publish.image", "The command publishes an image. A person has to agree.");
                Val::default()
            }
            "build" => {
                for v in more.iter().filter(|a| {
                    a.text.contains("src=") || a.text.contains("://") && !a.text.starts_with("--")
                }) {
                    match v.text.split("src=").nth(1) {
                        Some(file) => {
                            let file = Val::known(file.split(',').next().unwrap_or_default());
                            self.read_file(&file);
                        }
                        None => self.package_source(v),
                    }
                }
                Val::default()
            }
            _ => Val::unknown(Taint::NONE),
        }
    }

    pub(super) fn cluster(&mut self, base: &str, args: &[Val], stdin: &Val) -> Val {
        let o = Options::split(
            args,
            &[
                "-n",
                "--namespace",
                "--context",
                "--kubeconfig",
                "--cluster",
                "--user",
                "-s",
                "--server",
                "--token",
                "--as",
                "-c",
                "--container",
                "-o",
                "--output",
                "-l",
                "--selector",
                "-f",
                "--filename",
                "--field-selector",
                "--request-timeout",
                "-v",
                "--certificate-authority",
                "--client-key",
                "--client-certificate",
                "-k",
                "--kustomize",
                "--from-env-file",
                "--from-file",
                "--replicas",
                "-p",
                "--patch",
                "--type",
            ],
            false,
        );
        let words: Vec<&str> = o.operands.iter().map(|a| a.text.as_str()).collect();
        for a in args {
            for start in ["--from-env-file=", "--from-file=", "--filename=", "-f="] {
                if let Some(file) = a.text.strip_prefix(start) {
                    let file = file.rsplit('=').next().unwrap_or_default();
                    self.read_file(&a.map(file));
                }
            }
        }
        for file in o.values(&["--from-env-file", "--from-file", "-f", "--filename"]) {
            if file.text == "-" && stdin.taint.any(Taint::NET) || file.text.contains("://") {
                self.ask(
                    "run.fetched",
                    "The cluster would run what another machine answers. Look at it first.",
                );
            } else {
                self.read_file(&file);
            }
        }
        let has = |w: &str| args.iter().any(|a| a.text == w);
        if has("view") && has("--raw")
            || words.first() == Some(&"config")
                && words.contains(&"view")
                && args.iter().any(|a| a.text == "--raw" || a.text.contains("raw"))
        {
            self.deny("secret.read", "The command prints the cluster's credentials.");
        }
        let kinds = words.get(1).copied().unwrap_or_default();
        let secrets = matches!(words.first(), Some(&"get" | &"describe"))
            && kinds.split(',').any(|k| matches!(k.split('.').next(), Some("secret" | "secrets")))
            || args.iter().any(|a| a.text.contains("/secrets"))
            || words.iter().any(|w| w.starts_with("secret/") || w.starts_with("secrets/"))
                && words.first() == Some(&"get");
        if secrets
            && args.iter().any(|a| {
                a.text.starts_with("-o")
                    || a.text.starts_with("--output")
                    || a.text.contains("template")
                    || a.text.contains("jsonpath")
            })
        {
            self.deny("secret.read", "The command prints the cluster's secrets.");
        }
        match words.first() {
            Some(&"delete" | &"drain" | &"replace" | &"patch" | &"edit" | &"evict" | &"cordon") => self.ask(
                "destroy.cluster",
                format!("{base} would delete objects of a cluster. A person has to agree."),
            ),
            Some(&"scale")
                if args.iter().any(|a| a.text == "--replicas=0")
                    || o.values(&["--replicas"]).iter().any(|v| v.text == "0") =>
            {
                self.ask(
                    "destroy.cluster",
                    "The command stops what runs in a cluster. A person has to agree.",
                )
            }
            Some(&"create") if words.get(1) == Some(&"token") => {
                self.deny("secret.read", "The command prints a token.")
            }
            Some(&"cp") => {
                for a in args.iter().skip(1) {
                    if !a.text.contains(':') {
                        self.read_file(a);
                    }
                }
            }
            Some(&"exec" | &"run" | &"debug") => {
                if let Some(at) = args.iter().position(|a| a.text == "--") {
                    return self.run(&args[at + 1..], stdin);
                }
            }
            _ => {}
        }
        Val::unknown(Taint::NONE)
    }
}
