//! Servers outside, a door, and a client that says exactly what it is told to.
//!
//! 127.0.0.2 plays the public internet: the door's configuration excepts it from the screen. 127.0.0.1 plays the
//! operator's own machine: nothing excepts it.

use jess::egress::{Config, Handle, Server};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
pub const INSIDE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub trait ReadWrite: Read + Write + Send {}
impl<T: Read + Write + Send> ReadWrite for T {}

/// A server that hands each connection to a function on a thread of its own, and counts them.
pub struct Origin {
    pub addr: SocketAddr,
    connections: Arc<AtomicUsize>,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Origin {
    pub fn start(ip: IpAddr, serve: impl Fn(TcpStream, &Mutex<Vec<u8>>) + Send + Sync + 'static) -> Origin {
        let listener = TcpListener::bind((ip, 0)).expect("bind");
        let addr = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let received = Arc::new(Mutex::new(Vec::new()));
        let serve = Arc::new(serve);
        let (count, log) = (Arc::clone(&connections), Arc::clone(&received));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, SeqCst);
                let (serve, log) = (Arc::clone(&serve), Arc::clone(&log));
                thread::spawn(move || serve(stream, &log));
            }
        });
        Origin { addr, connections, received }
    }

    /// Answers every request with 200 and `body`.
    pub fn http(ip: IpAddr, body: &'static str) -> Origin {
        Origin::start(ip, move |mut stream, log| answer(&mut stream, log, body))
    }

    /// The same over TLS, with a certificate for `names` signed by `authority`.
    pub fn https(ip: IpAddr, authority: &Authority, names: &[&str], body: &'static str) -> Origin {
        let config = authority.server(names);
        Origin::start(ip, move |stream, log| {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            answer(&mut rustls::StreamOwned::new(connection, stream), log, body);
        })
    }

    pub fn port(&self) -> u16 {
        self.addr.port()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }

    pub fn received(&self) -> String {
        String::from_utf8_lossy(&self.received.lock().unwrap()).into_owned()
    }
}

fn answer(stream: &mut impl ReadWrite, log: &Mutex<Vec<u8>>, body: &str) {
    let request = read_request(stream);
    log.lock().unwrap().extend_from_slice(&request);
    if !request.is_empty() {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
        let _ = stream.flush();
    }
}

/// Reads a head, and the body that a Content-Length announces.
pub fn read_request(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 65536];
    loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|l| l.strip_prefix("content-length:"));
            let length: usize = length.and_then(|l| l.trim().parse().ok()).unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                return bytes;
            }
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return bytes,
            Ok(n) => bytes.extend_from_slice(&chunk[..n]),
        }
    }
}

/// A certificate authority of the test.
pub struct Authority {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    pub pem: String,
    dir: tempfile::TempDir,
}

impl Authority {
    pub fn new() -> Authority {
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "test authority");
        let key = rcgen::KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.pem"), &pem).unwrap();
        Authority { issuer: rcgen::Issuer::new(params, key), pem, dir }
    }

    pub fn file(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    pub fn server(&self, names: &[&str]) -> Arc<rustls::ServerConfig> {
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate =
            rcgen::CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let builder =
            rustls::ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = builder.unwrap().with_no_client_auth();
        Arc::new(config.with_single_cert(vec![certificate.der().clone()], key).unwrap())
    }

    pub fn client(&self) -> Arc<rustls::ClientConfig> {
        use rustls::pki_types::pem::PemObject;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(rustls::pki_types::CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        let builder =
            rustls::ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        Arc::new(builder.unwrap().with_root_certificates(roots).with_no_client_auth())
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A door on 127.0.0.1, as the sandbox would see it.
pub struct Door {
    pub addr: SocketAddr,
    pub handle: Handle,
}

impl Door {
    pub fn open(config: Config) -> Door {
        let listener = TcpListener::bind((INSIDE, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        Door { addr, handle: Server::start(listener.into(), config).expect("the door opens") }
    }

    /// Sends `bytes`, closes nothing, and reads until the door closes or nothing comes for two seconds.
    pub fn say(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let _ = stream.write_all(bytes);
        read_all(&mut stream)
    }

    /// Opens a tunnel; the answer's head when it is not opened.
    pub fn connect(&self, authority: &str) -> Result<TcpStream, String> {
        let mut stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        write!(stream, "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n").unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
            head.push(byte[0]);
        }
        if head.starts_with(b"HTTP/1.1 200") {
            return Ok(stream);
        }
        let body = read_all(&mut stream);
        Err(String::from_utf8_lossy(&head).into_owned() + &body)
    }
}

pub fn read_all(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let mut chunk = [0; 65536];
    while let Ok(n @ 1..) = stream.read(&mut chunk) {
        bytes.extend_from_slice(&chunk[..n]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Asks for `/` over TLS inside a tunnel, with `sni` as the server name.
pub fn get_over_tls(
    tunnel: TcpStream,
    client: Arc<rustls::ClientConfig>,
    sni: &str,
) -> Result<String, String> {
    let name = ServerName::try_from(sni.to_owned()).unwrap();
    let connection = rustls::ClientConnection::new(client, name).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, tunnel);
    let request = format!("GET / HTTP/1.1\r\nHost: {sni}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(|e| e.to_string())?;
    let answer = read_all(&mut stream);
    if answer.is_empty() { Err("nothing came".into()) } else { Ok(answer) }
}

/// The configuration that most tests use: `rules`, names pinned to the public address.
pub fn config(rules: &[&str], names: &[(&str, IpAddr)]) -> Config {
    Config {
        allow_hosts: rules.iter().map(|r| r.parse().expect(r)).collect(),
        allow_addresses: vec!["127.0.0.2/32".parse().unwrap()],
        pinned_names: names.iter().map(|(n, a)| ((*n).to_owned(), vec![*a])).collect::<HashMap<_, _>>(),
        ..Config::default()
    }
}

/// A name server that records what it is asked, and answers `A` questions by `answer`.
pub struct NameServer {
    pub addr: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl NameServer {
    pub fn start(answer: impl Fn(&str, usize) -> Vec<Ipv4Addr> + Send + 'static) -> NameServer {
        let socket = UdpSocket::bind((INSIDE, 0)).unwrap();
        let addr = socket.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        thread::spawn(move || {
            let mut buf = [0; 1500];
            while let Ok((n, from)) = socket.recv_from(&mut buf) {
                let (name, kind, question) = question(&buf[..n]);
                let mut addresses = Vec::new();
                if kind == 1 {
                    let mut log = log.lock().unwrap();
                    let before = log.iter().filter(|known| **known == name).count();
                    addresses = answer(&name, before);
                    log.push(name);
                }
                let mut reply = buf[..2].to_vec();
                reply.extend([0x81, 0x80, 0, 1, 0, addresses.len() as u8, 0, 0, 0, 0]);
                reply.extend(question);
                for address in addresses {
                    reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
                    reply.extend(address.octets());
                }
                let _ = socket.send_to(&reply, from);
            }
        });
        NameServer { addr, asked }
    }

    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn question(packet: &[u8]) -> (String, u16, Vec<u8>) {
    let (mut at, mut labels) = (12, Vec::new());
    while packet[at] != 0 {
        let len = packet[at] as usize;
        labels.push(String::from_utf8_lossy(&packet[at + 1..at + 1 + len]).to_ascii_lowercase());
        at += len + 1;
    }
    let kind = u16::from_be_bytes([packet[at + 1], packet[at + 2]]);
    (labels.join("."), kind, packet[12..at + 5].to_vec())
}

/// Ends the sending side, so that the other side sees the end.
pub fn finish(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
}
