//! Names to addresses, outside the sandbox.
//!
//! The resolver is hickory rather than `getaddrinfo`: it needs no shared libraries, so a static binary resolves like a
//! dynamic one, and it never blocks a thread. /etc/hosts and /etc/resolv.conf are respected; search domains are not,
//! because a rule names a full name. Only names that a rule covers ever get here.

use super::event::{Denial, Reason};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::sync::OnceCell;

/// Most addresses of one name that are looked at.
const MAX_ADDRESSES: usize = 16;

/// Looks names up: the operator's own table first, then /etc/hosts, then the name servers.
pub(super) struct Resolver {
    pinned: HashMap<String, Vec<IpAddr>>,
    servers: Vec<SocketAddr>,
    timeout: Duration,
    system: OnceCell<TokioResolver>,
}

impl Resolver {
    pub(super) fn new(
        pinned: HashMap<String, Vec<IpAddr>>,
        servers: Vec<SocketAddr>,
        timeout: Duration,
    ) -> Resolver {
        Resolver { pinned, servers, timeout, system: OnceCell::new() }
    }

    /// The addresses of a canonical name, at least one.
    pub(super) async fn lookup(&self, name: &str) -> Result<Vec<IpAddr>, Denial> {
        if let Some(addresses) = self.pinned.get(name) {
            return Ok(addresses.clone());
        }
        let failed = |what: &str| Denial::failed(Reason::DnsFailed, format!("the name {name} {what}"));
        let resolver = self.system.get_or_try_init(|| async { self.build() }).await;
        let resolver =
            resolver.map_err(|()| failed("can't be resolved: no usable /etc/resolv.conf outside"))?;
        let lookup = tokio::time::timeout(self.timeout, resolver.lookup_ip(format!("{name}.")));
        match lookup.await {
            Err(_) => Err(failed("was not resolved in time")),
            Ok(Err(_)) => Err(failed("does not resolve outside")),
            Ok(Ok(found)) => match found.iter().take(MAX_ADDRESSES).collect::<Vec<_>>() {
                none if none.is_empty() => Err(failed("has no address")),
                addresses => Ok(addresses),
            },
        }
    }

    fn build(&self) -> Result<TokioResolver, ()> {
        let mut builder = if self.servers.is_empty() {
            TokioResolver::builder_tokio().map_err(drop)?
        } else {
            let servers = self.servers.iter().map(|at| {
                let mut server = NameServerConfig::udp_and_tcp(at.ip());
                server.connections.iter_mut().for_each(|c| c.port = at.port());
                server
            });
            let config = ResolverConfig::from_name_servers(servers.collect());
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        };
        let options = builder.options_mut();
        options.timeout = (self.timeout / 2).max(Duration::from_millis(200));
        options.attempts = 1;
        builder.build().map_err(drop)
    }
}
