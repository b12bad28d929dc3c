//! May this run reach this destination, and how much of it.

use super::Shared;
use super::event::{Denial, Reason};
use super::host::Host;
use super::rule::HostRule;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

/// What has been used of the bounds that span connections.
#[derive(Default)]
pub(super) struct Ledger {
    pub run_bytes: AtomicU64,
    host_bytes: Mutex<HashMap<Host, Arc<AtomicU64>>>,
    wildcard_names: Mutex<HashSet<String>>,
}

impl Ledger {
    /// The counter of one host. There are as many as hosts that were allowed, so the rules bound them.
    pub(super) fn host_bytes(&self, host: &Host) -> Arc<AtomicU64> {
        let mut hosts = self.host_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(hosts.entry(host.clone()).or_default())
    }
}

/// How the run wants to use a destination.
#[derive(Debug, Clone, Copy)]
pub(super) enum Use<'a> {
    /// A tunnel, whose inside is not seen.
    Tunnel,
    /// One request with this method and path.
    Request(&'a str, &'a str),
}

/// The rule that allows it, or why none does. Nothing is resolved here.
pub(super) fn authorise<'s>(
    shared: &'s Shared,
    host: &Host,
    port: u16,
    how: Use,
) -> Result<&'s HostRule, Denial> {
    let rules = &shared.config.allow_hosts;
    let mut covering = rules.iter().filter(|r| r.covers(host, port)).peekable();
    if covering.peek().is_none() {
        return Err(Denial::not_allowed(host, port, rules.iter().any(|r| r.covers_host(host))));
    }
    let rule = covering.find(|rule| match how {
        Use::Tunnel => rule.opens_tunnels(),
        Use::Request(method, path) => rule.allows_request(method, path),
    });
    let rule = rule.ok_or_else(|| {
        let what = match how {
            Use::Request(method, _) => format!("{method} on this path of {host}:{port}"),
            _ => format!("a tunnel to {host}:{port}"),
        };
        let message = format!("{what} is not allowed for this run; --net {host}:{port} would allow it");
        Denial::new(Reason::RequestNotAllowed, message)
    })?;
    if let Some(labels) = rule.wildcard_part(host) {
        wildcard_quota(shared, host, labels)?;
    }
    Ok(rule)
}

/// Whether some rule covers the name, on whatever port, and the bounds on wildcards leave room for it.
pub(super) fn name_allowed(shared: &Shared, host: &Host) -> Result<(), Denial> {
    let rule = shared.config.allow_hosts.iter().find(|r| r.covers_host(host));
    let rule = rule.ok_or_else(|| Denial::not_allowed(host, 443, false))?;
    rule.wildcard_part(host).map_or(Ok(()), |labels| wildcard_quota(shared, host, labels))
}

/// Bounds what can be told to the name servers of a wildcard's domain through the names themselves.
fn wildcard_quota(shared: &Shared, host: &Host, labels: &str) -> Result<(), Denial> {
    let limits = &shared.config.limits;
    let refuse = |what: String| Err(Denial::new(Reason::NameQuota, what));
    if labels.len() > limits.wildcard_bytes {
        let most = limits.wildcard_bytes;
        return refuse(format!("{host} has more than {most} bytes under its wildcard; list the name itself"));
    }
    let mut names = shared.ledger.wildcard_names.lock().unwrap_or_else(PoisonError::into_inner);
    let name = host.to_string();
    if !names.contains(&name) && names.len() >= limits.wildcard_names {
        let most = limits.wildcard_names;
        return refuse(format!(
            "{host}: {most} names under wildcards were used in this run; list the name itself"
        ));
    }
    names.insert(name);
    Ok(())
}
