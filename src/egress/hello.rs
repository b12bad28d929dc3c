//! The server name in a TLS ClientHello, also when the hello is split over records and packets.
//!
//! Only what is needed is read (RFC 8446 §4.1.2, RFC 6066 §3): record headers, the handshake header, and the list of
//! extensions. A hello of more than [`MAX_HELLO`] bytes is refused.

use thiserror::Error;

/// Longest ClientHello looked at, in bytes of handshake. Post-quantum key shares take under 2 KiB.
pub const MAX_HELLO: usize = 16 * 1024;
/// Most bytes of records that such a hello can take here: a hello cut into records of less than 16 bytes is refused.
pub const MAX_RECORDS: usize = MAX_HELLO * 2;

const HANDSHAKE_RECORD: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const EXT_SERVER_NAME: u16 = 0;
const EXT_ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// What a ClientHello says about its destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The host name of the server_name extension, as sent.
    pub server_name: Option<String>,
    /// An encrypted ClientHello, real or decoy, is there.
    pub ech: bool,
}

/// The bytes are TLS, and no ClientHello.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[error("the TLS ClientHello {0}")]
pub struct HelloError(pub &'static str);

/// Whether a connection that starts with `first` speaks TLS.
pub fn is_tls(first: u8) -> bool {
    first == HANDSHAKE_RECORD
}

/// Reads the hello from the first bytes of a connection. `None`: there is more to come.
pub fn parse(buf: &[u8]) -> Result<Option<Hello>, HelloError> {
    let mut handshake = Vec::new();
    let mut rest = buf;
    while let Some((header, body)) = rest.split_at_checked(5) {
        let &[kind, major, _, high, low] = header else { break };
        let len = usize::from(high) << 8 | usize::from(low);
        if kind != HANDSHAKE_RECORD || major != 3 || len == 0 || len > MAX_HELLO {
            return Err(HelloError("is not one handshake message"));
        }
        let part = body.get(..len).unwrap_or(body);
        handshake.extend_from_slice(part);
        if handshake.len() > MAX_HELLO {
            return Err(HelloError("is too long"));
        }
        if let Some(hello) = message(&handshake)? {
            return extensions(hello).map(Some);
        }
        if part.len() < len {
            break;
        }
        rest = body.get(len..).unwrap_or_default();
    }
    if buf.len() >= MAX_RECORDS { Err(HelloError("is too long")) } else { Ok(None) }
}

/// The body of the ClientHello, once all of it is there.
fn message(handshake: &[u8]) -> Result<Option<&[u8]>, HelloError> {
    let Some((header, body)) = handshake.split_at_checked(4) else {
        return match handshake.first() {
            Some(&kind) if kind != CLIENT_HELLO => Err(HelloError("is another handshake message")),
            _ => Ok(None),
        };
    };
    let &[kind, a, b, c] = header else { return Ok(None) };
    let len = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
    if kind != CLIENT_HELLO {
        return Err(HelloError("is another handshake message"));
    }
    if len > MAX_HELLO {
        return Err(HelloError("is too long"));
    }
    if body.len() > len {
        return Err(HelloError("is followed by another message"));
    }
    Ok((body.len() == len).then_some(body))
}

fn extensions(hello: &[u8]) -> Result<Hello, HelloError> {
    const SHORT: HelloError = HelloError("is cut short inside");
    let mut at = Cursor(hello);
    at.take(2 + 32).ok_or(SHORT)?;
    at.vector8().ok_or(SHORT)?;
    at.vector16().ok_or(SHORT)?;
    at.vector8().ok_or(SHORT)?;
    let mut found = Hello { server_name: None, ech: false };
    if at.0.is_empty() {
        return Ok(found);
    }
    let mut list = Cursor(at.vector16().ok_or(SHORT)?);
    if !at.0.is_empty() {
        return Err(HelloError("has bytes after its extensions"));
    }
    let mut names = 0;
    while !list.0.is_empty() {
        let kind = list.number16().ok_or(SHORT)?;
        let body = list.vector16().ok_or(SHORT)?;
        match kind {
            EXT_SERVER_NAME => {
                names += 1;
                found.server_name = Some(server_name(body)?);
            }
            EXT_ENCRYPTED_CLIENT_HELLO => found.ech = true,
            _ => {}
        }
    }
    if names > 1 { Err(HelloError("names its server twice")) } else { Ok(found) }
}

fn server_name(body: &[u8]) -> Result<String, HelloError> {
    const BAD: HelloError = HelloError("has a malformed server name");
    let mut at = Cursor(body);
    let mut list = Cursor(at.vector16().ok_or(BAD)?);
    let kind = list.take(1).ok_or(BAD)?;
    let name = list.vector16().ok_or(BAD)?;
    if !at.0.is_empty() || !list.0.is_empty() || kind != [0] || name.is_empty() {
        return Err(BAD);
    }
    let text = std::str::from_utf8(name).map_err(|_| BAD)?;
    if text.bytes().all(|b| b.is_ascii_graphic()) { Ok(text.to_owned()) } else { Err(BAD) }
}

struct Cursor<'b>(&'b [u8]);

