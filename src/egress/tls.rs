//! TLS towards the outside: public roots, and those that the operator adds.

use super::Error;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// The client configuration: ring, TLS 1.2 and 1.3, `http/1.1`.
pub(super) fn client(extra_roots: Option<&Path>) -> Result<Arc<ClientConfig>, Error> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = extra_roots {
        let failed = |what: String| Error::Roots { path: path.to_owned(), what };
        let certificates = CertificateDer::pem_file_iter(path).map_err(|e| failed(e.to_string()))?;
        let mut added = 0;
        for certificate in certificates {
            roots.add(certificate.map_err(|e| failed(e.to_string()))?).map_err(|e| failed(e.to_string()))?;
            added += 1;
        }
        if added == 0 {
            return Err(failed("no certificate in it".into()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|e| Error::Thread(std::io::Error::other(e)))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
