//! HTTP clients that all requests share, each built on first use.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use reqwest::Url;
use reqwest::redirect;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::Deadlines;
use crate::small_file;

/// Largest file of certificates; all roots of browsers have a quarter of a megabyte.
const MOST_ROOT_BYTES: u64 = 4 << 20;

/// Connections to providers. Cheap to make and to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Client {
    deadlines: Deadlines,
    /// File of additional trusted certificates.
    trusted: Option<PathBuf>,
    shared: Arc<SharedClient>,
}

/// Clients, built once. Errors are stored too: a retry would fail again.
#[derive(Debug, Default)]
struct SharedClient {
    local: OnceLock<Result<reqwest::Client, String>>,
    remote: OnceLock<Result<reqwest::Client, String>>,
}

impl Client {
    /// Makes a client with these deadlines. It opens and reads nothing yet.
    pub fn new(deadlines: Deadlines) -> Self {
        Self {
            deadlines,
            trusted: None,
            shared: Arc::default(),
        }
    }

    /// Returns a client with these deadlines and the same trusted certificates.
    #[must_use]
    pub fn with_deadlines(&self, deadlines: Deadlines) -> Self {
        Self::new(deadlines).trusting(self.trusted.clone())
    }

    /// Returns a client that also trusts the certificates in this file, such as a company's.
    ///
    /// The first connection that needs it reads the file.
    #[must_use]
    pub fn trusting(&self, file: Option<PathBuf>) -> Self {
        Self {
            deadlines: self.deadlines,
            trusted: file,
            shared: Arc::default(),
        }
    }

    /// Returns the deadlines.
    pub fn deadlines(&self) -> Deadlines {
        self.deadlines
    }

    /// Returns the connections for a URL.
    pub(super) fn to(&self, url: &Url) -> Result<reqwest::Client, String> {
        let built = if is_local(url) {
            self.shared.local.get_or_init(|| self.build_local())
        } else {
            self.shared.remote.get_or_init(|| self.build_remote())
        };
        built.clone()
    }

    /// Builds the client for plain HTTP on this machine.
    ///
    /// It uses no proxy, and checks no certificates, so it does not load the roots.
    fn build_local(&self) -> Result<reqwest::Client, String> {
        self.build(RootCertStore::empty(), reqwest::ClientBuilder::no_proxy)
    }

    fn build_remote(&self) -> Result<reqwest::Client, String> {
        let mut roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        if let Some(file) = &self.trusted {
            let failed = |reason| {
                format!(
                    "cannot use the certificates in `{}`: {reason}",
                    file.display()
                )
            };
            add_certificates(file, &mut roots).map_err(failed)?;
        }
        self.build(roots, |builder| builder)
    }

    fn build(
        &self,
        roots: RootCertStore,
        adapt: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
    ) -> Result<reqwest::Client, String> {
        let mut tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .connect_timeout(self.deadlines.connect)
            .redirect(redirect::Policy::none())
            .referer(false)
            .user_agent(concat!("ikigai/", env!("CARGO_PKG_VERSION")));
        adapt(builder).build().map_err(|error| error.to_string())
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new(Deadlines::DEFAULT)
    }
}

fn add_certificates(file: &Path, roots: &mut RootCertStore) -> Result<(), String> {
    let opened = small_file::open(file).map_err(|error| error.to_string())?;
    let mut opened = opened.ok_or("no such file")?;
    let text = small_file::read(&mut opened, MOST_ROOT_BYTES).map_err(|error| error.to_string())?;
    let mut found = 0;
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
        found += 1;
    }
    match found {
        0 => Err("no certificate found; the file must be in PEM format".to_owned()),
        _ => Ok(()),
    }
}

/// Returns true for a URL of plain HTTP on this machine.
pub(super) fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    url.scheme() == "http"
        && (host == "localhost"
            || host
                .parse()
                .is_ok_and(|address: IpAddr| address.is_loopback()))
}
