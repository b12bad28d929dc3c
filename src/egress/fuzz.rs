//! The readers, without sockets: what the fuzz targets call. Not part of the interface.

use super::capture::{Names, SYNTHETIC, answer};
use super::gateway::fuzz as words;
use super::{Config, Shared, head, hello, host::Host};

/// The head of a request: where it ends, and what it says.
pub fn head(data: &[u8]) {
    if let Ok(Some(end)) = head::end_of_head(data, 0) {
        assert!(end <= data.len());
        let _ = head::parse(data.get(..end).unwrap_or_default(), 100);
    }
}

/// The opening of a tunnel. A name that was found must be the same name once it is in canonical form.
pub fn hello(data: &[u8]) {
    if let Ok(Some(hello)) = hello::parse(data)
        && let Some(name) = hello.server_name
        && let Ok(host) = Host::parse(&name)
    {
        assert_eq!(Host::parse(&host.to_string()).ok(), Some(host));
    }
}

/// A question to the resolver inside.
pub fn question(data: &[u8]) {
    let config = Config { allow_hosts: "*.a.test".parse().into_iter().collect(), ..Config::default() };
    if let Ok(shared) = Shared::new(config) {
        let _ = answer(&shared, &Names::new(SYNTHETIC), data);
    }
}

/// An answer of the model, cut by the first byte of `data`: what passes must not depend on the cuts, and must hold no
/// secret.
pub fn answer_of_model(data: &[u8]) {
    let Some((cut, stream)) = data.split_first() else { return };
    words::check(usize::from(*cut).max(1), stream);
}
