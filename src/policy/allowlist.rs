//! PreToolUse helpers for agent frontmatter: a Bash command allowlist and a WebFetch host allowlist.
//!
//! Both decide over one event and deny whatever they do not understand. They say nothing of what they let through: the
//! client's own permission rules still apply.

use serde_json::Value;

/// Shell syntax that could run more than the command that was compared.
///
/// The last two are zsh's: a command's output as a file, and a glob that runs code.
const CHAINING: &[&str] =
    &["\n", "\r", ";", "&", "|", "`", "$(", "${", "<(", ">(", ">", "<", "\0", "=(", "*("];

/// Whether the Bash command of `event` is one of `prefixes`, alone or followed by arguments.
///
/// # Errors
/// Why not, safe to print.
pub fn bash(event: &Value, prefixes: &[String]) -> Result<(), String> {
    let input = tool_input(event, "Bash")?;
    let command = input.get("command").and_then(Value::as_str).ok_or("the event has no command")?;
    if let Some(mark) = CHAINING.iter().find(|mark| command.contains(**mark)) {
        return Err(format!("shell syntax {:?} is not allowed here: give one plain command", mark));
    }
    // Only what a shell takes for white space: with any other, the shell looks for a program of that name.
    let command = command.trim_matches([' ', '\t']);
    let allowed = prefixes.iter().map(|p| p.trim()).filter(|p| !p.is_empty());
    let listed = |prefix: &str| {
        command.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    if allowed.into_iter().any(listed) {
        Ok(())
    } else {
        Err("the command is not on this agent's list".to_string())
    }
}

/// Which hosts WebFetch may reach.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    /// Exactly these hosts.
    pub exact: Vec<String>,
    /// Hosts that share a registrable domain with one of these.
    pub same_site: Vec<String>,
    /// Any host with a registrable domain.
    pub any: bool,
}

impl Hosts {
    /// Reads an anchor file: on line 1 an https URL or a host, whose whole site is allowed; further lines are exact
    /// hosts. Empty lines and lines that start with `#` are skipped.
    ///
    /// # Errors
    /// When the first line is no host.
    pub fn from_anchor(text: &str) -> Result<Hosts, String> {
        let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
        let first = lines.next().ok_or("the anchor file is empty")?;
        let with_scheme = if first.contains("://") { first.to_owned() } else { format!("https://{first}") };
        let anchor = https_host(&with_scheme)?;
        let exact = lines.map(|l| https_host(&format!("https://{l}"))).collect::<Result<_, _>>()?;
        Ok(Hosts { exact, same_site: vec![anchor], any: false })
    }
}

/// Whether the URL of `event` is https and its host is allowed.
///
/// # Errors
/// Why not, safe to print.
pub fn webfetch(event: &Value, hosts: &Hosts) -> Result<(), String> {
    let input = tool_input(event, "WebFetch")?;
    let url = input.get("url").and_then(Value::as_str).ok_or("the event has no url")?;
    let host = https_host(url)?;
    let exact = hosts.exact.iter().any(|h| normal(h) == host);
    let site = || {
        let wanted = registrable(&host);
        wanted.is_some() && hosts.same_site.iter().any(|h| registrable(&normal(h)) == wanted)
    };
    // "Any host" is any in the public name space: not this machine, nor a name of the network it is in.
    let public = || registrable(&host).is_some();
    if exact || site() || (hosts.any && public()) {
        Ok(())
    } else {
        Err("the host is not on this agent's list".to_string())
    }
}

/// The normalised host of an https URL without user, password or port.
fn https_host(url: &str) -> Result<String, String> {
    if url.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err("the URL holds control characters, white space or a backslash".to_string());
    }
    let parsed = url::Url::parse(url).map_err(|_| "the URL cannot be read".to_string())?;
    if parsed.scheme() != "https" {
        return Err("only https is allowed".to_string());
    }
    if !parsed.username().is_empty() || parsed.password().is_some() || parsed.port().is_some() {
        return Err("a user, password or port in the URL is not allowed".to_string());
    }
    match parsed.host() {
        Some(url::Host::Domain(host)) => Ok(normal(host)),
        Some(_) => Err("a host given as an address is not allowed".to_string()),
        None => Err("the URL has no host".to_string()),
    }
}

