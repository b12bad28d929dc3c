//! Transparent capture: tools that ignore the proxy variables work by name all the same, or fail at once.
//!
//! Inside, a resolver answers every allowed name with an address of a synthetic range, and every other name with "no
//! such name". A connection to a synthetic address arrives at a listener that the door serves; the address says which
//! name it is for, and the connection is judged, dialled and held to its name like a tunnel. No question is ever
//! passed on: a name is resolved outside only when something connects to it.
//!
//! # What the sandbox sets up
//!
//! In the empty network namespace every address is local ([`crate::sandbox::Net::Captured`]). So a connection to any
//! address, at a port that is captured, arrives at one of [`Capture::listeners`]: a synthetic address stands for its name,
//! a loopback address for a rule that names it, every other address for itself. What a rule covers is dialled outside;
//! what none covers is turned away at once, in words that the tool understands: an HTTP answer, a TLS alert, or a reset.
//!
//! Connecting to a port that is not captured, and UDP to anywhere, is refused by the kernel at once; [`super::watch`]
//! sees the attempt and explains it.

use super::Shared;
use super::dial::dial;
use super::event::{Denial, Door, Event, Reason, Verdict};
use super::host::Host;
use super::io::Prefixed;
use super::policy::{Use, authorise, name_allowed};
use super::rule::HostRule;
use super::server::{Attempt, last_words, plain_answer};
use super::{hello, tunnel};
use hickory_resolver::proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use ipnet::Ipv4Net;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// The synthetic range: benchmarking addresses (RFC 2544), which no real destination has.
pub const SYNTHETIC: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 15);
/// Most names that get an address in a run.
const MAX_NAMES: usize = 8192;
/// Longest question that is read, in bytes. A legal one takes under 300, with its options.
const MAX_QUESTION: usize = 1232;
/// How long an answer may be kept, in seconds. An address stays with its name for the whole run.
const TTL: u32 = 60;
/// Most listeners that [`capture_ports`] asks for.
const MAX_PORTS: usize = 256;
/// How long a connection that is turned away may take to show what it speaks.
const FIRST_WORDS: Duration = Duration::from_millis(300);
/// A fatal TLS alert: access_denied (RFC 8446 §6).
const TLS_ACCESS_DENIED: [u8; 7] = [21, 3, 1, 0, 2, 2, 49];

/// Sockets made inside the sandbox's network namespace.
#[derive(Debug)]
pub struct Capture {
    /// A bound UDP socket, to which the sandbox's resolver library sends its questions.
    pub resolver: OwnedFd,
    /// Listening TCP sockets that receive what is sent to the captured ports of every address.
    pub listeners: Vec<OwnedFd>,
    /// Packet sockets without link header, which see attempts at what is not captured. May be empty.
    pub packets: Vec<OwnedFd>,
    /// The range, [`SYNTHETIC`] unless a test says otherwise.
    pub range: Ipv4Net,
}

/// The ports to listen on for capture, lowest first: 80 and 443, where refusals deserve words, and those that `rules`
/// name. Ranges that are wider than 256 ports are left out: tools reach those ports through the proxy only.
pub fn capture_ports(rules: &[HostRule]) -> Vec<u16> {
    let web = [80..=80, 443..=443].into_iter();
    let named = rules.iter().flat_map(|rule| rule.port_ranges()).filter(|r| r.len() <= MAX_PORTS);
    let ports: BTreeSet<u16> = web.chain(named).flatten().collect();
    ports.into_iter().take(MAX_PORTS).collect()
}

/// Which synthetic address stands for which name.
pub(super) struct Names {
    range: Ipv4Net,
    inner: Mutex<(HashMap<String, Ipv4Addr>, Vec<String>)>,
}

impl Names {
    pub(super) fn new(range: Ipv4Net) -> Names {
        Names { range, inner: Mutex::default() }
    }

