//! What would let a call pass that a rule stopped: for the person, never for the model.

use super::rule_names::RULES;

/// What a person can do about a decision of `rule`; `asked`: it was a question and no denial.
pub fn out(rule: &str, asked: bool) -> &'static str {
    let group = rule.split('.').next().unwrap_or_default();
    match (rule, group) {
        ("secret.read" | "secret.hidden", _) => {
            "paths.secret_except in the operator's file, with a glob of the file, for a file that is no secret; the value \
             itself can be given by the person"
        }
        ("protected.write", _) => {
            "paths.protected_except in the operator's file, with a glob of the file; or the person makes the change"
        }
        ("write.outside", _) => "the person agrees; paths.write in the operator's file opens more places",
        ("web.private" | "web.loopback", _) => "network.private in the operator's file, with the host",
        ("web.denied" | "web.scope", _) => "network.allow and network.deny of the operator and the project",
        ("web.jess_fetch", _) => "`jess fetch URL`; network.fetch = \"any\" in every file that sets it",
        ("tool.denied" | "tool.asked" | "tool.argument", _) => {
            "tools.deny, tools.ask and tools.arguments of the operator and the project"
        }
        ("command.denied" | "command.asked", _) => {
            "commands.deny and commands.ask of the operator and the project"
        }
        ("agent.denied" | "agent.spawn", _) => "agents.spawn and agents.deny of the operator and the project",
        ("restricted", _) => {
            "restricted.commands, or commands.shell = \"full\", in every file that sets them"
        }
        ("rule_of_two.third", _) => {
            "the person agrees to this call; a new session; or `jess session clear SESSION --reason TEXT` by a person at a \
             terminal"
        }
        ("rule_of_two.unknown", _) => {
            "a state directory that can be read and written; labels that cannot be read are taken away with `jess session \
             clear SESSION --reason TEXT`"
        }
        ("session.needs_human", _) => {
            "`jess session clear SESSION --reason TEXT` by a person at a terminal; session.denials_max and \
             session.findings_max set the numbers"
        }
        ("audit.unrecorded", _) => "a log that can be written; audit.on_failure says what counts until then",
        (
            "shell.syntax" | "shell.bound" | "shell.choices" | "input.malformed" | "input.nul" | "mcp.bound",
            _,
        ) => "a smaller or plainer call: nothing in the configuration lifts a bound",
        (_, "guard") => "nothing that an agent can do: the person does it by hand, outside of the session",
        ("", _) => "nothing was in the way",
        _ if !RULES.contains(&rule) => "not known: this version has no such rule",
        (_, "web" | "mcp") if asked => "the person agrees",
        _ if asked => {
            "the person agrees; rules.off in the operator's file, with the rule's name, drops the question for commands"
        }
        _ => {
            "nothing in the configuration lifts this denial, unless rules.deny made it of a question: the person does it by \
             hand, outside of the session"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys;

    #[test]
    fn every_rule_has_a_way_and_names_only_keys_that_there_are() {
        let key = regex::Regex::new(r"\b([a-z]+\.[a-z]+_?[a-z]*)\b").unwrap();
        for rule in RULES {
            for asked in [true, false] {
                let way = out(rule, asked);
                assert!(!way.is_empty() && !way.contains("not known"), "{rule}");
                for name in key.captures_iter(way).filter_map(|c| c.get(1)).map(|m| m.as_str()) {
                    assert!(keys::find(name).is_some(), "{rule}: {name}");
                }
            }
        }
        assert!(out("no.such", false).contains("no such rule"));
        assert!(out("destroy.git", true).contains("rules.off"));
        assert!(!out("guard.kill", false).contains("rules.off"));
    }
}