fn normal(host: &str) -> String {
    host.trim().trim_end_matches('.').to_ascii_lowercase()
}

/// The registrable domain by the public suffix list; `None` for a suffix itself and for unknown top-level names.
fn registrable(host: &str) -> Option<String> {
    let domain = psl::domain(host.as_bytes())?;
    domain.suffix().is_known().then(|| String::from_utf8_lossy(domain.as_bytes()).into_owned())
}

fn tool_input<'v>(event: &'v Value, tool: &str) -> Result<&'v Value, String> {
    let named = event.get("tool_name").and_then(Value::as_str);
    if named != Some(tool) {
        return Err(format!("this hook judges {tool} alone"));
    }
    event.get("tool_input").ok_or_else(|| "the event has no tool input".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(command: &str, prefixes: &[&str]) -> bool {
        let prefixes: Vec<String> = prefixes.iter().map(ToString::to_string).collect();
        bash(&json!({"tool_name": "Bash", "tool_input": {"command": command}}), &prefixes).is_ok()
    }

    fn fetch(url: &str, hosts: &Hosts) -> bool {
        webfetch(&json!({"tool_name": "WebFetch", "tool_input": {"url": url}}), hosts).is_ok()
    }

    #[test]
    fn a_listed_command_passes_alone_and_with_arguments() {
        assert!(run("git log", &["git log"]));
        assert!(run("git log --oneline", &["git log"]));
        assert!(!run("git logx", &["git log"]));
        assert!(!run("git", &["git log"]));
        assert!(!run("git log", &[]));
        assert!(!run("git log", &["", " "]));
        assert!(run(" \tgit log ", &["git log"]));
        assert!(!run("\u{a0}git log", &["git log"]));
        assert!(!run("\u{b}git log", &["git log"]));
    }

    #[test]
    fn shell_syntax_never_passes() {
        for tail in [
            "; id", "&& id", "| sh", "`id`", "$(id)", "> f", "< f", "<(id)", "\nid", "& id", "${IFS}x",
            "\rid", "=(id)", "*(e:id:)",
        ] {
            assert!(!run(&format!("git log {tail}"), &["git log"]), "{tail:?}");
        }
    }

    #[test]
    fn hosts_are_exact_unless_a_site_is_named() {
        let exact = Hosts { exact: vec!["api.github.com".into()], ..Hosts::default() };
        assert!(fetch("https://API.github.com./x", &exact));
        for url in [
            "http://api.github.com/",
            "https://github.com/",
            "https://api.github.com.evil.example/",
            "https://u@api.github.com/",
            "https://api.github.com:8443/",
            "https://140.82.112.5/",
            "file:///etc/passwd",
            "https://api.github.com\\@evil.example/",
            "nonsense",
            "https://evil.example/https://api.github.com/",
        ] {
            assert!(!fetch(url, &exact), "{url}");
        }
    }

    #[test]
    fn an_anchor_allows_its_own_registrable_domain() {
        let hosts = Hosts::from_anchor("https://bugs.example.co.uk/ticket/1\nfiles.other.org\n").unwrap();
        assert!(fetch("https://attach.example.co.uk/1", &hosts));
        assert!(fetch("https://files.other.org/a", &hosts));
        assert!(!fetch("https://x.other.org/", &hosts));
        assert!(!fetch("https://evil.co.uk/", &hosts));
        let pages = Hosts::from_anchor("me.github.io").unwrap();
        assert!(!fetch("https://you.github.io/", &pages));
    }

    #[test]
    fn any_host_is_any_public_one() {
        let any = Hosts { any: true, ..Hosts::default() };
        assert!(fetch("https://docs.rs/serde", &any));
        for url in [
            "https://localhost/",
            "https://metadata.google.internal/",
            "https://intranet/",
            "https://127.0.0.1/",
            "https://co.uk/",
        ] {
            assert!(!fetch(url, &any), "{url}");
        }
    }

    #[test]
    fn an_event_of_another_tool_or_shape_is_denied() {
        assert!(
            bash(&json!({"tool_name": "Read", "tool_input": {"command": "git log"}}), &["git log".into()])
                .is_err()
        );
        assert!(bash(&json!({"tool_name": "Bash"}), &["git log".into()]).is_err());
        assert!(webfetch(&json!({}), &Hosts { any: true, ..Hosts::default() }).is_err());
    }
}
