//! The arguments that say what a run may reach.

use crate::dispatch::Reach;
use crate::egress::host::Host;
use crate::egress::{HostRule, Injection};
use ipnet::IpNet;
use std::net::IpAddr;
use std::path::PathBuf;

/// What a run may reach.
#[derive(clap::Args, Debug, Default)]
pub struct NetArgs {
    /// Let the run reach this host: HOST, HOST:PORT, *.HOST, HOST:LOW-HIGH, or METHOD,… http://HOST/PATH (may be repeated)
    #[arg(long, value_name = "RULE")]
    pub net: Vec<HostRule>,
    /// Let allowed names lead to this address or network, although it is not public (may be repeated)
    #[arg(long, value_name = "CIDR", value_parser = network)]
    net_inside: Vec<IpNet>,
    /// Take this address for NAME instead of asking a name server (may be repeated)
    #[arg(long, value_name = "NAME=ADDRESS", value_parser = pin)]
    resolve: Vec<(String, IpAddr)>,
    /// PEM file with certificates to trust where jess itself connects by TLS, besides the public ones
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
}

/// Secrets that are added outside.
#[derive(clap::Args, Debug, Default)]
pub struct CredentialArgs {
    #[allow(rustdoc::broken_intra_doc_links)]
    /// Add a secret to plain HTTP requests for a host, which go out over TLS: "[METHOD,…] HOST[:PORT][/PATH]
    /// bearer|basic|header:NAME|query:NAME env:NAME|file:PATH|command:COMMAND|keyring:DESCRIPTION" (may be repeated)
    #[arg(long, value_name = "RULE")]
    credential: Vec<Injection>,
}

impl NetArgs {
    /// The same for the library.
    pub fn reach(self, credentials: CredentialArgs) -> Reach {
        Reach {
            rules: self.net,
            inside: self.net_inside,
            pins: self.resolve,
            credentials: credentials.credential,
            roots: self.cacert,
        }
    }
}

fn network(text: &str) -> Result<IpNet, String> {
    text.parse::<IpNet>()
        .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
        .map_err(|_| "must be an address or a network such as 10.0.0.0/8".to_owned())
}

fn pin(text: &str) -> Result<(String, IpAddr), String> {
    let (name, address) = text.split_once('=').ok_or("must be NAME=ADDRESS")?;
    let address = address.trim_matches(['[', ']']).parse().map_err(|_| "the address is none".to_owned())?;
    match Host::parse(name) {
        Ok(Host::Name(name)) => Ok((name, address)),
        _ => Err("the name is none".to_owned()),
    }
}
