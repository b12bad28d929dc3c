//! Files → what counts.

use super::layer::{Answer, Attended, Fetch, Layer, Sandbox, Shell};
use super::{Config, Origin, Places, Problem};
use crate::hook::exec::Tier;
use crate::policy::Verdict;
use crate::policy::custom::{Argument, Custom, Host, Patterns};
use crate::policy::restricted::Restricted;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The value of a key in the first of the operator's files that sets it.
macro_rules! own {
    ($own:expr, $($key:ident).+) => {
        $own.iter().find_map(|l| l.$($key).+.as_ref())
    };
}

/// A list that a project adds to.
macro_rules! added {
    ($own:expr, $project:expr, $($key:ident).+) => {
        own!($own, $($key).+).into_iter().chain($project.and_then(|p| p.$($key).+.as_ref())).flatten()
    };
}

/// What counts of the files, in order of precedence. `strict`: a file that should count cannot be read.
pub fn merge(
    layers: &[(Origin, PathBuf, Layer)],
    places: &Places,
    strict: bool,
    problems: Vec<Problem>,
) -> Config {
    let own: Vec<&Layer> = layers.iter().filter(|l| l.0 != Origin::Project).map(|l| &l.2).collect();
    let project = layers.iter().find(|l| l.0 == Origin::Project).map(|l| &l.2);
    let mut merge = Merge { places, problems, strict };
    let mut config = merge.operator(&own, project);
    if let Some(project) = project {
        merge.project(&own, project, &mut config);
    }
    if merge.strict {
        let mut custom = (*config.custom).clone();
        custom.strict = true;
        config.custom = Arc::new(custom);
        config.unattended = true;
    }
    config.problems = merge.problems;
    config
}

struct Merge<'a> {
    places: &'a Places,
    problems: Vec<Problem>,
    strict: bool,
}

