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
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;

/// Most addresses of one name that are looked at.
const MAX_ADDRESSES: usize = 16;

/// Most names whose answers are kept.
const MAX_KEPT: usize = 1024;
/// How long a failure is kept: it may have been the network's.
const FAILURE: Duration = Duration::from_secs(5);
/// The time in which questions are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// Looks names up: the operator's own table first, then /etc/hosts, then the name servers.
///
/// When and how often a name is asked for is something that its name server sees, so a run could tell it a secret by
/// that. Answers are therefore kept for a while whatever their own lifetime is, and questions are bounded by the minute.
pub(super) struct Resolver {
    pinned: HashMap<String, Vec<IpAddr>>,
    servers: Vec<SocketAddr>,
    limits: Bounds,
    system: OnceCell<TokioResolver>,
    seen: Mutex<Seen>,
}

/// The bounds of a resolver.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Time for one lookup.
    pub timeout: Duration,
    /// How long an answer is kept.
    pub kept: Duration,
    /// Lookups in a minute.
    pub a_minute: usize,
}

#[derive(Default)]
struct Seen {
    answers: HashMap<String, (Instant, Vec<IpAddr>)>,
    /// When the window began, and the questions in it.
    window: Option<(Instant, usize)>,
}

impl Resolver {
    pub(super) fn new(
        pinned: HashMap<String, Vec<IpAddr>>,
        servers: Vec<SocketAddr>,
        limits: Bounds,
    ) -> Resolver {
        Resolver { pinned, servers, limits, system: OnceCell::new(), seen: Mutex::default() }
    }

    /// The answer that is kept for `name`, or leave to ask for it.
    fn kept(&self, name: &str) -> Result<Option<Vec<IpAddr>>, Denial> {
        let now = Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, addresses)) = seen.answers.get(name)
            && now.duration_since(*at)
                < if addresses.is_empty() { self.limits.kept.min(FAILURE) } else { self.limits.kept }
        {
            return Ok(Some(addresses.clone()));
        }
        let (since, asked) = match seen.window {
            Some((since, asked)) if now.duration_since(since) < WINDOW => (since, asked),
            _ => (now, 0),
        };
        if asked >= self.limits.a_minute {
            let most = self.limits.a_minute;
            let message =
                format!("{name} is not looked up: {most} names were in the last minute; try again later");
            return Err(Denial::new(Reason::NameQuota, message));
        }
        seen.window = Some((since, asked + 1));
        Ok(None)
    }

    fn keep(&self, name: &str, addresses: &[IpAddr]) {
        let (now, kept) = (Instant::now(), self.limits.kept);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.answers.len() >= MAX_KEPT {
            seen.answers.retain(|_, (at, _)| now.duration_since(*at) < kept);
        }
        if seen.answers.len() < MAX_KEPT {
            seen.answers.insert(name.to_owned(), (now, addresses.to_vec()));
        }
    }

    /// The addresses of a canonical name, at least one.
    pub(super) async fn lookup(&self, name: &str) -> Result<Vec<IpAddr>, Denial> {
        if let Some(addresses) = self.pinned.get(name) {
            return Ok(addresses.clone());
        }
        let failed = |what: &str| Denial::failed(Reason::DnsFailed, format!("the name {name} {what}"));
        if let Some(addresses) = self.kept(name)? {
            // A failure is kept as well, without addresses.
            return if addresses.is_empty() { Err(failed("did not resolve outside")) } else { Ok(addresses) };
        }
        let resolver = self.system.get_or_try_init(|| async { self.build() }).await;
        let resolver =
            resolver.map_err(|()| failed("can't be resolved: no usable /etc/resolv.conf outside"))?;
        let lookup = tokio::time::timeout(self.limits.timeout, resolver.lookup_ip(format!("{name}.")));
        let found = lookup.await;
        if !matches!(&found, Ok(Ok(_))) {
            self.keep(name, &[]);
        }
        match found {
            Err(_) => Err(failed("was not resolved in time")),
            Ok(Err(_)) => Err(failed("does not resolve outside")),
            Ok(Ok(found)) => match found.iter().take(MAX_ADDRESSES).collect::<Vec<_>>() {
                none if none.is_empty() => Err(failed("has no address")),
                addresses => {
                    self.keep(name, &addresses);
                    Ok(addresses)
                }
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
        options.timeout = (self.limits.timeout / 2).max(Duration::from_millis(200));
        options.attempts = 1;
        builder.build().map_err(drop)
    }
}
