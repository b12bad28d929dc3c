//! Addresses: what a fetch may reach, and what an address may carry out.

mod hosts;

use super::paths::percent_decoded;
use super::{Decision, Verdict, custom::Custom};
use hosts::{COLLECTOR_PATHS, COLLECTORS, LOOPBACK_NAMES, REBINDERS, SERVICE_PORTS};
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
/// Most characters of encoded-looking words that an address may hold in all.
const DATA_WORDS: usize = 112;
/// Longest host label made of encoded-looking characters.
const DATA_LABEL: usize = 30;
/// Most characters of encoded-looking host labels together, each of them at least [`DATA_LABEL_PART`].
const DATA_LABELS: usize = 40;
/// Shortest host label that counts towards [`DATA_LABELS`].
const DATA_LABEL_PART: usize = 16;
/// Most values of a query that are looked at for addresses.
const NESTED_MAX: usize = 64;

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
    if by == Fetcher::Tool {
        answer = answer.or(disguise(text, &name)).or(service(&url, &name)).or(nested(&url));
    }
    answer.or(collector(&name, url.path())).or(data(&url))
}

/// An address that reads as another host than the one it leads to.
fn disguise(text: &str, name: &str) -> Decision {
    let before_query = text.split(['?', '#']).next().unwrap_or_default();
    if before_query.contains('\\') {
        return Decision::ask(
            "web.userinfo",
            "The address holds a backslash, which programs read in different ways. Write it with slashes.",
        );
    }
    if name.split('.').any(|label| label.starts_with("xn--") && look_alike(&idna::domain_to_unicode(label).0))
    {
        return Decision::ask(
            "web.lookalike",
            "The host's name mixes scripts, or is made of letters that look like Latin ones. A person has to agree.",
        );
    }
    Decision::SILENT
}

/// Whether a label mixes Latin with a script that resembles it, or is spelt in such letters alone.
fn look_alike(label: &str) -> bool {
    const LIKE_LATIN: &str = "асԁеһіјӏорԛѕԝхуѵгοανιρτυωкмтвнԍɡ";
    let other = |c: char| matches!(c, '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{52f}' | '\u{530}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}');
    let foreign = label.chars().any(other);
    let latin = label.chars().any(|c| c.is_ascii_alphabetic());
    foreign && (latin || label.chars().filter(|c| c.is_alphabetic()).all(|c| LIKE_LATIN.contains(c)))
}

/// A port of a service of another machine.
fn service(url: &Url, name: &str) -> Decision {
    match url.port() {
        Some(port) if SERVICE_PORTS.contains(&port) => Decision::ask(
            "web.port",
            format!(
                "Port {port} of {name} belongs to a service that serves no pages. A person has to agree."
            ),
        ),
        _ => Decision::SILENT,
    }
}

/// An address inside the address, where a redirector or a proxy may be led to by it: at most [`NESTED_MAX`] values of the
/// query, the query as a whole, and what follows `http:` in the path.
fn nested(url: &Url) -> Decision {
    let mut texts: Vec<String> =
        url.query_pairs().take(NESTED_MAX).map(|(_, value)| percent_decoded(&value).into_owned()).collect();
    texts.extend(url.query().map(|query| percent_decoded(query).into_owned()));
    let path = percent_decoded(url.path()).to_lowercase();
    texts.extend(
        ["http:/", "https:/"]
            .iter()
            .filter_map(|s| path.find(*s).and_then(|at| path.get(at..)).map(str::to_owned)),
    );
    texts.iter().map(|text| inner(text.trim())).fold(Decision::SILENT, Decision::or)
}

/// What is said about an address inside another one.
fn inner(text: &str) -> Decision {
    let lower = text.to_lowercase();
    let whole = if lower.starts_with("//") { format!("http:{lower}") } else { lower };
    let scheme = ["http:", "https:", "ftp:", "gopher://", "file://"].iter().any(|s| whole.starts_with(s));
    let bare = !scheme && whole.split(['/', ':']).next().is_some_and(|h| h.parse::<Ipv4Addr>().is_ok());
    if !scheme && !bare {
        return Decision::SILENT;
    }
    let address = if bare { format!("http://{whole}") } else { whole };
    let Ok(url) = Url::parse(&address) else { return Decision::SILENT };
    let seen = host(&url, Fetcher::Tool);
    match seen.rule {
        "web.metadata" => seen,
        "web.loopback" | "web.private" if !bare && url.has_host() => Decision::ask(
            "web.nested",
            "The address holds another one that leads to this machine or its network. A person has to agree.",
        ),
        _ if matches!(url.scheme(), "gopher" | "file") => Decision::ask(
            "web.nested",
            "The address holds another one of a scheme that fetches no pages. A person has to agree.",
        ),
        _ => Decision::SILENT,
    }
}