impl Merge<'_> {
    /// A value that cannot be used: said, and from then on every question is a denial.
    fn wrong(&mut self, key: &str, why: &str) {
        self.strict = true;
        self.problems.push(Problem {
            file: "configuration".into(),
            what: format!("{key}: {why}; the key has no effect, and every question is a denial"),
        });
    }

    fn patterns<'s>(&mut self, key: &str, globs: impl Iterator<Item = &'s String>) -> Patterns {
        match Patterns::new(globs.map(String::as_str), &self.places.home, &self.places.project) {
            Ok(patterns) => patterns,
            Err(why) => {
                self.wrong(key, &why);
                Patterns::default()
            }
        }
    }

    fn hosts<'s>(&mut self, key: &str, list: impl Iterator<Item = &'s String>) -> Vec<Host> {
        let mut out = Vec::new();
        for text in list {
            match Host::parse(text) {
                Ok(host) => out.push(host),
                Err(why) => self.wrong(key, &why),
            }
        }
        out
    }

    fn paths(&self, list: &[String]) -> Vec<PathBuf> {
        list.iter()
            .map(|p| {
                let path = match p.strip_prefix("~/") {
                    Some(rest) => self.places.home.join(rest),
                    None if p == "~" => self.places.home.clone(),
                    None => self.places.project.join(p),
                };
                crate::policy::world::normalise(&path)
            })
            .map(|p| std::fs::canonicalize(&p).unwrap_or(p))
            .collect()
    }

    fn operator(&mut self, own: &[&Layer], project: Option<&Layer>) -> Config {
        let d = Config::default();
        let scopes = |key: Option<&Vec<String>>, m: &Merge<'_>| -> Vec<Vec<PathBuf>> {
            key.filter(|l| !l.is_empty()).map(|l| m.paths(l)).into_iter().collect()
        };
        let custom = Custom {
            secret: self.patterns("paths.secret", added!(own, project, paths.secret)),
            secret_except: self
                .patterns("paths.secret_except", own!(own, paths.secret_except).into_iter().flatten()),
            protected: self.patterns("paths.protected", added!(own, project, paths.protected)),
            protected_except: self
                .patterns("paths.protected_except", own!(own, paths.protected_except).into_iter().flatten()),
            read: scopes(own!(own, paths.read), self),
            write: scopes(own!(own, paths.write), self),
            hosts_deny: self.hosts("network.deny", added!(own, project, network.deny)),
            hosts_allow: own!(own, network.allow)
                .filter(|l| !l.is_empty())
                .map(|l| self.hosts("network.allow", l.iter()))
                .into_iter()
                .collect(),
            hosts_private: self.hosts("network.private", own!(own, network.private).into_iter().flatten()),
            fetch_with_jess: own!(own, network.fetch) == Some(&Fetch::Jess),
            tools_deny: added!(own, project, tools.deny).cloned().collect(),
            tools_ask: added!(own, project, tools.ask).cloned().collect(),
            arguments: added!(own, project, tools.arguments)
                .map(|a| Argument {
                    tool: a.tool.clone(),
                    argument: a.argument.clone(),
                    allow: a.allow.clone(),
                    deny: a.deny.clone(),
                })
                .collect(),
            spawn: own!(own, agents.spawn).map_or(Verdict::None, |a| verdict(*a)),
            agents_deny: added!(own, project, agents.deny).cloned().collect(),
            commands_deny: words(added!(own, project, commands.deny)),
            commands_ask: words(added!(own, project, commands.ask)),
            rules_deny: added!(own, project, rules.deny).cloned().collect(),
            rules_off: own!(own, rules.off).cloned().unwrap_or_default(),
            restricted: (own!(own, commands.shell) == Some(&Shell::Restricted))
                .then(|| restricted(own, project)),
            strict: false,
        };
        let most = |key: Option<&u32>, default| match key {
            Some(0) => None,
            Some(n) => Some(*n),
            None => default,
        };
        Config {
            custom: Arc::new(custom),
            withhold: (
                own!(own, scan.withhold_severity).copied().unwrap_or(d.withhold.0),
                own!(own, scan.withhold_confidence).map_or(d.withhold.1, |c| c.clamp(0.0, 1.0)),
            ),
            unattended: own!(own, session.attended) == Some(&Attended::Never),
            denials_max: most(own!(own, session.denials_max), d.denials_max),
            findings_max: most(own!(own, session.findings_max), d.findings_max),
            unrecorded: own!(own, audit.on_failure).map_or(d.unrecorded, |a| verdict(*a)),
            daemon: own!(own, daemon.enabled).copied().unwrap_or(d.daemon),
            idle: own!(own, daemon.idle_minutes)
                .map_or(d.idle, |m| Duration::from_secs(u64::from(*m).max(1) * 60)),
            sandbox: own!(own, commands.sandbox).copied().and_then(tier),
            net: own!(own, network.allow).cloned().unwrap_or_default(),
            problems: Vec::new(),
        }
    }

    /// What a project narrows and tightens; added lists are in already.
    fn project(&mut self, own: &[&Layer], p: &Layer, config: &mut Config) {
        let file = self.places.project.join(super::PROJECT).to_string_lossy().into_owned();
        let loosens = |problems: &mut Vec<Problem>, key: &str, why: &str| {
            problems.push(Problem {
                file: file.clone(),
                what: format!("{key} {why}; a project can only tighten, so it has no effect"),
            });
        };
        let refused = [
            ("paths.secret_except", p.paths.secret_except.is_some()),
            ("paths.protected_except", p.paths.protected_except.is_some()),
            ("network.private", p.network.private.is_some()),
            ("restricted.keep_env", p.restricted.keep_env.is_some()),
            ("rules.off", p.rules.off.is_some()),
            ("daemon.enabled", p.daemon.enabled.is_some()),
            ("daemon.idle_minutes", p.daemon.idle_minutes.is_some()),
        ];
        for (key, _) in refused.iter().filter(|r| r.1) {
            loosens(&mut self.problems, key, "would loosen the policy");
        }
        let mut custom = (*config.custom).clone();
        if let Some(list) = p.paths.read.as_ref().filter(|l| !l.is_empty()) {
            custom.read.push(self.paths(list));
        }
        if let Some(list) = p.paths.write.as_ref().filter(|l| !l.is_empty()) {
            custom.write.push(self.paths(list));
        }
        if let Some(list) = p.network.allow.as_ref().filter(|l| !l.is_empty()) {
            let hosts = self.hosts("network.allow", list.iter());
            custom.hosts_allow.push(hosts);
        }
        match p.agents.spawn.map(verdict) {
            Some(spawn) if spawn < custom.spawn => {
                loosens(&mut self.problems, "agents.spawn", "is looser than the operator's")
            }
            Some(spawn) => custom.spawn = spawn,
            None => {}
        }
        match p.network.fetch {
            Some(Fetch::Jess) => custom.fetch_with_jess = true,
            Some(Fetch::Any) if custom.fetch_with_jess => {
                loosens(&mut self.problems, "network.fetch", "is looser than the operator's");
            }
            _ => {}
        }
        match p.commands.shell {
            Some(Shell::Restricted) => custom.restricted = Some(restricted(own, Some(p))),
            Some(Shell::Full) if custom.restricted.is_some() => {
                loosens(&mut self.problems, "commands.shell", "is looser than the operator's");
            }
            _ => {}
        }
        match p.commands.sandbox {
            Some(wanted) if strength(tier(wanted)) < strength(config.sandbox) => {
                loosens(&mut self.problems, "commands.sandbox", "is looser than the operator's");
            }
            Some(wanted) => config.sandbox = tier(wanted),
            None => {}
        }
        if let Some(list) = p.network.allow.as_ref().filter(|l| !l.is_empty()) {
            // What a project allows beyond the operator's hosts opens nothing.
            config.net.retain(|h| list.contains(h));
        }
        if let Some(s) = p.scan.withhold_severity {
            if s > config.withhold.0 {
                loosens(&mut self.problems, "scan.withhold_severity", "is looser than the operator's");
            } else {
                config.withhold.0 = s;
            }
        }
        if let Some(c) = p.scan.withhold_confidence {
            if c > config.withhold.1 || c.is_nan() {
                loosens(&mut self.problems, "scan.withhold_confidence", "is looser than the operator's");
            } else {
                config.withhold.1 = c.max(0.0);
            }
        }
        match p.session.attended {
            Some(Attended::Never) => config.unattended = true,
            Some(Attended::Auto) if config.unattended => {
                loosens(&mut self.problems, "session.attended", "is looser than the operator's");
            }
            _ => {}
        }
        for (key, wanted, most) in [
            ("session.denials_max", p.session.denials_max, &mut config.denials_max),
            ("session.findings_max", p.session.findings_max, &mut config.findings_max),
        ] {
            match wanted {
                Some(n) if n > 0 && most.is_none_or(|m| n <= m) => *most = Some(n),
                Some(0) if most.is_none() => {}
                Some(_) => loosens(&mut self.problems, key, "is looser than the operator's"),
                None => {}
            }
        }
        match p.audit.on_failure.map(verdict) {
            Some(wanted) if wanted < config.unrecorded => {
                loosens(&mut self.problems, "audit.on_failure", "is looser than the operator's");
            }
            Some(wanted) => config.unrecorded = wanted,
            None => {}
        }
        config.custom = Arc::new(custom);
    }
}

