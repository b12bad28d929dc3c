//! Addresses: what a fetch may reach, and what an address may carry out.

use super::{Decision, custom::Custom};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

/// Who fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetcher {
    /// The client's own fetch tool or an MCP server: nothing on this machine is its business.
    Tool,
    /// A command: the developer's own servers on loopback are ordinary.
    Command,
    /// `jess fetch`, which screens each hop and seals what it prints.
    Jess,
}

/// Longest run of encoded-looking characters that an address may hold: above it the address carries data.
const DATA_RUN: usize = 96;
/// Longest host label made of encoded-looking characters.
const DATA_LABEL: usize = 30;

/// Hosts that exist to collect what is sent to them.
const COLLECTORS: &[&str] = &[
    "webhook.site",
    "requestbin.com",
    "requestbin.net",
    "pipedream.net",
    "beeceptor.com",
    "burpcollaborator.net",
    "oastify.com",
    "interact.sh",
    "oast.fun",
    "oast.live",
    "oast.me",
    "oast.online",
    "oast.pro",
    "oast.site",
    "requestcatcher.com",
    "dnslog.cn",
    "ceye.io",
    "canarytokens.com",
    "hookbin.com",
    "transfer.sh",
    "file.io",
    "0x0.st",
    "termbin.com",
    "ix.io",
    "sprunge.us",
    "ptpb.pw",
    "bashupload.com",
    "temp.sh",
    "gofile.io",
    "anonfiles.com",
    "x0.at",
    "paste.rs",
    "catbox.moe",
    "tmpfiles.org",
    "webhookinbox.com",
    "mockbin.org",
    "postb.in",
    "ngrok.io",
    "ngrok.app",
    "ngrok-free.app",
    "trycloudflare.com",
    "loca.lt",
    "serveo.net",
];

/// What may be said about fetching `address`.
pub fn fetch(address: &str, by: Fetcher, custom: &Custom) -> Decision {
    let text = address.trim();
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(url::ParseError::RelativeUrlWithoutBase) => match Url::parse(&format!("http://{text}")) {
            Ok(url) => url,
            Err(_) => return unreadable(),
        },
        Err(_) => return unreadable(),
    };
    if !matches!(url.scheme(), "http" | "https" | "ws" | "wss" | "ftp" | "ftps") {
        return match by {
            Fetcher::Tool if url.scheme() != "data" && url.scheme() != "about" => Decision::deny(
                "web.scheme",
                format!(
                    "Only http and https addresses may be fetched, not {}:. Use the Read tool for files.",
                    url.scheme()
                ),
            ),
            _ => Decision::SILENT,
        };
    }
    let name = url.host_str().unwrap_or_default().trim_end_matches('.').to_lowercase();
    let own_loopback = by == Fetcher::Command && matches!(name.as_str(), "localhost" | "127.0.0.1" | "[::1]");
    if custom.fetch_with_jess && by != Fetcher::Jess && !own_loopback {
        return Decision::deny(
            "web.jess_fetch",
            "Pages are fetched with `jess fetch URL` here, run by the Bash tool: it prints the page as sealed text.",
        );
    }
    let mut answer = match custom.host(&name).filter(|_| !own_loopback) {
        Some(denied) => denied,
        None => host(&url, by),
    };
    if matches!(answer.rule, "web.private" | "web.literal") && custom.is_private(&name) {
        answer = Decision::SILENT;
    }
    if !url.username().is_empty() || url.password().is_some() {
        answer = answer
            .or(Decision::ask("web.userinfo", "The address carries a user name or password. Leave it out."));
    }
    answer.or(data(&url))
}

fn unreadable() -> Decision {
    Decision::deny("web.unreadable", "The address cannot be read as a URL. Give a complete https address.")
}

fn host(url: &Url, by: Fetcher) -> Decision {
    let port = url.port_or_known_default().unwrap_or(0);
    match url.host() {
        None => unreadable(),
        Some(Host::Ipv4(ip)) => address(IpAddr::V4(ip), port, by),
        Some(Host::Ipv6(ip)) => address(IpAddr::V6(ip), port, by),
        Some(Host::Domain(name)) => domain(name, port, by),
    }
}

