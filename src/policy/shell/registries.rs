//! Where packages come from: the registries that are used anyway, and the options that name another.

use super::value::Val;
use url::{Host, Url};

/// Hosts of the registries that the package managers use without being told to, and of one vendor's documented index.
const USUAL: &[&str] = &[
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "pypi.org",
    "files.pythonhosted.org",
    "download.pytorch.org",
    "proxy.golang.org",
    "index.crates.io",
    "rubygems.org",
];

/// Options that name a registry. Some programs take the start of one for the whole.
const OPTIONS: &[&str] = &[
    "--index-url",
    "--pypi-url",
    "--extra-index-url",
    "--find-links",
    "--trusted-host",
    "--default-index",
    "--index",
    "--registry",
];

/// Whether every address in `text` (several are parted by blanks, commas or bars) is of a registry that is used anyway, or
/// of this machine. What programs could read in different ways is not.
pub(super) fn usual(text: &str) -> bool {
    let mut parts = text.split([' ', ',', '|']).filter(|p| !p.is_empty()).peekable();
    parts.peek().is_some() && parts.all(|p| matches!(p, "direct" | "off") || one(p))
}

fn one(text: &str) -> bool {
    if !text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'\\' | b'@')) {
        return false;
    }
    let Ok(url) = Url::parse(text) else { return false };
    match (url.scheme(), url.host()) {
        ("https", Some(Host::Domain(name))) if url.port().is_none() => {
            USUAL.contains(&name) || name == "localhost"
        }
        ("http" | "https", Some(Host::Domain(name))) => name == "localhost",
        ("http" | "https", Some(Host::Ipv4(ip))) => ip.is_loopback(),
        ("http" | "https", Some(Host::Ipv6(ip))) => ip.is_loopback(),
        _ => false,
    }
}

/// Whether all of `values`, and at least one, are.
pub(super) fn all_usual(values: &[Val]) -> bool {
    !values.is_empty() && values.iter().all(|v| usual(&v.text))
}

/// What an option says of where packages come from.
pub(super) struct Named {
    /// The address, the directory or the host.
    pub value: String,
    /// Whether it is the next argument.
    pub next: bool,
}

/// The registry that `arg` names, if it is an option that does. `short`: `-i` and `-f` are such options of the program.
pub(super) fn named(arg: &str, next: Option<&str>, short: bool) -> Option<Named> {
    let after = || Named { value: next.unwrap_or_default().to_owned(), next: next.is_some() };
    if short && let Some(value) = arg.strip_prefix("-i").or_else(|| arg.strip_prefix("-f")) {
        let value = value.trim_start_matches('=');
        return Some(if value.is_empty() { after() } else { Named { value: value.to_owned(), next: false } });
    }
    let (name, value) = match arg.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (arg, None),
    };
    let whole = OPTIONS.contains(&name) || name.starts_with("--@") && name.ends_with(":registry");
    if !(whole || name.len() > 4 && OPTIONS.iter().any(|o| o.starts_with(name))) {
        return None;
    }
    let named = match value {
        Some(value) => Named { value: value.to_owned(), next: false },
        None => after(),
    };
    // The start of an option can be another option: only an address makes it this one.
    (whole || named.value.contains("://")).then_some(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_usual_hosts_are_usual_however_the_address_is_written() {
        for url in [
            "https://pypi.org/simple",
            "https://pypi.org",
            "https://PyPI.org/simple/",
            "https://registry.npmjs.org",
            "https://registry.npmjs.org:443/",
            "https://download.pytorch.org/whl/cpu",
            "https://proxy.golang.org,direct",
            "https://pypi.org/simple https://download.pytorch.org/whl/cu121",
            "http://localhost:4873",
            "http://127.0.0.1:8080/simple",
            "http://[::1]:4873/",
        ] {
            assert!(usual(url), "{url}");
        }
        for url in [
            "",
            ",",
            "direct,https://x.attacker.example",
            "http://pypi.org/simple",
            "https://pypi.org.attacker.example/simple",
            "https://registry.npmjs.org.attacker.example",
            "https://x.attacker.example/pypi.org",
            "https://pypi.org@x.attacker.example/simple",
            "https://pypi.org\\@x.attacker.example/simple",
            "https://pypi.org:8443/simple",
            "https://pypi.org/simple https://x.attacker.example/simple",
            "http://localhost.attacker.example",
            "https://\0/simple",
            "git+https://pypi.org/x",
            "pypi.org",
        ] {
            assert!(!usual(url), "{url:?}");
        }
    }

    #[test]
    fn options_that_name_a_registry_are_found_in_every_form() {
        let value = |arg: &str, next: &str| named(arg, Some(next), true).map(|n| (n.value, n.next));
        let next = |s: &str| Some((s.to_owned(), true));
        let here = |s: &str| Some((s.to_owned(), false));
        assert_eq!(value("--index-url", "https://a"), next("https://a"));
        assert_eq!(value("--index-url=https://a", "b"), here("https://a"));
        assert_eq!(value("--ind=https://a", "b"), here("https://a"));
        assert_eq!(value("--extra", "https://a"), next("https://a"));
        assert_eq!(value("--extra", "dev"), None);
        assert_eq!(value("-i", "https://a"), next("https://a"));
        assert_eq!(value("-ihttps://a", "b"), here("https://a"));
        assert_eq!(value("--@types:registry=https://a", "b"), here("https://a"));
        assert_eq!(value("--upgrade", "https://a"), None);
        assert!(named("-i", Some("x"), false).is_none());
    }
}
