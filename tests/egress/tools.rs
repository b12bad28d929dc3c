//! Real tools in a real sandbox, to local servers: by the proxy variables, and without them. `.ci/run prerequisites`
//! installs the tools; one that is missing is a failure.

use crate::support::{Authority, Origin, PUBLIC};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

struct Setting {
    authority: Authority,
    origin: Origin,
    dir: tempfile::TempDir,
}

/// Variables by which tools find certificates to trust.
const TRUST: [&str; 8] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "npm_config_cafile",
    "CARGO_HTTP_CAINFO",
];

/// A shell prefix without which most tools would use the proxy.
const BARE: &str = "unset HTTP_PROXY http_proxy HTTPS_PROXY https_proxy; ";

impl Setting {
    fn new() -> Setting {
        let authority = Authority::new();
        let origin = Origin::https(PUBLIC, &authority, &["allowed.test", "denied.test"], "PUBLIC");
        Setting { authority, origin, dir: tempfile::tempdir().unwrap() }
    }

    /// Runs `script` with `{at}` as the server under the name `host`, `{dir}` as a directory of its own.
    fn run(&self, host: &str, script: &str) -> Output {
        let port = self.origin.port();
        let script = script
            .replace("{at}", &format!("{host}:{port}"))
            .replace("{port}", &port.to_string())
            .replace("{host}", host)
            .replace("{dir}", self.dir.path().to_str().unwrap())
            .replace("{ca}", self.authority.file().to_str().unwrap());
        let mut jess = Command::new(env!("CARGO_BIN_EXE_jess"));
        jess.args(["run", "--timeout", "150", "--net-inside", "127.0.0.2", "--net"])
            .arg(format!("allowed.test:{port}"));
        jess.args(["--resolve", "allowed.test=127.0.0.2", "--resolve", "denied.test=127.0.0.2"]);
        jess.arg("--ro").arg(self.authority.file()).arg("--rw").arg(self.dir.path());
        jess.arg("--ro").arg(cargo_home());
        for name in TRUST {
            jess.arg("--env").arg(format!("{name}={}", self.authority.file().display()));
        }
        jess.args(["--", "/bin/sh", "-c", &script]).stdin(Stdio::null());
        jess.env_clear().env("PATH", "/usr/bin:/bin").output().unwrap()
    }

    /// The tool's request arrives under the allowed name, and not under the other one on the same server.
    fn reaches_only_what_is_allowed(&self, script: &str, arrived: &str) {
        let done = self.run("allowed.test", script);
        let said = || String::from_utf8_lossy(&[&done.stdout[..], &done.stderr].concat()).into_owned();
        assert!(self.origin.received().contains(arrived), "{script}: {}", said());
        let before = self.origin.received();
        let done = self.run("denied.test", script);
        assert_eq!(self.origin.received(), before, "{script}");
        let err = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(err.contains("jess: denied.test:") && err.contains("would allow it"), "{script}: {err}");
    }
}

/// The toolchain that builds this test.
fn cargo_home() -> PathBuf {
    let real = PathBuf::from(env!("CARGO")).canonicalize().unwrap();
    real.parent().and_then(|bin| bin.parent()).unwrap().to_path_buf()
}

fn needs(program: &str) {
    let found = ["/usr/bin", "/bin", "/usr/sbin"].iter().any(|dir| PathBuf::from(dir).join(program).exists());
    assert!(found, "{program} is needed for this test: `.ci/run prerequisites` installs it");
}

fn tool(program: &str, script: &str, arrived: &str) {
    needs(program);
    for prefix in ["", BARE] {
        Setting::new().reaches_only_what_is_allowed(&format!("{prefix}{script}"), arrived);
    }
}

#[test]
fn curl() {
    tool("curl", "curl -q -sS https://{at}/curl", "GET /curl ");
}

#[test]
fn wget() {
    tool("wget", "wget --no-config -qO- --tries=1 --ca-certificate={ca} https://{at}/wget", "GET /wget ");
}