    /// The address of `name`, the same for the whole run. `None`: the range is used up.
    fn address_of(&self, name: &str) -> Option<Ipv4Addr> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let (addresses, names) = &mut *inner;
        if let Some(address) = addresses.get(name) {
            return Some(*address);
        }
        if names.len() >= MAX_NAMES {
            return None;
        }
        // The first two addresses of the range are its network and the loopback device's own.
        let offset = u32::try_from(names.len()).ok()?.checked_add(2)?;
        let address = Ipv4Addr::from(u32::from(self.range.network()).checked_add(offset)?);
        if !self.range.contains(&address) {
            return None;
        }
        addresses.insert(name.to_owned(), address);
        names.push(name.to_owned());
        Some(address)
    }

    fn name_of(&self, address: IpAddr) -> Option<String> {
        let IpAddr::V4(v4) = address.to_canonical() else { return None };
        let offset = u32::from(v4).checked_sub(u32::from(self.range.network()))?.checked_sub(2)?;
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.1.get(usize::try_from(offset).ok()?).cloned()
    }
}

/// Answers the questions of the sandbox, one at a time: nothing is waited for.
pub(super) async fn resolve(shared: Arc<Shared>, socket: UdpSocket, names: Arc<Names>) {
    let mut buf = [0; MAX_QUESTION];
    loop {
        let Ok((n, from)) = socket.recv_from(&mut buf).await else {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            continue;
        };
        if let Some(reply) = buf.get(..n).and_then(|question| answer(&shared, &names, question)) {
            let _ = socket.send_to(&reply, from).await;
        }
    }
}

/// The reply to one packet; `None` for what is no question.
pub(super) fn answer(shared: &Shared, names: &Names, packet: &[u8]) -> Option<Vec<u8>> {
    let question = Message::from_vec(packet).ok()?;
    if question.metadata.message_type != MessageType::Query {
        return None;
    }
    let mut reply = Message::response(question.metadata.id, question.metadata.op_code);
    reply.metadata.recursion_desired = question.metadata.recursion_desired;
    reply.metadata.recursion_available = true;
    let code = match (question.metadata.op_code, question.queries.as_slice()) {
        (OpCode::Query, [query]) => {
            reply.add_query(query.clone());
            let spelling = query.name().to_ascii();
            match allowed_name(shared, &spelling) {
                Err(denial) => {
                    let shown = spelling.trim_end_matches('.');
                    let event = Event::new(Door::Resolve, shown, 0);
                    shared.log.record(event.ended(Verdict::Denied, denial.reason));
                    ResponseCode::NXDomain
                }
                Ok(name) => match (query.query_type(), names.address_of(&name)) {
                    (_, None) => ResponseCode::Refused,
                    (RecordType::A, Some(address)) => {
                        let data = RData::A(address.into());
                        reply.add_answer(Record::from_rdata(query.name().clone(), TTL, data));
                        ResponseCode::NoError
                    }
                    // The name is there, and has no such record: IPv6, MX, HTTPS, TXT.
                    (_, Some(_)) => ResponseCode::NoError,
                },
            }
        }
        _ => ResponseCode::NotImp,
    };
    reply.metadata.response_code = code;
    reply.to_vec().ok()
}

fn allowed_name(shared: &Shared, spelling: &str) -> Result<String, Denial> {
    // What a service of a host is called, such as apt asks for; nothing can connect to it.
    if spelling.starts_with('_') {
        return Err(Denial::new(Reason::BadRequest, "no host name"));
    }
    match Host::parse(spelling) {
        Ok(Host::Name(name)) => name_allowed(shared, &Host::Name(name.clone())).map(|()| name),
        _ => Err(Denial::new(Reason::BadRequest, "no host name")),
    }
}

impl Names {
    /// What the address stands for. `None`: nothing.
    pub(super) fn meaning(&self, address: IpAddr) -> Option<Host> {
        match address.to_canonical() {
            IpAddr::V4(v4) if self.range.contains(&v4) => self.name_of(address).map(Host::Name),
            other => Some(Host::Address(other)),
        }
    }
}

/// A loopback address inside stands for one outside only if a rule says so; by its name, if that is what the rule says.
fn loopback(shared: &Shared, address: IpAddr, port: u16) -> Option<Host> {
    let spellings = [Host::Address(address), Host::Name("localhost".into())];
    spellings.into_iter().find(|host| shared.config.allow_hosts.iter().any(|rule| rule.covers(host, port)))
}

