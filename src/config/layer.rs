//! One configuration file, as it is written.
//!
//! Every key is optional; an unknown key, rule, glob or host is an error, since a misspelt denial would deny nothing.

use crate::policy::custom::{Host, Patterns};
use crate::policy::rule_names;
use crate::severity::Severity;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Longest file read, in bytes.
pub const FILE_MAX: u64 = 256 * 1024;

macro_rules! table {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }
    };
}

table!(
    /// A file. [`super::keys::KEYS`] says what each key means.
    Layer {
        /// `[paths]`
        paths: Paths,
        /// `[network]`
        network: Network,
        /// `[tools]`
        tools: Tools,
        /// `[agents]`
        agents: Agents,
        /// `[commands]`
        commands: Commands,
        /// `[restricted]`
        restricted: Restricted,
        /// `[rules]`
        rules: Rules,
        /// `[scan]`
        scan: Scan,
        /// `[session]`
        session: Session,
        /// `[audit]`
        audit: Audit,
        /// `[daemon]`
        daemon: Daemon,
    }
);

type List = Option<Vec<String>>;

table!(
    /// `[paths]`
    Paths {
        /// Globs of more secrets.
        secret: List,
        /// Globs of files that are no secrets.
        secret_except: List,
        /// Globs of more files that must not be written.
        protected: List,
        /// Globs of files that may be written.
        protected_except: List,
        /// The only places that may be read.
        read: List,
        /// The only places that may be written.
        write: List,
    }
);

table!(
    /// `[network]`
    Network {
        /// The only hosts that may be reached.
        allow: List,
        /// Hosts that must not be reached.
        deny: List,
        /// Hosts of the private network that may be reached.
        private: List,
        /// What fetches pages.
        fetch: Option<Fetch>,
    }
);

/// What fetches pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fetch {
    /// WebFetch and commands.
    Any,
    /// `jess fetch` alone.
    Jess,
}

table!(
    /// `[tools]`
    Tools {
        /// Globs of tools that are denied.
        deny: List,
        /// Globs of tools that are asked about.
        ask: List,
        /// `[[tools.arguments]]`
        arguments: Option<Vec<Argument>>,
    }
);

/// `[[tools.arguments]]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Argument {
    /// Glob of tool names.
    pub tool: String,
    /// The argument's name.
    pub argument: String,
    /// Globs that the value must fit.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Globs that the value must not fit.
    #[serde(default)]
    pub deny: Vec<String>,
}

/// What a call meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Nothing is said.
    Allow,
    /// A person decides.
    Ask,
    /// It does not happen.
    Deny,
}

table!(
    /// `[agents]`
    Agents {
        /// What starting a subagent meets.
        spawn: Option<Answer>,
        /// Globs of subagent types that are denied.
        deny: List,
    }
);

/// What judges Bash events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shell {
    /// The policy over the whole bash language.
    Full,
    /// That, and the allow-list of `[restricted]`.
    Restricted,
}

/// What Bash commands run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// As the client runs them.
    Off,
    /// The best tier that this machine has.
    Landlock,
    /// Tier full, or they do not run.
    Full,
}

table!(
    /// `[commands]`
    Commands {
        /// Commands that are denied.
        deny: List,
        /// Commands that are asked about.
        ask: List,
        /// What judges Bash events.
        shell: Option<Shell>,
        /// What Bash commands run in.
        sandbox: Option<Sandbox>,
    }
);

table!(
    /// `[restricted]`
    Restricted {
        /// Programs that may run.
        commands: List,
        /// Subcommands that must not.
        deny: List,
        /// Flags that no program gets.
        deny_flags: List,
        /// Program → credential variables that it keeps.
        keep_env: Option<BTreeMap<String, Vec<String>>>,
    }
);

table!(
    /// `[rules]`
    Rules {
        /// Rules whose questions become denials.
        deny: List,
        /// Rules about commands whose questions are dropped.
        off: List,
    }
);

table!(
    /// `[scan]`
    Scan {
        /// Severity from which a text is withheld.
        withhold_severity: Option<Severity>,
        /// Confidence from which a text is withheld, 0 to 1.
        withhold_confidence: Option<f32>,
    }
);

/// Whether somebody is there to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Attended {
    /// What the client says.
    Auto,
    /// Nobody: questions are denials.
    Never,
}

table!(
    /// `[session]`
    Session {
        /// Whether somebody is there to answer.
        attended: Option<Attended>,
        /// Denials after which a session needs a person; 0 never.
        denials_max: Option<u32>,
        /// Findings after which a session needs a person; 0 never.
        findings_max: Option<u32>,
    }
);

table!(
    /// `[audit]`
    Audit {
        /// What a call meets whose decision cannot be put on record.
        on_failure: Option<Answer>,
    }
);

table!(
    /// `[daemon]`
    Daemon {
        /// Whether the hook starts a daemon.
        enabled: Option<bool>,
        /// Minutes without a call after which it ends.
        idle_minutes: Option<u32>,
    }
);

impl Layer {
    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<Layer, String> {
        if text.len() as u64 > FILE_MAX {
            return Err(format!("the file is longer than {FILE_MAX} bytes"));
        }
        let layer: Layer = toml::from_str(text).map_err(|e| {
            let line =
                e.span().map_or(1, |s| text.get(..s.start).unwrap_or_default().matches('\n').count() + 1);
            // The message names a key or a type, and may quote the line: one line of it is enough.
            format!("line {line}: {}", e.message().lines().next().unwrap_or_default())
        })?;
        layer.check()?;
        Ok(layer)
    }

    /// What the types do not say: rules, globs and hosts that mean nothing would switch nothing on, and nobody would notice.
    fn check(&self) -> Result<(), String> {
        for (key, list) in [("rules.deny", &self.rules.deny), ("rules.off", &self.rules.off)] {
            if let Some(name) = list.iter().flatten().find(|name| !rule_names::known(name)) {
                return Err(unknown_rule(key, name));
            }
        }
        // Where the globs start changes nothing about whether they are globs.
        let root = Path::new("/");
        for (key, list) in [
            ("paths.secret", &self.paths.secret),
            ("paths.secret_except", &self.paths.secret_except),
            ("paths.protected", &self.paths.protected),
            ("paths.protected_except", &self.paths.protected_except),
        ] {
            Patterns::new(list.iter().flatten().map(String::as_str), root, root)
                .map_err(|why| format!("{key}: {why}"))?;
        }
        for (key, list) in [
            ("network.allow", &self.network.allow),
            ("network.deny", &self.network.deny),
            ("network.private", &self.network.private),
        ] {
            for host in list.iter().flatten() {
                Host::parse(host).map_err(|why| format!("{key}: {why}"))?;
            }
        }
        match self.scan.withhold_confidence {
            Some(c) if !(0.0..=1.0).contains(&c) => {
                Err("scan.withhold_confidence: is not between 0 and 1".into())
            }
            _ => Ok(()),
        }
    }
}

/// Why a name in `[rules]` is none, and which are like it.
fn unknown_rule(key: &str, name: &str) -> String {
    let shown: String = name.chars().take(64).collect();
    let like = match rule_names::nearest(name).as_slice() {
        [] => String::new(),
        names => format!(", is {} meant?", names.join(" or ")),
    };
    format!("{key}: there is no rule {shown:?}{like} (`jess config rules` lists them all)")
}
