//! The head of a request, read so that it can mean only one thing.
//!
//! `httparse` cuts the head into its parts; the rules here refuse every shape that two readers are known to read
//! differently: bare line feeds, folded headers, both or several body lengths, transfer codings other than one plain
//! `chunked`, several Host headers, and control characters anywhere. A connection carries one request, so there is no
//! second request to smuggle. Work is linear in the head, which is bounded by the caller's limits.

use super::host::{Host, split_port};
use thiserror::Error;

/// Why a head is refused. The text goes into the answer and names no bytes of the request.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[error("the request {0}")]
pub struct HeadError(pub &'static str);

/// Where a request wants to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `CONNECT host:port`.
    Tunnel(Host, u16),
    /// `GET http://host[:port]/path`.
    Absolute(Host, u16),
    /// `GET /path`: to the server itself. The Host header, if it is a host.
    Origin(Option<(Host, Option<u16>)>),
}

/// A well-formed head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The method, a token.
    pub method: String,
    /// Where to.
    pub target: Target,
    /// Path and query of the target, `/` at least; empty for a tunnel. Visible ASCII.
    pub path: String,
    /// Length of the head in bytes, with its empty line.
    pub len: usize,
    /// There is a body.
    pub has_body: bool,
}

/// Finds the end of the head in `buf`, looking again only at bytes from `from` on: the index after the empty line.
///
/// A line feed without a carriage return before it, or the reverse, is refused as soon as it is seen.
pub fn end_of_head(buf: &[u8], from: usize) -> Result<Option<usize>, HeadError> {
    let mut at = from.saturating_sub(4);
    while let Some(step) =
        buf.get(at..).and_then(|rest| rest.iter().position(|b| matches!(b, b'\n' | b'\r' | 0)))
    {
        at += step;
        let before = at.checked_sub(1).and_then(|i| buf.get(i));
        match (buf.get(at), buf.get(at + 1)) {
            (Some(b'\r'), Some(b'\n') | None) => {}
            (Some(b'\n'), _) if before == Some(&b'\r') => {
                if at >= 3 && buf.get(at - 3..=at) == Some(b"\r\n\r\n") {
                    return Ok(Some(at + 1));
                }
            }
            _ => return Err(HeadError("has a line that does not end in CR LF, or a NUL byte")),
        }
        at += 1;
    }
    Ok(None)
}

/// Reads a complete head: `buf` ends with the empty line. `max_headers` bounds the number of header lines.
pub fn parse(buf: &[u8], max_headers: usize) -> Result<Head, HeadError> {
    let mut headers = vec![httparse::EMPTY_HEADER; max_headers];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(buf) {
        Ok(httparse::Status::Complete(len)) if len == buf.len() => {}
        Err(httparse::Error::TooManyHeaders) => return Err(HeadError("has too many headers")),
        _ => return Err(HeadError("is not a well-formed HTTP/1.1 head")),
    }
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
        return Err(HeadError("is not a well-formed HTTP/1.1 head"));
    };
    let line_end = buf.iter().position(|b| *b == b'\r').unwrap_or(0);
    if buf.get(..line_end).is_none_or(|line| line.iter().filter(|b| **b == b' ').count() != 2) {
        return Err(HeadError("line has stray spaces"));
    }
    let framing = Framing::of(request.headers, minor)?;
    let (target, path) = if method == "CONNECT" {
        if framing.has_body {
            return Err(HeadError("is CONNECT and has a body"));
        }
        let (host, port) = authority(target)?;
        (Target::Tunnel(host, port.ok_or(HeadError("is CONNECT without a port"))?), String::new())
    } else {
        resource(target, &framing)?
    };
    framing.agrees_with(&target)?;
    Ok(Head { method: method.to_owned(), target, path, len: buf.len(), has_body: framing.has_body })
}

/// What the headers say about where the request ends and whom it is for.
struct Framing {
    has_body: bool,
    host: Option<(Host, Option<u16>)>,
}

