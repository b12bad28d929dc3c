//! Host names as an outsider spells them, reduced to one canonical form.
//!
//! Every comparison in this module tree is made on [`Host`], never on text: two spellings of one destination are equal,
//! and a spelling that has no canonical form is an error. Work is linear in the input, which is bounded by
//! [`MAX_SPELLING`] bytes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thiserror::Error;

/// Longest spelling looked at, in bytes. A percent-encoded name of the longest legal length fits.
pub const MAX_SPELLING: usize = 1024;
/// Longest name in the domain name system without the trailing dot, in bytes (RFC 1035 §2.3.4).
pub const MAX_NAME: usize = 253;

/// Why a spelling is not a host.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum HostError {
    /// Nothing, or only a dot.
    #[error("the host is empty")]
    Empty,
    /// Longer than any name can be.
    #[error("the host is too long")]
    TooLong,
    /// A percent escape that is cut short, or that decodes to another escape.
    #[error("the host has a broken percent escape")]
    Percent,
    /// Not a name under IDNA (UTS 46), or it holds a byte that no name may hold.
    #[error("the host is not a valid name")]
    Name,
    /// It ends in a number, so it must be an IPv4 address, and is none.
    #[error("the host looks like an IPv4 address and is none")]
    Ipv4,
    /// In brackets, and not an IPv6 address.
    #[error("the host is not a valid IPv6 address")]
    Ipv6,
    /// An IPv6 address with a zone. A zone names an interface of the machine outside, which is no destination.
    #[error("an address with a zone is not a destination")]
    Zone,
}

/// A destination host in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// Lower case, A-labels, no trailing dot, at most [`MAX_NAME`] bytes, ASCII.
    Name(String),
    /// An address literal in whatever spelling. A v4-mapped address is held as the IPv4 address.
    Address(IpAddr),
}

impl Host {
    /// Reads a host from a request target, a header, a ClientHello or a DNS question.
    ///
    /// Understands what common clients and C libraries understand: percent escapes (one level), any case, IDNA
    /// mapping, one trailing dot, brackets, and the `inet_aton` spellings of IPv4 (octal, hexadecimal, fewer parts).
    pub fn parse(spelling: &str) -> Result<Host, HostError> {
        if spelling.len() > MAX_SPELLING {
            return Err(HostError::TooLong);
        }
        let decoded = percent_decode(spelling)?;
        if let Some(rest) = decoded.strip_prefix('[') {
            return ipv6(rest.strip_suffix(']').ok_or(HostError::Ipv6)?);
        }
        if decoded.contains(':') {
            return ipv6(&decoded);
        }
        let ascii = idna::domain_to_ascii_cow(decoded.as_bytes(), idna::AsciiDenyList::URL)
            .map_err(|_| HostError::Name)?;
        let name = ascii.strip_suffix('.').unwrap_or(&ascii);
        if name.is_empty() {
            return Err(HostError::Empty);
        }
        if name.len() > MAX_NAME {
            return Err(HostError::TooLong);
        }
        if ends_in_a_number(name) {
            return Ok(Host::Address(IpAddr::V4(inet_aton(name).ok_or(HostError::Ipv4)?)));
        }
        let label_ok = |l: &str| {
            !l.is_empty()
                && l.len() <= 63
                && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        if !name.split('.').all(label_ok) {
            return Err(HostError::Name);
        }
        Ok(Host::Name(name.to_ascii_lowercase()))
    }
}

/// Canonical text: names bare, IPv6 addresses in brackets. Safe to print: ASCII, no control characters.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(v4)) => v4.fmt(f),
            Host::Address(IpAddr::V6(v6)) => write!(f, "[{v6}]"),
        }
    }
}

/// Splits `authority` into its host and its port, if it names one. No user information is understood: `@` is refused
/// by the host's own grammar.
pub fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let end = rest.find(']')?;
            let after = &rest[end + 1..];
            (&authority[..end + 2], after.strip_prefix(':').map(Some).or(after.is_empty().then_some(None))?)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    match port {
        None => Some((host, None)),
        Some(digits) if (1..=5).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse::<u16>().ok().filter(|p| *p != 0).map(|p| (host, Some(p)))
        }
        Some(_) => None,
    }
}

fn percent_decode(spelling: &str) -> Result<std::borrow::Cow<'_, str>, HostError> {
    if !spelling.contains('%') {
        return Ok(spelling.into());
    }
    if spelling.starts_with('[') || spelling.contains(':') {
        return Err(HostError::Zone);
    }
    let hex = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    let mut out = Vec::with_capacity(spelling.len());
    let mut bytes = spelling.bytes();
    while let Some(b) = bytes.next() {
        if b != b'%' {
            out.push(b);
            continue;
        }
        let (high, low) = (bytes.next().and_then(hex), bytes.next().and_then(hex));
        match (high, low) {
            (Some(high), Some(low)) => out.push(high << 4 | low),
            _ => return Err(HostError::Percent),
        }
    }
    let text = String::from_utf8(out).map_err(|_| HostError::Percent)?;
    if text.contains(['%', '[', ']', ':']) { Err(HostError::Percent) } else { Ok(text.into()) }
}

fn ipv6(text: &str) -> Result<Host, HostError> {
    let address: Ipv6Addr = text.parse().map_err(|_| HostError::Ipv6)?;
    Ok(Host::Address(canonical(IpAddr::V6(address))))
}