/// A part of a larger host that collects what is sent to it.
fn collector(name: &str, path: &str) -> Decision {
    let within = |host: &str| name == host || name.strip_suffix(host).is_some_and(|sub| sub.ends_with('.'));
    if COLLECTOR_PATHS.iter().any(|(host, start)| within(host) && path.starts_with(*start)) {
        return Decision::ask(
            "web.collector",
            format!("{name}{path} collects whatever is sent to it. A person has to agree."),
        );
    }
    Decision::SILENT
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
    let below = |list: &[&str]| {
        list.iter().any(|n| name == *n || name.strip_suffix(*n).is_some_and(|sub| sub.ends_with('.')))
    };
    if matches!(
        name.as_str(),
        "metadata.google.internal"
            | "metadata"
            | "instance-data"
            | "metadata.azure.internal"
            | "metadata.packet.net"
            | "kubernetes"
    ) || name.starts_with("instance-data.")
        || name.starts_with("kubernetes.default")
        || below(REBINDERS)
    {
        return Decision::deny(
            "web.metadata",
            "The name leads to the machine's or the cloud's own services.",
        );
    }
    if name.ends_with(".localhost") || below(LOOPBACK_NAMES) {
        return loopback(port, by);
    }
    if let Some(seen) = numbers(&name)
        .into_iter()
        .map(|ip| address(IpAddr::V4(ip), port, by))
        .find(|seen| matches!(seen.rule, "web.metadata" | "web.loopback" | "web.private"))
    {
        return seen;
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
    if below(COLLECTORS) {
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

/// The IPv4 addresses that are spelt in a name, with dots or dashes.
fn numbers(name: &str) -> Vec<Ipv4Addr> {
    let parts: Vec<Option<u8>> = name.split(['.', '-']).map(|p| p.parse().ok()).collect();
    parts
        .windows(4)
        .filter_map(|w| match w {
            [Some(a), Some(b), Some(c), Some(d)] => Some(Ipv4Addr::new(*a, *b, *c, *d)),
            _ => None,
        })
        .collect()
}

/// Whether a host name carries data in its labels.
pub fn encoded_host(name: &str) -> bool {
    let labels: Vec<&str> = name.split('.').collect();
    let sub = labels.len().saturating_sub(2);
    let own = labels.get(..sub).unwrap_or_default();
    let encoded = own.iter().filter(|l| l.len() >= DATA_LABEL && encoded(l)).count();
    let parts: usize =
        own.iter().filter(|l| l.len() >= DATA_LABEL_PART && self::encoded(l)).map(|l| l.len()).sum();
    encoded > 0 || parts >= DATA_LABELS || own.iter().map(|l| l.len()).sum::<usize>() > 90
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
    if run(rest) || words(rest) {
        return Decision::ask(
            "web.data",
            "The address carries a long piece of encoded data. A person has to agree.",
        );
    }
    Decision::SILENT
}

/// Whether the words of an address that mix letters and digits, or are long hexadecimal ones, add up to data.
fn words(text: &str) -> bool {
    let plain = percent_decoded(text);
    let sum: usize = plain
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| {
            let digits = w.bytes().filter(u8::is_ascii_digit).count();
            let hex = w.len() >= 16 && w.bytes().all(|b| b.is_ascii_hexdigit());
            hex || digits > 0 && digits < w.len()
        })
        .map(str::len)
        .sum();
    sum > DATA_WORDS
}

/// Whether an address is one of this machine's, and one that controls nothing: a developer's own server.
pub fn own_server(text: &str) -> bool {
    let text = text.trim();
    let url = match Url::parse(text) {
        Ok(url) if url.has_host() => url,
        _ => match Url::parse(&format!("http://{text}")) {
            Ok(url) => url,
            Err(_) => return false,
        },
    };
    matches!(url.scheme(), "http" | "https" | "ws" | "wss")
        && host(&url, Fetcher::Tool).rule == "web.loopback"
        && host(&url, Fetcher::Command).verdict == Verdict::None
        && url.port().is_none_or(|p| !SERVICE_PORTS.contains(&p))
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
            "http://lvh.me/",
            "http://a.vcap.me/",
            "http://127-0-0-1.local-ip.co/",
            "http://app-10-0-0-7.dns.example/",
            "http://localhost.localdomain/",
            "https://httpbin.org/redirect-to?url=http://169.254.169.254/",
            "https://r.example/http://169.254.169.254/latest",
            "https://r.example/?u=%2568ttp://127.0.0.1:80/",
            "https://x.ngrok.dev/",
            "https://discord.com/api/webhooks/1/x",
            "https://script.google.com/macros/s/x/exec",
            "https://evil.example\\@github.com/",
            "https://\u{430}pple.com/",
            "https://example.com:6379/",
            "https://a1b2c3d4e5f6a7b8c9d0.a1b2c3d4e5f6a7b8c9d0.a1b2c3d4e5f6a7b8c9d0.evil.example/",
        ] {
            assert!(fetch(a, Fetcher::Tool, &Custom::default()).verdict >= Verdict::Ask, "{a}");
        }
    }

    #[test]
    fn data_that_is_cut_in_pieces_is_seen() {
        let pieces = [
            format!("https://e.example/?d={}", "a1-".repeat(60)),
            format!("https://e.example/{}", "0123456789abcdef0123456789abcdef/".repeat(20)),
        ];
        for a in &pieces {
            assert_eq!(fetch(a, Fetcher::Tool, &Custom::default()).rule, "web.data", "{a}");
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
            "https://github.com/a/b/compare/0123456789abcdef0123456789abcdef01234567...fedcba9876543210fedcba9876543210fedcba98",
            "https://example.com/login?next=https://example.com/home",
            "https://web.archive.org/web/2024/https://example.com/",
            "https://b\u{fc}cher.example/",
            "https://example.com:8443/docs",
            "https://docs.google.com/document/d/1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUvWxYz0123456789/edit",
            "https://discord.com/developers/docs",
            "https://ec2-52-1-2-3.compute-1.amazonaws.com/",
            "https://zh.wikipedia.org/wiki/%E4%BA%BA%E5%B7%A5%E6%99%BA%E8%83%BD%E5%AE%89%E5%85%A8%E7%A0%94%E7%A9%B6%E6%89%80",
        ] {
            assert_eq!(fetch(a, Fetcher::Tool, &Custom::default()), Decision::SILENT, "{a}");
        }
        assert_eq!(
            fetch("http://localhost:3000/health", Fetcher::Command, &Custom::default()),
            Decision::SILENT
        );
    }
}