impl<'b> Cursor<'b> {
    fn take(&mut self, n: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn number16(&mut self) -> Option<u16> {
        self.take(2).and_then(|b| b.try_into().ok()).map(u16::from_be_bytes)
    }

    fn vector8(&mut self) -> Option<&'b [u8]> {
        let len = *self.take(1)?.first()?;
        self.take(usize::from(len))
    }

    fn vector16(&mut self) -> Option<&'b [u8]> {
        let len = self.number16()?;
        self.take(usize::from(len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    /// What rustls really sends for `name`.
    fn real_hello(name: &str) -> Vec<u8> {
        let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = rustls::pki_types::ServerName::try_from(name.to_owned()).unwrap();
        let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        connection.write_tls(&mut bytes).unwrap();
        bytes
    }

    /// The same handshake bytes, `size` of them to a record.
    fn split_records(hello: &[u8], size: usize) -> Vec<u8> {
        let chunks = hello[5..].chunks(size);
        chunks.flat_map(|c| [&[22, 3, 1, (c.len() >> 8) as u8, c.len() as u8], c].concat()).collect()
    }

    #[test]
    fn the_name_of_a_real_hello_is_read() {
        let hello = parse(&real_hello("example.org")).unwrap().unwrap();
        assert_eq!(hello, Hello { server_name: Some("example.org".into()), ech: false });
        assert_eq!(parse(&real_hello("127.0.0.1")).unwrap().unwrap().server_name, None);
    }

    #[test]
    fn a_hello_split_over_records_and_packets_is_read() {
        let hello = real_hello("split.example.org");
        for size in [16, 17, 50, 100] {
            let records = split_records(&hello, size);
            for cut in 0..records.len() {
                assert_eq!(parse(&records[..cut]), Ok(None), "size {size} cut {cut}");
            }
            let name = parse(&records).unwrap().unwrap().server_name;
            assert_eq!(name.as_deref(), Some("split.example.org"));
        }
    }

    #[test]
    fn a_hello_that_never_ends_is_refused_at_the_bound() {
        let mut endless = vec![1, 0, 0x40, 0];
        endless.resize(MAX_HELLO, 0);
        let mut records = vec![22, 3, 1, 0, 0, 0];
        records.extend(endless);
        assert!(parse(&records).is_err());
        let tiny = split_records(&[&[0; 5][..], &[1, 0, 0x40, 0], &[0; MAX_HELLO - 8][..]].concat(), 1);
        assert!(parse(&tiny).is_err());
    }

    #[test]
    fn a_second_message_or_a_second_name_is_refused() {
        let mut hello = real_hello("example.org");
        let len = u16::from_be_bytes([hello[3], hello[4]]) + 4;
        hello[3..5].copy_from_slice(&len.to_be_bytes());
        hello.extend([1, 0, 0, 0]);
        assert_eq!(parse(&hello), Err(HelloError("is followed by another message")));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = parse(&bytes);
            let framed = [&[22, 3, 1, (bytes.len() >> 8) as u8, bytes.len() as u8][..], &bytes].concat();
            let _ = parse(&framed);
        }

        #[test]
        fn a_damaged_hello_never_names_a_host_that_was_not_sent(at in 0usize..200, value: u8) {
            let mut hello = real_hello("example.org");
            if let Some(byte) = hello.get_mut(at) {
                *byte = value;
            }
            if let Ok(Some(Hello { server_name: Some(name), .. })) = parse(&hello) {
                let differing = name.bytes().zip("example.org".bytes()).filter(|(a, b)| a != b).count();
                prop_assert!(differing <= 1);
            }
        }
    }
}