/// The address itself, or the IPv4 address that a v4-mapped one stands for.
pub fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// The WHATWG test for "this can only be an IPv4 address": the last label is a number.
fn ends_in_a_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    !last.is_empty() && (last.bytes().all(|b| b.is_ascii_digit()) || number(last).is_some())
}

/// One part of an `inet_aton` address: decimal, octal with a leading 0, hexadecimal with a leading 0x.
fn number(part: &str) -> Option<u64> {
    let lower = part.to_ascii_lowercase();
    match lower.strip_prefix("0x") {
        Some("") => Some(0),
        Some(hex) if hex.len() <= 16 && hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
            u64::from_str_radix(hex, 16).ok()
        }
        Some(_) => None,
        None if part.is_empty() || part.len() > 16 || !part.bytes().all(|b| b.is_ascii_digit()) => None,
        None if part.len() > 1 && part.starts_with('0') => u64::from_str_radix(part, 8).ok(),
        None => part.parse().ok(),
    }
}

fn inet_aton(name: &str) -> Option<Ipv4Addr> {
    let parts = name.split('.').map(number).collect::<Option<Vec<u64>>>()?;
    let (last, leading) = parts.split_last()?;
    if leading.len() > 3 || leading.iter().any(|p| *p > 255) {
        return None;
    }
    let room = 32 - 8 * leading.len() as u32;
    if *last >= 1u64 << room {
        return None;
    }
    let high = leading.iter().enumerate().map(|(i, p)| *p << (24 - 8 * i)).sum::<u64>();
    u32::try_from(high + last).ok().map(Ipv4Addr::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(spelling: &str) -> String {
        match Host::parse(spelling) {
            Ok(Host::Name(name)) => name,
            other => panic!("{spelling}: {other:?}"),
        }
    }

    #[test]
    fn spellings_of_one_name_are_equal() {
        for spelling in [
            "example.org",
            "EXAMPLE.org",
            "example.org.",
            "ex%61mple.org",
            "example%2Eorg",
            "ｅxample.org",
            "example。org",
            "exam\u{ad}ple.org",
        ] {
            assert_eq!(name(spelling), "example.org", "{spelling}");
        }
        assert_eq!(name("Bücher.example"), "xn--bcher-kva.example");
        assert_eq!(name("XN--BCHER-KVA.example"), "xn--bcher-kva.example");
    }

    #[test]
    fn spellings_of_one_address_are_equal() {
        for spelling in [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.01",
            "017700000001",
            "0X7F.0x0.0.1",
            "127.0.0.1.",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "::ffff:127.0.0.1",
            "１２７.０.０.１",
            "%31%32%37.0.0.1",
            "127。0。0。1",
        ] {
            let loopback = Host::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));
            assert_eq!(Host::parse(spelling), Ok(loopback), "{spelling}");
        }
    }

    #[test]
    fn what_has_no_canonical_form_is_refused() {
        for spelling in [
            "",
            ".",
            "a..b",
            "a b",
            "a\0b",
            "user@host",
            "1.2.3.4.5",
            "256.1.1.1",
            "1.2.3",
            "0x",
            "a.0xg",
            "[::1",
            "[fe80::1%25eth0]",
            "fe80::1%eth0",
            "%2525",
            "ex%6",
            "a/b",
            "a\\b",
            "a#b",
            "a?b",
            "xn--\u{80}",
            "-\u{200d}-",
            "[127.0.0.1]",
            "example.org..",
            "host%00",
            "%5B::1%5D",
        ] {
            let parsed = Host::parse(spelling);
            match spelling {
                "1.2.3" | "0x" => assert!(matches!(parsed, Ok(Host::Address(_))), "{spelling}: {parsed:?}"),
                "a.0xg" => assert!(matches!(parsed, Ok(Host::Name(_))), "{spelling}: {parsed:?}"),
                _ => assert!(parsed.is_err(), "{spelling}: {parsed:?}"),
            }
        }
        assert_eq!(Host::parse(&"a".repeat(MAX_SPELLING + 1)), Err(HostError::TooLong));
        assert_eq!(Host::parse(&"a.".repeat(200)), Err(HostError::TooLong));
    }

    #[test]
    fn ports_are_plain_decimal() {
        assert_eq!(split_port("a:443"), Some(("a", Some(443))));
        assert_eq!(split_port("[::1]:8443"), Some(("[::1]", Some(8443))));
        assert_eq!(split_port("[::1]"), Some(("[::1]", None)));
        for bad in
            ["a:", "a:0", "a:65536", "a:+80", "a: 80", "a:80:80", "[::1]443", "[::1", "a:0x50", "a:000080"]
        {
            assert_eq!(split_port(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn canonical_text_parses_to_itself(spelling in "\\PC{0,80}") {
            if let Ok(host) = Host::parse(&spelling) {
                prop_assert_eq!(Host::parse(&host.to_string()), Ok(host.clone()));
                prop_assert!(host.to_string().bytes().all(|b| b.is_ascii_graphic()));
            }
        }

        #[test]
        fn every_numeric_spelling_of_an_address_is_that_address(bits: u32, style in 0u8..5) {
            let v4 = Ipv4Addr::from(bits);
            let [a, b, c, d] = v4.octets();
            let spelling = match style {
                0 => format!("{bits}"),
                1 => format!("{bits:#x}"),
                2 => format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
                3 => format!("{a}.{}", bits & 0xff_ffff),
                _ => format!("[::ffff:{v4}]"),
            };
            prop_assert_eq!(Host::parse(&spelling), Ok(Host::Address(IpAddr::V4(v4))));
        }
    }
}
