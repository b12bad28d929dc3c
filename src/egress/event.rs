//! What happened at the door: one event per kind of attempt, alerts, and the report of a run.

use super::host::Host;
use serde::Serialize;
use std::fmt;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

/// Most distinct events kept for a run. Attempts that repeat one are counted in it; a run that makes more distinct
/// attempts has the rest counted in [`Report::events_dropped`].
pub const MAX_EVENTS: usize = 4096;
/// Most alerts raised for a run.
pub const MAX_ALERTS: usize = 16;
/// Distinct refused hosts that make a scan.
pub const SCAN_HOSTS: usize = 5;

/// By which door an attempt came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    /// A CONNECT tunnel.
    Connect,
    /// A plain HTTP request.
    Http,
    /// A request to the model's API.
    Model,
    /// A connection that was captured by its synthetic address.
    Capture,
    /// A question to the resolver inside.
    Resolve,
    /// `jess fetch`.
    Fetch,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was let through and ended on its own.
    Allowed,
    /// It was refused by a rule.
    Denied,
    /// It was allowed, and the outside did not answer.
    Failed,
    /// It was let through and then cut at a bound.
    Stopped,
}

/// Why an attempt ended as it did. The text is stable: reports and tests name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Nothing to say.
    Done,
    /// No rule covers the host and port.
    HostNotAllowed,
    /// A rule covers the host, and not this port.
    PortNotAllowed,
    /// A rule covers the host and port, and tools that ignore the proxy variables can't use it.
    NotCaptured,
    /// UDP has no way out.
    UdpClosed,
    /// A rule covers the host and port, and not this method or path, or not a tunnel.
    RequestNotAllowed,
    /// Every address of the name is inside, or the address is.
    AddressBlocked,
    /// The name under a wildcard is too long, or there are too many of them.
    NameQuota,
    /// The name has no address.
    DnsFailed,
    /// No address answered.
    ConnectFailed,
    /// The certificate outside did not fit.
    TlsFailed,
    /// The request is not well-formed, or has a shape that two readers could read in two ways.
    BadRequest,
    /// The ClientHello names another host than the tunnel.
    SniMismatch,
    /// The ClientHello names no host.
    SniMissing,
    /// No TLS on a port where TLS is the rule.
    NotTls,
    /// The Host header names another host than the request line or the tunnel.
    HostMismatch,
    /// Nothing moved for too long.
    Idle,
    /// The head took too long.
    HeadTimeout,
    /// The bytes allowed for the host or the run are used up.
    BytesExhausted,
    /// Too many connections at once.
    TooManyConnections,
    /// The run's token is missing or wrong.
    BadToken,
    /// The model's API is not reachable from this run.
    NoModel,
    /// A path of the model's API that the gateway does not serve.
    PathNotServed,
    /// The model is not on the run's list.
    ModelNotAllowed,
    /// The request asks the API itself to reach out (server tools, MCP servers, URL sources).
    RemoteActionNotAllowed,
    /// The token or dollar budget is used up.
    BudgetExhausted,
    /// The model's words held what must not leave or be rendered, and policy is to stop.
    ResponseStopped,
    /// A redirect was not followed.
    RedirectRefused,
    /// The run ended first.
    RunEnded,
    /// The connection broke.
    Broken,
}

/// One kind of attempt, and how often it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Milliseconds since the Unix epoch, of the first attempt.
    pub time_ms: u64,
    /// The door it came by.
    pub door: Door,
    /// Canonical host, or what was sent in its place with everything but graphic ASCII replaced; at most 253 bytes.
    pub host: String,
    /// Port, 0 where there is none.
    pub port: u16,
    /// How it ended.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// The address that was dialled, or the one that was blocked.
    pub address: Option<IpAddr>,
    /// How many attempts were exactly like this.
    pub count: u64,
    /// Bytes from the run to the outside.
    pub bytes_up: u64,
    /// Bytes from the outside to the run.
    pub bytes_down: u64,
    /// Time that the attempts took together, in milliseconds.
    pub duration_ms: u64,
    /// The ClientHello carried an encrypted ClientHello (or a decoy of one).
    pub ech: bool,
}

impl Event {
    /// An attempt that starts now.
    pub fn new(door: Door, host: &str, port: u16) -> Event {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let host = host.chars().take(253).map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect();
        Event {
            time_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            door,
            host,
            port,
            verdict: Verdict::Allowed,
            reason: Reason::Done,
            address: None,
            count: 1,
            bytes_up: 0,
            bytes_down: 0,
            duration_ms: 0,
            ech: false,
        }
    }

    /// The same with another end.
    pub fn ended(mut self, verdict: Verdict, reason: Reason) -> Event {
        (self.verdict, self.reason) = (verdict, reason);
        self
    }
}