#[test]
fn git_over_https() {
    tool("git", "git ls-remote https://{at}/r.git", "GET /r.git/info/refs");
}

#[test]
fn python() {
    let code = "import urllib.request as r; print(r.urlopen('https://{at}/urllib').read())";
    tool("python3", &format!("/usr/bin/python3 -c \"{code}\""), "GET /urllib ");
}

#[test]
fn python_requests() {
    let code = "import requests; print(requests.get('https://{at}/requests').text)";
    tool("python3", &format!("/usr/bin/python3 -c \"{code}\""), "GET /requests ");
}

#[test]
fn python_httpx() {
    let code = "import httpx; print(httpx.get('https://{at}/httpx', verify='{ca}').text)";
    tool("python3", &format!("/usr/bin/python3 -c \"{code}\""), "GET /httpx ");
}

/// aiohttp ignores the proxy variables unless it is told otherwise.
#[test]
fn python_aiohttp() {
    let setting = Setting::new();
    let code = "import aiohttp, asyncio, ssl\n\
        async def main():\n\
        \x20 context = ssl.create_default_context(cafile='{ca}')\n\
        \x20 async with aiohttp.ClientSession() as s, s.get('https://{at}/aiohttp', ssl=context) as r: print(await r.text())\n\
        asyncio.run(main())\n";
    needs("python3");
    setting.reaches_only_what_is_allowed(&format!("/usr/bin/python3 -c \"{code}\""), "GET /aiohttp ");
}

#[test]
fn pip() {
    let install = "HOME={dir} /usr/bin/python3 -m pip download --isolated --no-cache-dir --disable-pip-version-check --retries 0 \
                   --cert {ca} -d {dir} -i https://{at}/simple nothing";
    tool("pip3", install, "GET /simple/nothing/ ");
}

#[test]
fn apt() {
    let update = "mkdir -p {dir}/lists/partial {dir}/cache/archives/partial; touch {dir}/status; \
                  echo 'deb [trusted=yes] https://{at}/apt ./' > {dir}/list; \
                  apt-get -o Dir::State={dir} -o Dir::State::status={dir}/status -o Dir::Cache={dir}/cache \
                  -o Dir::Etc::sourcelist={dir}/list -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=root \
                  -o Acquire::https::CAInfo={ca} -o Acquire::Retries=0 update";
    tool("apt-get", update, "GET /apt/./InRelease ");
}

#[test]
fn npm() {
    tool(
        "npm",
        "cd {dir}; npm view nothing --registry https://{at}/npm/ --fetch-retries=0 --cache {dir}/cache --no-update-notifier",
        "GET /npm/nothing ",
    );
}

/// node's fetch ignores the proxy variables.
#[test]
fn node_fetch() {
    needs("node");
    let code = "fetch('https://{at}/fetch').then(r => r.text()).then(console.log, console.log)";
    Setting::new().reaches_only_what_is_allowed(&format!("node -e \"{code}\""), "GET /fetch ");
}

#[test]
fn cargo() {
    let configure = "mkdir -p {dir}/home {dir}/p/src; cd {dir}/p; touch src/lib.rs; \
        printf '[package]\\nname=\"p\"\\nversion=\"0.1.0\"\\n[dependencies]\\nnothing={version=\"1\",registry=\"local\"}\\n' > Cargo.toml; \
        CARGO_HOME={dir}/home CARGO_NET_RETRY=0 CARGO_REGISTRIES_LOCAL_INDEX=sparse+https://{at}/index/ ";
    let cargo = cargo_home().join("bin/cargo");
    let script = format!("{configure} {} fetch", cargo.display());
    for prefix in ["", BARE] {
        Setting::new().reaches_only_what_is_allowed(&format!("{prefix}{script}"), "GET /index/config.json ");
    }
}

