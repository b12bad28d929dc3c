//! Explains attempts at what is not captured: the kernel inside refuses them at once, and says nothing.
//!
//! Packet sockets show the first packet of each attempt, nothing of its content beyond the ports. A flood loses
//! explanations: at most [`BURST`] packets are read in each [`PAUSE`].

use super::Shared;
use super::capture::Names;
use super::event::{Door, Event, Reason, Verdict};
use super::host::Host;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

const BURST: usize = 64;
const PAUSE: Duration = Duration::from_millis(20);
const UDP: u8 = 17;

/// Reads one packet socket until the run ends. `ports` are captured, and judged where they are served.
pub(super) async fn watch(
    shared: Arc<Shared>,
    socket: std::net::UdpSocket,
    ports: Vec<u16>,
    names: Arc<Names>,
) {
    // Only recv(2) is used, which is the same for every datagram socket.
    let Ok(socket) = tokio::net::UdpSocket::from_std(socket) else { return };
    let mut packet = [0; 64];
    loop {
        for _ in 0..BURST {
            let Ok(n) = socket.recv(&mut packet).await else { break };
            let attempt = packet.get(..n).and_then(parse);
            if let Some(event) = attempt.and_then(|a| judge(&shared, &ports, &names, &a)) {
                shared.log.record(event);
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Where a packet goes.
#[derive(Debug, PartialEq, Eq)]
struct Sent {
    udp: bool,
    to: IpAddr,
    port: u16,
}

/// Reads the headers of an IP packet. `None`: cut short, or of another version.
fn parse(packet: &[u8]) -> Option<Sent> {
    let (protocol, to, ports) = match packet.first()? >> 4 {
        4 => {
            let to: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            (*packet.get(9)?, IpAddr::from(Ipv4Addr::from(to)), usize::from(packet.first()? & 15) * 4)
        }
        6 => {
            let to: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            (*packet.get(6)?, IpAddr::from(Ipv6Addr::from(to)), 40)
        }
        _ => return None,
    };
    let port: [u8; 2] = packet.get(ports + 2..ports + 4)?.try_into().ok()?;
    Some(Sent { udp: protocol == UDP, to, port: u16::from_be_bytes(port) })
}

fn judge(shared: &Shared, ports: &[u16], names: &Names, sent: &Sent) -> Option<Event> {
    let host = names.meaning(sent.to).unwrap_or(Host::Address(sent.to));
    let rules = &shared.config.allow_hosts;
    let reason = match sent.udp {
        true => Reason::UdpClosed,
        false if ports.contains(&sent.port) => return None,
        false if rules.iter().any(|rule| rule.covers(&host, sent.port)) => Reason::NotCaptured,
        false if rules.iter().any(|rule| rule.covers_host(&host)) => Reason::PortNotAllowed,
        false => Reason::HostNotAllowed,
    };
    Some(Event::new(Door::Capture, &host.to_string(), sent.port).ended(Verdict::Denied, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers_are_read_in_both_versions() {
        let mut v4 = vec![0x46, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 1, 1, 1, 1, 9, 8, 7, 6, 0, 0, 0, 0];
        v4.extend([0xab, 0xcd, 0, 22]);
        assert_eq!(parse(&v4), Some(Sent { udp: false, to: Ipv4Addr::new(9, 8, 7, 6).into(), port: 22 }));
        let mut v6 = vec![0x60, 0, 0, 0, 0, 0, UDP, 64];
        v6.extend([0; 16]);
        v6.extend(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).octets());
        v6.extend([0xab, 0xcd, 1, 0xbb]);
        assert_eq!(parse(&v6), Some(Sent { udp: true, to: "2001:db8::1".parse().unwrap(), port: 443 }));
    }

    proptest! {
        #[test]
        fn no_packet_makes_it_panic(packet in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(&packet);
        }
    }
}