impl Framing {
    fn of(headers: &[httparse::Header<'_>], minor: u8) -> Result<Framing, HeadError> {
        let (mut lengths, mut codings, mut hosts) = (0, 0, 0);
        let (mut has_body, mut host) = (false, None);
        for header in headers {
            if header.value.iter().any(|b| (*b < 0x20 && *b != b'\t') || *b == 0x7f) {
                return Err(HeadError("has a control character in a header"));
            }
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                lengths += 1;
                let plain =
                    (1..=15).contains(&header.value.len()) && header.value.iter().all(u8::is_ascii_digit);
                if !plain {
                    return Err(HeadError("has a Content-Length that is not a plain number"));
                }
                has_body |= header.value.iter().any(|b| *b != b'0');
            } else if is("transfer-encoding") {
                codings += 1;
                if minor == 0 || !header.value.eq_ignore_ascii_case(b"chunked") {
                    return Err(HeadError("has a Transfer-Encoding other than chunked"));
                }
                has_body = true;
            } else if is("host") {
                hosts += 1;
                host = match std::str::from_utf8(header.value) {
                    Ok("") => None,
                    Ok(text) => {
                        Some(authority(text).map_err(|_| HeadError("has a Host header that is no host"))?)
                    }
                    Err(_) => return Err(HeadError("has a Host header that is no host")),
                };
            } else if is("connection") && !connection_is_harmless(header.value) {
                return Err(HeadError("hides a header behind Connection"));
            } else if header.name.bytes().any(|b| b == b'_') && looks_like_framing(header.name) {
                return Err(HeadError("has a header that imitates a framing header"));
            }
        }
        if lengths + codings > 1 {
            return Err(HeadError("has more than one body length"));
        }
        if hosts > 1 || (hosts == 0 && minor == 1) {
            return Err(HeadError("does not have exactly one Host header"));
        }
        Ok(Framing { has_body, host })
    }

    /// The Host header must name what the request line names.
    fn agrees_with(&self, target: &Target) -> Result<(), HeadError> {
        let (host, port, default) = match target {
            Target::Origin(_) => return Ok(()),
            Target::Tunnel(host, port) => (host, *port, *port),
            Target::Absolute(host, port) => (host, *port, 80),
        };
        match &self.host {
            None => Ok(()),
            Some((named, at)) if named == host && at.unwrap_or(default) == port => Ok(()),
            // RFC 9110 §7.2 wants the port here, and several clients leave it out of a CONNECT's Host.
            Some((named, None)) if named == host && matches!(target, Target::Tunnel(..)) => Ok(()),
            Some(_) => Err(HOST_MISMATCH),
        }
    }
}

/// The error of a Host header that disagrees with the request line, which callers tell apart.
pub const HOST_MISMATCH: HeadError = HeadError("line and its Host header name different hosts");

fn connection_is_harmless(value: &[u8]) -> bool {
    const FIXED: [&[u8]; 5] =
        [b"host", b"content-length", b"transfer-encoding", b"authorization", b"x-api-key"];
    value.split(|b| *b == b',').all(|option| {
        let option = option.trim_ascii();
        !FIXED.iter().any(|fixed| option.eq_ignore_ascii_case(fixed))
    })
}

fn looks_like_framing(name: &str) -> bool {
    let dashed = name.replace('_', "-");
    ["content-length", "transfer-encoding", "host"].iter().any(|f| dashed.eq_ignore_ascii_case(f))
}

fn authority(text: &str) -> Result<(Host, Option<u16>), HeadError> {
    if !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(HeadError("names a host with characters outside ASCII"));
    }
    let (host, port) = split_port(text).ok_or(HeadError("names no valid host and port"))?;
    let host = Host::parse(host).map_err(|_| HeadError("names no valid host and port"))?;
    Ok((host, port))
}