/// A name that leads to the machine, its network or its cloud's metadata.
fn domain(name: &str, port: u16, by: Fetcher) -> Decision {
    let name = name.trim_end_matches('.').to_lowercase();
    if matches!(
        name.as_str(),
        "metadata.google.internal"
            | "metadata"
            | "instance-data"
            | "metadata.azure.internal"
            | "metadata.packet.net"
    ) || name.starts_with("instance-data.")
        || name.ends_with(".nip.io")
        || name.ends_with(".sslip.io")
        || name.ends_with(".xip.io")
        || name.ends_with(".localtest.me")
        || name == "localtest.me"
        || name == "kubernetes"
        || name.starts_with("kubernetes.default")
        || name == "rebind.network"
    {
        return Decision::deny(
            "web.metadata",
            "The name leads to the machine's or the cloud's own services.",
        );
    }
    if name == "localhost"
        || name.ends_with(".localhost")
        || name == "ip6-localhost"
        || name == "host.docker.internal"
    {
        return loopback(port, by);
    }
    if by == Fetcher::Tool
        && (!name.contains('.')
            || [".local", ".internal", ".lan", ".intranet", ".corp", ".home", ".arpa"]
                .iter()
                .any(|e| name.ends_with(e)))
    {
        return Decision::ask(
            "web.private",
            "The name belongs to the private network. A person has to agree.",
        );
    }
    if COLLECTORS.iter().any(|c| name == *c || name.ends_with(&format!(".{c}"))) {
        return Decision::ask(
            "web.collector",
            format!("{name} collects whatever is sent to it. A person has to agree."),
        );
    }
    if encoded_host(&name) {
        return Decision::deny(
            "web.data",
            "The host name carries encoded data. Fetch a page by its ordinary address.",
        );
    }
    Decision::SILENT
}

/// Whether a host name carries data in its labels.
pub fn encoded_host(name: &str) -> bool {
    let labels: Vec<&str> = name.split('.').collect();
    let sub = labels.len().saturating_sub(2);
    let own = labels.get(..sub).unwrap_or_default();
    let encoded = own.iter().filter(|l| l.len() >= DATA_LABEL && encoded(l)).count();
    encoded > 0 || own.iter().map(|l| l.len()).sum::<usize>() > 90
}

/// Hexadecimal or base32/64, rather than words.
fn encoded(text: &str) -> bool {
    let hex = text.bytes().all(|b| b.is_ascii_hexdigit());
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    hex || (!text.contains('-')
        && digits * 8 >= text.len()
        && text.bytes().all(|b| b.is_ascii_alphanumeric()))
}

fn loopback(port: u16, by: Fetcher) -> Decision {
    let service =
        matches!(port, 2375 | 2376 | 2379 | 2380 | 6443 | 8001 | 10250 | 10255 | 9229 | 9222 | 5555);
    match by {
        Fetcher::Command if !service => Decision::SILENT,
        Fetcher::Command => Decision::ask(
            "web.loopback",
            format!(
                "Port {port} of this machine controls it (containers, cluster or debugger). A person has to agree."
            ),
        ),
        Fetcher::Tool | Fetcher::Jess => Decision::deny(
            "web.loopback",
            "The address is this machine itself. Use a command for a server of your own.",
        ),
    }
}