/// The allow-list; a project's list of programs is intersected with the operator's, if there is one.
fn restricted(own: &[&Layer], project: Option<&Layer>) -> Restricted {
    let mine = own!(own, restricted.commands).cloned();
    let theirs = project.and_then(|p| p.restricted.commands.clone());
    let commands = match (mine, theirs) {
        (Some(mine), Some(theirs)) => mine.into_iter().filter(|c| theirs.contains(c)).collect(),
        (mine, theirs) => mine.or(theirs).unwrap_or_default(),
    };
    Restricted {
        commands,
        deny: words(added!(own, project, restricted.deny)),
        deny_flags: added!(own, project, restricted.deny_flags).cloned().collect(),
        keep_env: own!(own, restricted.keep_env).cloned().unwrap_or_default(),
    }
}

fn words<'s>(list: impl Iterator<Item = &'s String>) -> Vec<Vec<String>> {
    list.map(|l| l.split_whitespace().map(str::to_owned).collect())
        .filter(|w: &Vec<String>| !w.is_empty())
        .collect()
}

fn verdict(answer: Answer) -> Verdict {
    match answer {
        Answer::Allow => Verdict::None,
        Answer::Ask => Verdict::Ask,
        Answer::Deny => Verdict::Deny,
    }
}

fn tier(sandbox: Sandbox) -> Option<Tier> {
    match sandbox {
        Sandbox::Off => None,
        Sandbox::Landlock => Some(Tier::Any),
        Sandbox::Full => Some(Tier::Full),
    }
}

fn strength(tier: Option<Tier>) -> u8 {
    match tier {
        None => 0,
        Some(Tier::Any) => 1,
        Some(Tier::Full) => 2,
    }
}

/// The restricted shell that the operator's file describes, for a sandbox profile; `None` when it names no program.
pub fn restricted_shell(places: &Places) -> Option<Restricted> {
    let layers: Vec<Layer> = places
        .files()
        .filter(|(o, _)| *o != Origin::Project)
        .filter_map(|(o, p)| match super::store::read(o, &p, places.state.as_deref()) {
            super::store::Read::Good(l) => Some(*l),
            super::store::Read::Bad { last, .. } => last.map(|l| *l),
            super::store::Read::Absent => None,
        })
        .collect();
    let own: Vec<&Layer> = layers.iter().collect();
    Some(restricted(&own, None)).filter(|r| !r.commands.is_empty())
}
