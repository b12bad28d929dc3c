//! The address screen: a name on the allowlist must not lead to the inside of the operator's network.
//!
//! The ranges are those of the IANA special-purpose registries for IPv4 and IPv6 (state of 2025), plus the addresses
//! at which cloud providers serve instance credentials. An address that carries an IPv4 address inside (v4-mapped,
//! v4-compatible, NAT64) is judged by that one.

use super::host::canonical;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked(pub &'static str);

/// IPv4 ranges that are not public, with the name that a reader knows them by.
const V4: &[(Ipv4Addr, u8, &str)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "carrier-grade NAT"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "protocol assignments"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "6to4 relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "benchmarking"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

/// IPv6 ranges inside 2000::/3 that are not public. Everything outside 2000::/3 is refused as a whole.
const V6: &[(Ipv6Addr, u8, &str)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "protocol assignments"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "documentation"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "6to4"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "documentation"),
];

/// Where clouds serve credentials: AWS, GCP and Azure; ECS; Azure's wire server; Alibaba; Oracle; AWS over IPv6.
const METADATA: &[IpAddr] = &[
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Judges `address`; `exceptions` are networks that the operator opened.
///
/// A metadata address is lifted only by an exception for exactly that address, never by a network around it.
pub fn screen(address: IpAddr, exceptions: &[IpNet]) -> Result<(), Blocked> {
    let address = canonical(address);
    let inner = embedded_v4(address).map(IpAddr::V4);
    let excepted = |a: &IpAddr| exceptions.iter().any(|net| net.contains(a));
    let named =
        |a: &IpAddr| exceptions.iter().any(|net| net.prefix_len() == net.max_prefix_len() && net.contains(a));
    for candidate in [Some(address), inner].into_iter().flatten() {
        if METADATA.contains(&candidate) && !named(&address) {
            return Err(Blocked("cloud metadata"));
        }
    }
    if excepted(&address) {
        return Ok(());
    }
    match (address, inner) {
        (_, Some(IpAddr::V4(v4))) | (IpAddr::V4(v4), _) => v4_range(v4),
        (IpAddr::V6(v6), _) => v6_range(v6),
    }
}

fn v4_range(address: Ipv4Addr) -> Result<(), Blocked> {
    let inside = |net: Ipv4Addr, len: u8| (u32::from(address) ^ u32::from(net)) >> (32 - u32::from(len)) == 0;
    V4.iter().find(|(net, len, _)| inside(*net, *len)).map_or(Ok(()), |(_, _, name)| Err(Blocked(name)))
}

fn v6_range(address: Ipv6Addr) -> Result<(), Blocked> {
    let inside =
        |net: Ipv6Addr, len: u8| (u128::from(address) ^ u128::from(net)) >> (128 - u32::from(len)) == 0;
    if let Some((_, _, name)) = V6.iter().find(|(net, len, _)| inside(*net, *len)) {
        return Err(Blocked(name));
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Err(Blocked("unspecified")),
        [0, 0, 0, 0, 0, 0, 0, 1] => Err(Blocked("loopback")),
        [first, ..] => match first {
            0x2000..=0x3fff => Ok(()),
            0xfc00..=0xfdff => Err(Blocked("unique local")),
            0xfe80..=0xfebf => Err(Blocked("link-local")),
            0xff00..=0xffff => Err(Blocked("multicast")),
            _ => Err(Blocked("not global unicast")),
        },
    }
}

/// The IPv4 address that a v4-compatible or a well-known NAT64 address carries (RFC 4291, RFC 6052).
fn embedded_v4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = address else { return None };
    let [.., high, low] = v6.segments();
    let v4 = Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(v4),
        [0, 0, 0, 0, 0, 0, ..] if u32::from(v4) > 1 => Some(v4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blocked(address: &str, exceptions: &[&str]) -> bool {
        let nets: Vec<IpNet> = exceptions.iter().map(|e| e.parse().unwrap()).collect();
        screen(address.parse().unwrap(), &nets).is_err()
    }

    #[test]
    fn public_addresses_pass() {
        for address in ["1.1.1.1", "93.184.215.14", "172.32.0.1", "2606:4700::1111", "64:ff9b::101:101"] {
            assert!(!blocked(address, &[]), "{address}");
        }
    }

    #[test]
    fn inside_addresses_are_blocked_in_every_wrapping() {
        for address in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:a00:1::",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "4000::1",
        ] {
            assert!(blocked(address, &[]), "{address}");
        }
    }

    #[test]
    fn an_exception_opens_its_network_and_no_metadata_address() {
        assert!(!blocked("10.1.2.3", &["10.0.0.0/8"]) && blocked("10.1.2.3", &["10.2.0.0/16"]));
        assert!(blocked("169.254.169.254", &["169.254.0.0/16"]));
        assert!(blocked("169.254.169.254", &["0.0.0.0/0"]));
        assert!(!blocked("169.254.169.254", &["169.254.169.254/32"]));
        assert!(blocked("::ffff:169.254.169.254", &["::/0"]));
    }

    proptest! {
        #[test]
        fn a_wrapped_address_is_judged_as_the_address_inside(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            let outcome = screen(IpAddr::V4(v4), &[]).is_ok();
            let nat64 = Ipv6Addr::from(0x64_ff9b_u128 << 96 | u128::from(bits));
            prop_assert_eq!(screen(IpAddr::V6(v4.to_ipv6_mapped()), &[]).is_ok(), outcome);
            prop_assert_eq!(screen(IpAddr::V6(nat64), &[]).is_ok(), outcome);
        }
    }
}
