//! Records as OpenTelemetry logs: OTLP over HTTP with JSON bodies, to a collector near by.
//!
//! Plain `http` only: a collector on this machine takes the records and knows the way, certificates and credentials
//! onward. Names and reasons leave, contents never: a [`Record`] holds none.

use super::Record;
use hickory_resolver::TokioResolver;
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

/// Records in one request.
pub const BATCH: usize = 500;
/// How long the collector may take for each step.
const PATIENCE: Duration = Duration::from_secs(10);
/// The path of the protocol, where the address names none.
const PATH: &str = "/v1/logs";

/// Why records were not taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be used.
    #[error("{0:?} is no http address of a collector; give one like http://127.0.0.1:4318")]
    Address(String),
    /// No connection, or it broke.
    #[error("cannot send to the collector {to}: {source}")]
    Io {
        /// Host and port.
        to: String,
        /// Why.
        source: io::Error,
    },
    /// An answer other than success.
    #[error("the collector {to} answered {status}")]
    Refused {
        /// Host and port.
        to: String,
        /// The status line, printable.
        status: String,
    },
}

/// The body for some records (`ExportLogsServiceRequest` of the OTLP 1.x specification).
pub fn body(records: &[Record]) -> Value {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let logs: Vec<Value> = records
        .iter()
        .map(|r| {
            let (number, name) = match r.verdict.as_str() {
                "deny" => (17, "ERROR"),
                "ask" | "cleared" => (13, "WARN"),
                _ => (9, "INFO"),
            };
            let nanos = u128::from(r.time) * 1_000_000_000;
            json!({
                "timeUnixNano": nanos.to_string(),
                "severityNumber": number,
                "severityText": name,
                "body": {"stringValue": r.reason},
                "attributes": [
                    text("session.id", &r.session_id),
                    text("jess.tool_use_id", &r.tool_use_id),
                    text("jess.event", &r.event),
                    text("jess.tool", &r.tool),
                    text("jess.verdict", &r.verdict),
                    text("jess.rule", &r.rule),
                ],
            })
        })
        .collect();
    json!({"resourceLogs": [{
        "resource": {"attributes": [text("service.name", "jess")]},
        "scopeLogs": [{"scope": {"name": "jess.audit", "version": env!("CARGO_PKG_VERSION")}, "logRecords": logs}],
    }]})
}

/// Sends records in batches of [`BATCH`]; how many were taken.
pub fn send(address: &str, records: &[Record]) -> Result<usize, Error> {
    let url = url::Url::parse(address).map_err(|_| Error::Address(address.into()))?;
    let (true, Some(host), Some(port)) = (url.scheme() == "http", url.host(), url.port_or_known_default())
    else {
        return Err(Error::Address(address.into()));
    };
    let path = if url.path() == "/" { PATH } else { url.path() };
    let to = format!("{host}:{port}");
    let failed = |source| Error::Io { to: to.clone(), source };
    let at = SocketAddr::new(resolve(&host).map_err(failed)?, port);
    for batch in records.chunks(BATCH) {
        let status = post(at, &to, path, body(batch).to_string().as_bytes()).map_err(failed)?;
        let taken = status.split_ascii_whitespace().nth(1).is_some_and(|code| code.starts_with('2'));
        if !taken {
            return Err(Error::Refused { to, status: crate::sanitise::escape(&status, false) });
        }
    }
    Ok(records.len())
}

/// The first address of the collector. The C library's resolver loads modules at run time, which a static program does
/// without; this one respects /etc/hosts and /etc/resolv.conf.
fn resolve(host: &url::Host<&str>) -> io::Result<IpAddr> {
    let name = match host {
        url::Host::Ipv4(ip) => return Ok(IpAddr::V4(*ip)),
        url::Host::Ipv6(ip) => return Ok(IpAddr::V6(*ip)),
        url::Host::Domain(name) => *name,
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let resolver = TokioResolver::builder_tokio().and_then(|b| b.build()).map_err(io::Error::other)?;
        let lookup = tokio::time::timeout(PATIENCE, resolver.lookup_ip(name));
        let found = lookup.await.map_err(|_| io::ErrorKind::TimedOut)?.map_err(io::Error::other)?;
        found.iter().next().ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    })
}

/// One request to the collector at `at`, called `to`; the status line.
fn post(at: SocketAddr, to: &str, path: &str, body: &[u8]) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {to}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut start = Vec::new();
    stream.take(4096).read_to_end(&mut start)?;
    Ok(String::from_utf8_lossy(&start).lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;
    use std::net::TcpListener;

    /// A collector that answers once and gives what it was sent.
    fn collector(status: &'static str) -> (String, std::thread::JoinHandle<Value>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = io::BufReader::new(&stream);
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(n) = line.strip_prefix("content-length: ") {
                    length = n.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            (&stream)
                .write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes())
                .unwrap();
            serde_json::from_slice(&body).unwrap()
        });
        (address, thread)
    }

    #[test]
    fn records_reach_a_collector_and_a_refusal_is_an_error() {
        let record = Record {
            time: 1_796_000_000,
            verdict: "deny".into(),
            rule: "secret.read".into(),
            ..Record::default()
        };
        let (address, seen) = collector("200 OK");
        assert_eq!(send(&address, std::slice::from_ref(&record)).unwrap(), 1);
        let body = seen.join().unwrap();
        let log = &body["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
        assert_eq!(
            (&log["timeUnixNano"], &log["severityNumber"]),
            (&json!("1796000000000000000"), &json!(17))
        );
        assert!(log["attributes"].to_string().contains("secret.read"));
        let (address, seen) = collector("503 Busy");
        assert!(matches!(send(&address, &[record]), Err(Error::Refused { .. })));
        seen.join().unwrap();
        assert!(matches!(send("https://a.example", &[]), Err(Error::Address(_))));
    }
}