/// What deserves a look while the run is still going.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "alert", rename_all = "snake_case")]
pub enum Alert {
    /// The run asked for [`SCAN_HOSTS`] different hosts that it may not reach.
    Scan {
        /// The hosts, in the order of asking.
        hosts: Vec<String>,
    },
    /// An allowed name led to an address inside.
    BlockedAddress {
        /// The name.
        host: String,
        /// The address.
        address: IpAddr,
    },
    /// The model's words held something that must not leave.
    ModelOutput {
        /// What was found (`secret`, `autofetch`), never the text itself.
        kind: String,
        /// How often, in one answer.
        count: u64,
    },
    /// Most of the budget is used up.
    BudgetLow {
        /// The part that is used, 0 to 1.
        used: f64,
        /// Dollars used.
        usd: f64,
        /// Tokens used.
        tokens: u64,
    },
    /// The budget is used up: the run gets no more answers and should be ended.
    BudgetExhausted {
        /// Dollars used.
        usd: f64,
        /// Tokens used.
        tokens: u64,
    },
}

/// Everything that was seen at the door during a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// Attempts, oldest first.
    pub events: Vec<Event>,
    /// Attempts beyond [`MAX_EVENTS`] distinct ones.
    pub events_dropped: u64,
    /// What deserved a look.
    pub alerts: Vec<Alert>,
    /// Alerts beyond [`MAX_ALERTS`].
    pub alerts_dropped: u64,
    /// What the model cost.
    pub usage: super::Usage,
    /// Set when the run was told to end because its budget is used up.
    pub budget_exhausted: bool,
}

impl Event {
    /// For a refusal: one line that says what would allow it.
    pub(super) fn explained(&self) -> Option<String> {
        let port = if self.port == 0 { 443 } else { self.port };
        let place = format!("{}:{port}", self.host);
        match self.reason {
            Reason::HostNotAllowed | Reason::PortNotAllowed | Reason::RequestNotAllowed => {
                Some(format!("{place} is not allowed for this run; --net {place} would allow it"))
            }
            Reason::NotCaptured => Some(format!(
                "{place} is open through the proxy variables only, since its rule has too many ports; --net {place} \
                 would open it for every tool"
            )),
            Reason::UdpClosed => {
                Some(format!("UDP to {place} is closed for every run; TCP may be allowed by --net"))
            }
            Reason::AddressBlocked => {
                let address = self.address?;
                Some(format!(
                    "{place} leads to {address}, which is not public; --net-inside {address} would allow it"
                ))
            }
            _ => None,
        }
    }
}

/// In words, for a terminal.
impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Alert::Scan { hosts } => {
                write!(f, "the run asks for many hosts that it may not reach: {}", hosts.join(", "))
            }
            Alert::BlockedAddress { host, address } => {
                write!(f, "{host} led to {address}, which is not public")
            }
            Alert::ModelOutput { kind, count } => write!(f, "the model's words held {kind}, {count} times"),
            Alert::BudgetLow { used, usd, tokens } => {
                write!(f, "{:.0} % of the budget is used: ${usd:.4}, {tokens} tokens", used * 100.0)
            }
            Alert::BudgetExhausted { usd, tokens } => {
                write!(f, "the budget is used up: ${usd:.4}, {tokens} tokens")
            }
        }
    }
}

/// A refusal on its way to the client.
#[derive(Debug, Clone)]
pub(super) struct Denial {
    pub verdict: Verdict,
    pub reason: Reason,
    pub address: Option<IpAddr>,
    /// One line for the person who reads the tool's output.
    pub message: String,
}

impl Denial {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Denial {
        Denial { verdict: Verdict::Denied, reason, address: None, message: message.into() }
    }

    pub(super) fn failed(reason: Reason, message: impl Into<String>) -> Denial {
        Denial { verdict: Verdict::Failed, ..Denial::new(reason, message) }
    }

    pub(super) fn at(mut self, address: IpAddr) -> Denial {
        self.address = Some(address);
        self
    }

    /// No rule covers the destination: says which flag would.
    pub(super) fn not_allowed(host: &Host, port: u16, host_known: bool) -> Denial {
        let reason = if host_known { Reason::PortNotAllowed } else { Reason::HostNotAllowed };
        Denial::new(
            reason,
            format!("{host}:{port} is not allowed for this run; --net {host}:{port} would allow it"),
        )
    }

    pub(super) fn status(&self) -> u16 {
        match self.reason {
            Reason::BadRequest | Reason::HostMismatch => 400,
            Reason::BadToken => 401,
            Reason::BudgetExhausted => 402,
            Reason::HeadTimeout => 408,
            Reason::TooManyConnections => 429,
            Reason::DnsFailed | Reason::ConnectFailed | Reason::TlsFailed | Reason::RedirectRefused => 502,
            Reason::Idle => 504,
            Reason::PathNotServed | Reason::NoModel => 404,
            _ => 403,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_in_an_event_is_printable() {
        assert_eq!(Event::new(Door::Http, "a\u{1b}[2J\n", 1).host, "a?[2J?");
        assert_eq!(Event::new(Door::Http, &"x".repeat(5000), 1).host.len(), 253);
    }
}