/// Serves a connection that was made to a captured port.
pub(super) async fn serve(shared: Arc<Shared>, stream: TcpStream, names: Arc<Names>) {
    let Ok(to) = stream.local_addr() else { return };
    let (address, port) = (to.ip().to_canonical(), to.port());
    let host = match names.meaning(address) {
        Some(Host::Address(address)) if address.is_loopback() => match loopback(&shared, address, port) {
            Some(host) => host,
            // Nobody is there, as on any machine that serves nothing.
            None => return reset(stream),
        },
        Some(host) => host,
        None => {
            let attempt = Attempt::new(&shared, Door::Capture, &address.to_string(), port);
            let denial = Denial::new(Reason::HostNotAllowed, format!("{address} stands for no name"));
            return turn_away(stream, attempt, denial).await;
        }
    };
    let mut attempt = Attempt::new(&shared, Door::Capture, &host.to_string(), port);
    let rule = match authorise(&shared, &host, port, Use::Tunnel) {
        Ok(rule) => rule,
        // A rule for plain requests only: each is judged by what it asks for.
        Err(denial) if denial.reason == Reason::RequestNotAllowed => {
            attempt.forget();
            return tunnel::plain_http(&shared, Prefixed::new(Vec::new(), stream), &host, port).await;
        }
        Err(denial) => return turn_away(stream, attempt, denial).await,
    };
    match dial(&shared, &host, port, rule).await {
        Err(denial) => turn_away(stream, attempt, denial).await,
        Ok(dialled) => {
            attempt.event(|e| e.address = Some(dialled.address));
            tunnel::carry(&shared, (stream, Vec::new()), dialled.stream, &host, port, attempt).await;
        }
    }
}

/// Ends the attempt, and the connection in the way that its protocol has for it.
async fn turn_away(mut stream: TcpStream, attempt: Attempt, denial: Denial) {
    attempt.denied(&denial);
    let mut first = [0; 64];
    let n = match timeout(FIRST_WORDS, stream.read(&mut first)).await {
        Ok(Ok(n)) => n,
        Ok(Err(_)) | Err(_) => 0,
    };
    match first.get(..n) {
        Some(first @ [byte, ..]) if hello::is_tls(*byte) || tunnel::looks_like_http(first) => {
            let http = plain_answer(&denial);
            let answer = if hello::is_tls(*byte) { &TLS_ACCESS_DENIED[..] } else { &http };
            last_words(stream, answer).await;
        }
        _ => reset(stream),
    }
}

/// Closes without a word, so that the tool has its error at once.
fn reset(stream: TcpStream) {
    let _ = rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_keeps_its_address_and_an_address_its_name() {
        let names = Names::new(SYNTHETIC);
        let a = names.address_of("a.test").unwrap();
        let b = names.address_of("b.test").unwrap();
        assert!(a != b && SYNTHETIC.contains(&a) && a != Ipv4Addr::new(198, 18, 0, 1));
        assert_eq!(names.address_of("a.test"), Some(a));
        assert_eq!(names.name_of(b.into()).as_deref(), Some("b.test"));
        for unknown in ["198.18.0.0", "198.18.0.1", "198.19.255.255", "127.0.0.1", "::1"] {
            assert_eq!(names.name_of(unknown.parse().unwrap()), None, "{unknown}");
        }
    }

    #[test]
    fn names_are_bounded() {
        let names = Names::new(SYNTHETIC);
        let given = (0..MAX_NAMES + 10).filter(|n| names.address_of(&format!("n{n}.test")).is_some()).count();
        assert_eq!(given, MAX_NAMES);
    }

    #[test]
    fn ports_are_those_that_rules_name() {
        let rules: Vec<HostRule> = ["a.test", "b.test:8443", "c.test:22", "d.test:1-65535"]
            .iter()
            .map(|r| r.parse().unwrap())
            .collect();
        assert_eq!(capture_ports(&rules), [22, 80, 443, 8443]);
        assert_eq!(capture_ports(&[]), [80, 443]);
    }

    proptest! {
        #[test]
        fn no_packet_makes_the_resolver_panic(packet in proptest::collection::vec(any::<u8>(), 0..200)) {
            let shared = Shared::new(crate::egress::Config::default()).unwrap();
            let _ = answer(&shared, &Names::new(SYNTHETIC), &packet);
        }
    }
}