#[test]
fn go() {
    tool(
        "go",
        "cd {dir}; HOME={dir} GOFLAGS=-mod=mod GOSUMDB=off GOPROXY=https://{at}/go go list -m example.test/m@latest",
        "GET /go/example.test/m/@v/list ",
    );
}

/// A JVM ignores the proxy variables.
#[test]
fn java() {
    needs("java");
    let setting = Setting::new();
    let code = r#"
import java.io.FileInputStream;
import java.net.URL;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.*;

public class Client {
    public static void main(String[] args) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (FileInputStream in = new FileInputStream(args[1])) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        HttpsURLConnection connection = (HttpsURLConnection) new URL(args[0]).openConnection();
        connection.setSSLSocketFactory(context.getSocketFactory());
        System.out.println(connection.getResponseCode());
    }
}
"#;
    std::fs::write(setting.dir.path().join("Client.java"), code).unwrap();
    setting.reaches_only_what_is_allowed("java {dir}/Client.java https://{at}/java {ca}", "GET /java ");
}

/// git over SSH has no proxy variable: it is captured by name. The server is a real sshd of the same user.
#[test]
fn git_over_ssh() {
    needs("sshd");
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let ok = |program: &str, args: &[&str]| {
        let done = Command::new(program).args(args).stdin(Stdio::null()).output().unwrap();
        assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
    };
    for key in ["host", "client"] {
        ok("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]);
    }
    std::fs::copy(at("client.pub"), at("authorized")).unwrap();
    ok("git", &["init", "-q", "--bare", &at("repo.git")]);
    ok("git", &["-C", &at("repo.git"), "symbolic-ref", "HEAD", "refs/heads/main"]);
    let port = std::net::TcpListener::bind((PUBLIC, 0)).unwrap().local_addr().unwrap().port();
    let config = format!(
        "ListenAddress 127.0.0.2:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n\
         PermitRootLogin yes\nPasswordAuthentication no\n",
        at("host"),
        at("authorized")
    );
    std::fs::write(at("config"), config).unwrap();
    if rustix::process::geteuid().is_root() {
        // Where root's sshd separates its privileges.
        std::fs::create_dir_all("/run/sshd").unwrap();
    }
    let mut sshd = Command::new("/usr/sbin/sshd").args(["-D", "-q", "-f", &at("config")]).spawn().unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while std::net::TcpStream::connect((PUBLIC, port)).is_err() && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let user = Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8_lossy(&user.stdout).trim().to_owned();
    let clone = |host: &str| {
        let script = format!(
            "cp {client} /tmp/key && chmod 600 /tmp/key && GIT_SSH_COMMAND='ssh -F none -i /tmp/key -o BatchMode=yes \
             -o StrictHostKeyChecking=no -o UserKnownHostsFile=/tmp/known' git clone -q ssh://{user}@{host}:{port}{repo} /tmp/clone \
             && test -d /tmp/clone/.git && echo CLONED",
            client = at("client"),
            repo = at("repo.git"),
        );
        Command::new(env!("CARGO_BIN_EXE_jess"))
            .args([
                "run",
                "--timeout",
                "60",
                "--net-inside",
                "127.0.0.2",
                "--net",
                &format!("allowed.test:{port}"),
            ])
            .args(["--resolve", "allowed.test=127.0.0.2", "--resolve", "denied.test=127.0.0.2"])
            .args(["--ro", &at("client"), "--", "/bin/sh", "-c", &script])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let (allowed, denied) = (clone("allowed.test"), clone("denied.test"));
    sshd.kill().unwrap();
    sshd.wait().unwrap();
    let said = |o: &Output| String::from_utf8_lossy(&[&o.stdout[..], &o.stderr].concat()).into_owned();
    assert!(said(&allowed).contains("CLONED"), "{}", said(&allowed));
    assert!(!said(&denied).contains("CLONED") && said(&denied).contains("denied.test"), "{}", said(&denied));
}