fn address(ip: IpAddr, port: u16, by: Fetcher) -> Decision {
    let ip = match ip {
        IpAddr::V6(v6) => embedded(v6).map_or(ip, IpAddr::V4),
        v4 => v4,
    };
    let metadata = match ip {
        IpAddr::V4(v4) => {
            v4.is_link_local()
                || v4 == Ipv4Addr::new(100, 100, 100, 200)
                || v4 == Ipv4Addr::new(192, 0, 0, 192)
                || v4 == Ipv4Addr::new(168, 63, 129, 16)
        }
        IpAddr::V6(v6) => {
            (v6.segments()[0] & 0xffc0) == 0xfe80
                || v6.segments()[..2] == [0xfd00, 0x0ec2]
                || v6.segments()[..3] == [0xfd20, 0x00ce, 0]
        }
    };
    if metadata {
        return Decision::deny(
            "web.metadata",
            "The address belongs to the cloud's metadata service or the link. It hands out credentials.",
        );
    }
    let (own, private) = match ip {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            (
                v4.is_loopback() || a == 0,
                v4.is_private()
                    || v4.is_broadcast()
                    || v4.is_multicast()
                    || (a == 100 && (64..128).contains(&b))
                    || a >= 240,
            )
        }
        IpAddr::V6(v6) => (
            v6.is_loopback() || v6.is_unspecified(),
            (v6.segments()[0] & 0xfe00) == 0xfc00 || v6.is_multicast(),
        ),
    };
    if own {
        return loopback(port, by);
    }
    match by {
        Fetcher::Tool | Fetcher::Jess if private => {
            Decision::deny("web.private", "The address lies in a private network.")
        }
        Fetcher::Tool | Fetcher::Jess => {
            Decision::ask("web.literal", "The address is a number, not a name. A person has to agree.")
        }
        Fetcher::Command => Decision::SILENT,
    }
}

/// The IPv4 address inside a mapped, compatible, NAT64 or 6to4 address.
fn embedded(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = v6.segments();
    let low = Ipv4Addr::from(((s[6] as u32) << 16) | s[7] as u32);
    match s {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, ..] => Some(low),
        [0, 0, 0, 0, 0, 0, a, b] if a != 0 || b > 1 => Some(low),
        [0x2002, a, b, ..] => Some(Ipv4Addr::from(((a as u32) << 16) | b as u32)),
        _ => None,
    }
}

/// Data in the path or the query.
fn data(url: &Url) -> Decision {
    let rest = &url[url::Position::BeforePath..];
    if super::mcp::holds_secret(rest) || url.password().is_some_and(super::mcp::holds_secret) {
        return Decision::deny("web.secret", "The address carries something shaped like a credential.");
    }
    let run = |text: &str| {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '_' | '=' | '%'))).any(
            |r| {
                r.len() >= DATA_RUN
                    && r.matches('-').count() * 12 < r.len()
                    && r.matches('+').count() * 5 < r.len()
                    && r.matches('_').count() * 12 < r.len()
                    && r.matches("%20").count() * 12 < r.len()
            },
        )
    };
    if run(rest) {
        return Decision::ask(
            "web.data",
            "The address carries a long piece of encoded data. A person has to agree.",
        );
    }
    Decision::SILENT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Verdict;

    #[test]
    fn addresses_of_the_machine_and_its_cloud_are_stopped_in_every_spelling() {
        for a in [
            "http://169.254.169.254/latest/",
            "http://0xa9fea9fe/",
            "http://2852039166/",
            "http://0251.0376.0251.0376/",
            "http://[::ffff:169.254.169.254]/",
            "http://[fd00:ec2::254]/",
            "http://metadata.google.internal/",
            "http://localhost:8080/",
            "http://127.1/",
            "http://[::1]/",
            "http://10.0.0.1/",
            "http://0/",
            "file:///etc/passwd",
            "http://169.254.169.254.nip.io/",
            "http://LOCALHOST./",
            "http://[64:ff9b::a9fe:a9fe]/",
            "ht!tp:///[::",
        ] {
            assert!(fetch(a, Fetcher::Tool, &Custom::default()).verdict >= Verdict::Ask, "{a}");
        }
    }

    #[test]
    fn ordinary_pages_are_silent() {
        for a in [
            "https://docs.rs/landlock/latest/landlock/",
            "https://github.com/rust-lang/rust/issues/12345",
            "https://developer.mozilla.org/en-US/search?q=abort+controller",
            "https://github.com/a/b/commit/0123456789abcdef0123456789abcdef01234567",
            "https://a1b2c3.cloudfront.net/app.js",
        ] {
            assert_eq!(fetch(a, Fetcher::Tool, &Custom::default()), Decision::SILENT, "{a}");
        }
        assert_eq!(
            fetch("http://localhost:3000/health", Fetcher::Command, &Custom::default()),
            Decision::SILENT
        );
    }
}