fn resource(target: &str, framing: &Framing) -> Result<(Target, String), HeadError> {
    if !target.bytes().all(|b| b.is_ascii_graphic()) || target.contains('#') {
        return Err(HeadError("target has characters that must be escaped"));
    }
    if target.starts_with('/') {
        return Ok((Target::Origin(framing.host.clone()), target.to_owned()));
    }
    let scheme_end = target.find("://").ok_or(HeadError("target is neither a path nor a URL"))?;
    let (scheme, rest) = (&target[..scheme_end], &target[scheme_end + 3..]);
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(HeadError("target is not an http URL; use CONNECT for anything else"));
    }
    let end = rest.find(['/', '?', '\\']).unwrap_or(rest.len());
    let (host, port) = authority(&rest[..end])?;
    let path = match &rest[end..] {
        "" => "/".to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        query if query.starts_with('?') => format!("/{query}"),
        _ => return Err(HeadError("target has a backslash in its authority")),
    };
    Ok((Target::Absolute(host, port.unwrap_or(80)), path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> Result<Head, HeadError> {
        match end_of_head(head.as_bytes(), 0)? {
            Some(end) => parse(&head.as_bytes()[..end], 64),
            None => Err(HeadError("is cut short")),
        }
    }

    fn name(host: &str) -> Host {
        Host::parse(host).unwrap()
    }

    #[test]
    fn each_form_of_target_is_told_apart() {
        let head = read("CONNECT Example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n").unwrap();
        assert_eq!(head.target, Target::Tunnel(name("example.org"), 443));
        let head = read("GET http://example.org/a?b HTTP/1.1\r\nHost: example.org\r\n\r\n").unwrap();
        assert_eq!((head.target, head.path.as_str()), (Target::Absolute(name("example.org"), 80), "/a?b"));
        let head = read("POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n").unwrap();
        assert!(matches!(head.target, Target::Origin(Some(_))) && head.has_body);
    }

    #[test]
    fn shapes_that_two_readers_read_differently_are_refused() {
        let h = "Host: a.test\r\n";
        for bad in [
            format!("GET / HTTP/1.1\n{h}\r\n"),
            format!("GET / HTTP/1.1\r\n{h}X: 1\n\r\n"),
            format!("GET / HTTP/1.1\r\n{h}X: 1\rY: 2\r\n\r\n"),
            format!("GET / HTTP/1.1\r\n{h}X: a\0b\r\n\r\n"),
            format!("GET / HTTP/1.1\r\n{h}X: 1\r\n folded\r\n\r\n"),
            format!("GET / HTTP/1.1\r\n{h}Content-Length : 3\r\n\r\n"),
            format!("POST / HTTP/1.1\r\n{h}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
            format!("POST / HTTP/1.1\r\n{h}Content-Length: 3\r\nContent-Length: 3\r\n\r\n"),
            format!("POST / HTTP/1.1\r\n{h}Content-Length: +3\r\n\r\n"),
            format!("POST / HTTP/1.1\r\n{h}Content-Length: 3, 3\r\n\r\n"),
            format!("POST / HTTP/1.1\r\n{h}Content-Length: 0x3\r\n\r\n"),
            format!("POST / HTTP/1.1\r\n{h}Content_Length: 3\r\n\r\n"),
            format!("POST / HTTP/1.1\r\n{h}Transfer-Encoding: xchunked\r\n\r\n"),
            format!("POST / HTTP/1.1\r\n{h}Transfer-Encoding: chunked, identity\r\n\r\n"),
            format!("POST / HTTP/1.1\r\n{h}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
            format!("POST / HTTP/1.1\r\n{h}Transfer-Encoding: \x0bchunked\r\n\r\n"),
            format!("POST / HTTP/1.0\r\n{h}Transfer-Encoding: chunked\r\n\r\n"),
            format!("GET / HTTP/1.1\r\n{h}Host: b.test\r\n\r\n"),
            "GET / HTTP/1.1\r\n\r\n".into(),
            format!("GET  / HTTP/1.1\r\n{h}\r\n"),
            format!("GET / HTTP/1.1 \r\n{h}\r\n"),
            format!("GET / HTTP/2.0\r\n{h}\r\n"),
            "GET http://b.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n".into(),
            "GET http://a.test:81/ HTTP/1.1\r\nHost: a.test\r\n\r\n".into(),
            "GET http://b.test\\@a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n".into(),
            "GET http://b.test@a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n".into(),
            "GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n".into(),
            "GET http://a.test/#x HTTP/1.1\r\nHost: a.test\r\n\r\n".into(),
            "CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n".into(),
            "CONNECT a.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n".into(),
            "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nContent-Length: 5\r\n\r\n".into(),
            "CONNECT a.test:443:80 HTTP/1.1\r\nHost: a.test\r\n\r\n".into(),
            "CONNECT http://a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n".into(),
            "CONNECT a.test:443/ HTTP/1.1\r\nHost: a.test\r\n\r\n".into(),
            format!("GET / HTTP/1.1\r\n{h}Connection: close, Content-Length\r\n\r\n"),
            format!("GET * HTTP/1.1\r\n{h}\r\n"),
            format!("G\u{e9}T / HTTP/1.1\r\n{h}\r\n"),
        ] {
            assert!(read(&bad).is_err(), "{bad:?} -> {:?}", read(&bad));
        }
    }

    #[test]
    fn headers_beyond_the_bound_are_refused() {
        let many = "X: 1\r\n".repeat(65);
        let error = read(&format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n"));
        assert_eq!(error, Err(HeadError("has too many headers")));
    }

    #[test]
    fn the_end_is_found_however_the_head_is_cut() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
        let mut from = 0;
        for end in 0..=head.len() {
            match end_of_head(&head[..end], from).unwrap() {
                Some(found) => {
                    assert_eq!(found, head.len() - 4);
                    return;
                }
                None => from = end,
            }
        }
        panic!("no end found");
    }
}
