//! The only way out of the sandbox: proxy, address screen, and model gateway.
//!
//! The sandbox has an empty network namespace. A listening socket is made inside it and handed out as a descriptor;
//! [`Server::start`] serves it from outside. So there is no forwarder process, and nothing inside that could be
//! replaced. One listener serves every form of request:
//!
//! | request | served by |
//! |---|---|
//! | `CONNECT host:port` | a tunnel, if a [`HostRule`] opens it; the TLS ClientHello must name the same host |
//! | `GET http://host/…` | a plain HTTP forward, judged by method and path too |
//! | `POST /v1/messages` and a few more | the model gateway, if the run has a [`ModelUpstream`] |
//!
//! A connection carries one request. Names are compared in canonical form ([`host::Host`]); every resolved address is
//! screened ([`screen::screen`]) and the screened address is the one that is dialled. Nothing here decides on what a
//! name means: the allowlist is all there is.
//!
//! Tools that ignore the proxy variables are captured by name: see [`capture`].
//!
//! The model's key is a [`Credential`] and never enters the sandbox: the run holds a placeholder, the gateway replaces
//! it, and answers are scrubbed of the key.

pub mod capture;
pub mod credential;
mod dial;
pub mod event;
pub mod fetch;
#[doc(hidden)]
pub mod fuzz;
mod gateway;
pub mod head;
pub mod hello;
pub mod host;
mod http;
mod inject;
mod io;
mod log;
mod policy;
mod relay;
mod resolve;
pub mod rule;
pub mod screen;
mod server;
mod source;
mod tls;
mod tunnel;
mod upstream_proxy;
mod watch;

pub use capture::{Capture, SYNTHETIC, capture_ports};
pub use credential::{Credential, CredentialError};
pub use event::{Alert, Event, Report};
pub use gateway::{
    Action, Api, Budget, Inspection, ModelPolicy, ModelUpstream, Scope, UpstreamError, Usage,
    source_of_prices,
};
pub use inject::{HostCredential, InjectError, Injection};
pub use log::{OnAlert, OnRefusal};
pub use rule::{HostRule, RuleError};
pub use server::{Handle, Server};
pub use source::{KeySource, SourceError};
pub use upstream_proxy::{ProxyError, UpstreamProxy};

use ipnet::IpNet;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Says whether a connection from this address is the run's. It is asked once for each.
pub type Admits = std::sync::Arc<dyn Fn(SocketAddr) -> bool + Send + Sync>;

/// What one run may reach, and how.
#[derive(Default)]
pub struct Config {
    /// The allowlist. Empty: nothing but the model.
    pub allow_hosts: Vec<HostRule>,
    /// Networks that are dialled although they are not public, such as that of an internal registry.
    pub allow_addresses: Vec<IpNet>,
    /// The model's API. None: requests for it are refused.
    pub model: Option<ModelUpstream>,
    /// What the run may ask of the model.
    pub model_policy: ModelPolicy,
    /// What the run may spend on the model.
    pub budget: Budget,
    /// What it may spend together with other runs.
    pub scopes: Vec<Scope>,
    /// What is looked for in the model's words.
    pub inspection: Inspection,
    /// Bounds.
    pub limits: Limits,
    /// The operator's own proxy.
    pub upstream_proxy: Option<UpstreamProxy>,
    /// Addresses of names, used instead of asking a name server. Still screened. Names in canonical form.
    pub pinned_names: HashMap<String, Vec<IpAddr>>,
    /// Name servers to ask instead of those of /etc/resolv.conf.
    pub name_servers: Vec<SocketAddr>,
    /// A PEM file with certificates to trust outside, besides the built-in public ones.
    pub extra_roots: Option<PathBuf>,
    /// Sockets for transparent capture.
    pub capture: Option<Capture>,
    /// Asked about each connection to the listener, by its source address. `None`: all are the run's.
    pub admits: Option<Admits>,
    /// Told of each alert while the run goes on.
    pub on_alert: Option<log::OnAlert>,
    /// Called when a request is refused since a budget is used up: the run should be ended.
    pub on_exhausted: Option<std::sync::Arc<dyn Fn() + Send + Sync>>,
    /// Credentials that are added outside to plain HTTP requests.
    pub credentials: Vec<HostCredential>,
    /// Told of refusals while the run goes on.
    pub on_refusal: Option<log::OnRefusal>,
}

/// Bounds on what a run can make the door do. Every one of them ends in an answer or a close, and in an event.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Header lines of a request.
    pub headers: usize,
    /// Time for a head, or a ClientHello, to arrive.
    pub head_time: Duration,
    /// Time for name resolution.
    pub dns: Duration,
    /// How long an answer of a name server is kept, whatever lifetime it names.
    pub dns_kept: Duration,
    /// Questions to name servers in a minute.
    pub dns_a_minute: usize,
    /// Time for a connection, with its TLS handshake where jess makes one.
    pub connect: Duration,
    /// Time in which nothing moves in a tunnel or a response.
    pub idle: Duration,
    /// Connections at once.
    pub connections: usize,
    /// Bytes to and from one host, in both directions together.
    pub bytes_per_host: u64,
    /// Bytes to and from all hosts.
    pub bytes_per_run: u64,
    /// Bytes of a request to the model. The API itself takes 32 MiB (its documentation, "Request size limits").
    pub model_request_bytes: usize,
    /// Bytes of the labels under a wildcard.
    pub wildcard_bytes: usize,
    /// Distinct names under all wildcards together.
    pub wildcard_names: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head_bytes: 32 * 1024,
            headers: 100,
            head_time: Duration::from_secs(10),
            dns: Duration::from_secs(5),
            dns_kept: Duration::from_secs(60),
            dns_a_minute: 120,
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(600),
            connections: 4096,
            bytes_per_host: u64::MAX,
            bytes_per_run: u64::MAX,
            model_request_bytes: 32 * 1024 * 1024,
            wildcard_bytes: 63,
            wildcard_names: 100,
        }
    }
}

/// The door could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The listener is none.
    #[error("using the listener of the sandbox: {0}")]
    Listener(std::io::Error),
    /// No thread or no runtime.
    #[error("starting the egress thread: {0}")]
    Thread(std::io::Error),
    /// The operator's own proxy can't be used.
    #[error("using the proxy that {variable} names: {source}")]
    Proxy {
        /// The variable.
        variable: &'static str,
        /// What is wrong.
        source: ProxyError,
    },
    /// The extra certificates can't be used.
    #[error("reading the extra certificates {path}: {what}; give a PEM file with at least one certificate", path = crate::sanitise::path(.path))]
    Roots {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

/// What all connections of a run share.
struct Shared {
    config: Config,
    resolver: resolve::Resolver,
    log: log::Log,
    ledger: policy::Ledger,
    tls: std::sync::Arc<rustls::ClientConfig>,
    gateway: Option<gateway::Gateway>,
    /// Room for the bodies of requests to the model, and for the values in them.
    bodies: tokio::sync::Semaphore,
    values: tokio::sync::Semaphore,
}
