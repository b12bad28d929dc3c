//! Joins the network inside and the door outside: which sockets the sandbox makes, what the command is told of them,
//! and what serves them.

use super::{Error, PORT};
use crate::egress::{
    self, Capture, Config, Handle, HostRule, Injection, SYNTHETIC, Server, UpstreamProxy, capture_ports,
};
use crate::sandbox::{Captured, Net, Sandbox, Spec, env};
use ipnet::IpNet;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Variables by which the operator names a proxy of his own, in the order in which they count.
const OPERATOR_PROXY: [&str; 6] =
    ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"];

/// What a run may reach, as the operator says it.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// Hosts.
    pub rules: Vec<HostRule>,
    /// Networks that allowed names may lead to although they are not public.
    pub inside: Vec<IpNet>,
    /// Addresses of names that no name server is asked for. Names in canonical form.
    pub pins: Vec<(String, IpAddr)>,
    /// Credentials that are added outside; each allows the requests that it is for.
    pub credentials: Vec<Injection>,
    /// A PEM file with certificates to trust where the door itself makes TLS connections, besides the public ones.
    pub roots: Option<PathBuf>,
}

impl Reach {
    /// Every rule: those for hosts, and those of credentials.
    pub fn all_rules(&self) -> Vec<HostRule> {
        self.rules.iter().chain(self.credentials.iter().map(Injection::rule)).cloned().collect()
    }

    /// Opens the door of `config` for it. Credentials are read elsewhere.
    pub fn add_to(&self, config: &mut Config) {
        config.allow_hosts.extend(self.all_rules());
        config.extra_roots = self.roots.clone().or(config.extra_roots.take());
        config.allow_addresses.extend(self.inside.iter().copied());
        for (name, address) in &self.pins {
            config.pinned_names.entry(name.clone()).or_default().push(*address);
        }
    }
}

/// The network inside, for these rules.
pub fn net(rules: &[HostRule]) -> Net {
    let ports = capture_ports(rules).into_iter().filter(|port| *port != PORT).collect();
    Net::Captured(Captured { proxy: PORT, ports })
}

/// Gives a run its network, if `reach` has any rule.
pub fn prepare(spec: &mut Spec, reach: &Reach) {
    let rules = reach.all_rules();
    if !rules.is_empty() {
        spec.net = net(&rules);
        environment(&mut spec.env);
    }
}

/// Tells the command of the proxy, where the operator has not told it something else.
pub fn environment(environment: &mut Vec<(OsString, OsString)>) {
    let proxy = format!("http://127.0.0.1:{PORT}");
    let direct = "127.0.0.1,localhost";
    for (name, value) in [
        ("HTTPS_PROXY", proxy.as_str()),
        ("https_proxy", &proxy),
        ("HTTP_PROXY", &proxy),
        ("http_proxy", &proxy),
        ("NO_PROXY", direct),
        ("no_proxy", direct),
    ] {
        if !environment.iter().any(|(known, _)| known == name) {
            env::set(environment, name, value);
        }
    }
}

/// Opens the door on the sockets of `sandbox`, with what `reach` adds to `config`. `None`: it made none.
pub fn open(sandbox: &mut Sandbox, reach: &Reach, mut config: Config) -> Result<Option<Handle>, Error> {
    let sockets = sandbox.take_sockets();
    let Some(proxy) = sockets.proxy else { return Ok(None) };
    // In tier `landlock` the door stands on the host's loopback, where others can knock.
    config.admits =
        sandbox.vouched().map(|vouched| -> egress::Admits { Arc::new(move |peer| vouched.admits(peer)) });
    reach.add_to(&mut config);
    for injection in &reach.credentials {
        let loaded = injection.load();
        let loaded =
            loaded.map_err(|source| Error::HostCredential { host: injection.rule().to_string(), source })?;
        config.credentials.push(loaded);
    }
    config.capture = sockets.resolver.map(|resolver| Capture {
        resolver,
        listeners: sockets.captured,
        packets: sockets.packets,
        range: SYNTHETIC,
    });
    config.upstream_proxy = operator_proxy()?;
    config.on_refusal = Some(Arc::new(|line: &str| crate::sanitise::out::stderr(&format!("jess: {line}"))));
    config.on_alert = Some(Arc::new(|alert: &egress::Alert| {
        crate::sanitise::out::stderr(&format!("jess: alert: {alert}"));
    }));
    sandbox.hold_signals()?;
    Server::start(proxy, config).map(Some).map_err(Error::from)
}

fn operator_proxy() -> Result<Option<UpstreamProxy>, egress::Error> {
    let value = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let Some((name, url)) = OPERATOR_PROXY.iter().find_map(|name| Some((*name, value(name)?))) else {
        return Ok(None);
    };
    let direct = value("NO_PROXY").or_else(|| value("no_proxy")).unwrap_or_default();
    UpstreamProxy::new(&url, &direct)
        .map(Some)
        .map_err(|source| egress::Error::Proxy { variable: name, source })
}
