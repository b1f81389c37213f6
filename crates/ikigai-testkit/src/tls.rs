//! A certificate for servers on this machine. Its key is public and protects nothing.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Returns the certificate that a client must trust, as a PEM file.
pub fn authority_file() -> PathBuf {
    file("company.pem")
}

/// Returns TLS settings of a server at 127.0.0.1.
pub fn server_config() -> Arc<ServerConfig> {
    Arc::new(config(&[]))
}

/// Returns TLS settings of a server with HTTP/2 only.
pub fn http2_config() -> Arc<ServerConfig> {
    Arc::new(config(&[b"h2"]))
}

fn config(protocols: &[&[u8]]) -> ServerConfig {
    let chain = CertificateDer::pem_file_iter(file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key.pem")).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain.map(Result::unwrap).collect(), key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    config
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("src/tls")
        .join(name)
}
