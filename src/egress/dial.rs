//! From an allowed name to a connected socket: resolve once, screen every address, dial a screened address.

use super::Shared;
use super::event::{Denial, Reason};
use super::host::Host;
use super::rule::HostRule;
use super::screen::{Blocked, screen};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Head start of one address over the next (RFC 8305 §5 recommends 250 ms).
const STAGGER: Duration = Duration::from_millis(250);

/// A connection and the address that it goes to, which is the one that was screened.
#[derive(Debug)]
pub(super) struct Dialled {
    pub stream: TcpStream,
    pub address: IpAddr,
}

/// Connects to `host` at `port`, which `rule` covers.
pub(super) async fn dial(
    shared: &Shared,
    host: &Host,
    port: u16,
    rule: &HostRule,
) -> Result<Dialled, Denial> {
    let addresses = screened(shared, host, port, rule).await?;
    if let Some(proxy) = shared.config.upstream_proxy.as_ref().filter(|p| p.serves(host, port)) {
        let address = addresses.first().copied().unwrap_or(IpAddr::from([0, 0, 0, 0]));
        let stream = super::upstream_proxy::connect(shared, proxy, host, port).await?;
        return Ok(Dialled { stream, address });
    }
    connect(&addresses, port, shared.config.limits.connect).await.ok_or_else(|| {
        let denial =
            Denial::failed(Reason::ConnectFailed, format!("no connection to {host}:{port} from outside"));
        addresses.first().map_or(denial.clone(), |a| denial.at(*a))
    })
}

/// The addresses of `host` that may be dialled, at least one.
pub(super) async fn screened(
    shared: &Shared,
    host: &Host,
    port: u16,
    rule: &HostRule,
) -> Result<Vec<IpAddr>, Denial> {
    let found = match host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => shared.resolver.lookup(name).await?,
    };
    let mut first_blocked = None;
    let allowed: Vec<IpAddr> = found
        .into_iter()
        .filter(|address| match judge(*address, host, rule, &shared.config.allow_addresses) {
            Ok(()) => true,
            Err(Blocked(range)) => {
                first_blocked.get_or_insert((*address, range));
                false
            }
        })
        .collect();
    match (allowed.is_empty(), first_blocked) {
        (true, Some((address, range))) => Err(Denial::new(
            Reason::AddressBlocked,
            format!("{host}:{port} leads to {address} ({range}); --net-inside {address} would allow it"),
        )
        .at(address)),
        (true, None) => Err(Denial::failed(Reason::DnsFailed, format!("the name {host} has no address"))),
        (false, _) => Ok(allowed),
    }
}

/// A destination that the operator named with its port needs no exception besides: the listing is one, for exactly
/// that address, or for loopback where the name is `localhost`.
fn judge(address: IpAddr, host: &Host, rule: &HostRule, exceptions: &[IpNet]) -> Result<(), Blocked> {
    match screen(address, exceptions) {
        Err(_) if rule.names_local_destination() => match host {
            Host::Address(_) => screen(address, &[IpNet::from(address)]),
            Host::Name(_) if address.is_loopback() => Ok(()),
            Host::Name(_) => screen(address, exceptions),
        },
        verdict => verdict,
    }
}

/// The first of `addresses` that answers, each given a head start over the next.
async fn connect(addresses: &[IpAddr], port: u16, limit: Duration) -> Option<Dialled> {
    if let [address] = addresses {
        let stream = timeout(limit, TcpStream::connect(SocketAddr::new(*address, port))).await.ok()?.ok()?;
        return Some(Dialled { stream, address: *address });
    }
    let mut attempts = JoinSet::new();
    for (n, address) in (0u32..).zip(addresses.iter().copied()) {
        attempts.spawn(async move {
            sleep(STAGGER * n).await;
            timeout(limit, TcpStream::connect(SocketAddr::new(address, port)))
                .await
                .ok()?
                .ok()
                .map(|s| (s, address))
        });
    }
    while let Some(done) = attempts.join_next().await {
        if let Ok(Some((stream, address))) = done {
            return Some(Dialled { stream, address });
        }
    }
    None
}
