//! TLS to the server, with the same library as for providers.

use std::fmt;
use std::fs::File;
use std::future::Future;
use std::io::{self, Read};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::server_url::{Host, ServerAddress, TlsMode, Url};

/// Limit of a certificate file in bytes.
const ROOTS_BYTES: u64 = 4 * 1024 * 1024;

/// Failure of TLS.
#[derive(Debug, Error)]
pub(super) enum TlsError {
    /// The file of `sslrootcert` cannot be used.
    #[error("cannot use the certificates in `{path}`: {reason}")]
    Roots { path: String, reason: String },
    /// The handshake or the server's certificate was refused.
    #[error("{0}")]
    Handshake(io::Error),
    /// The library could not be set up.
    #[error("cannot set up TLS: {0}")]
    Setup(String),
}

/// TLS settings of one URL.
#[derive(Clone)]
pub(super) struct Tls {
    config: Arc<ClientConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads certificates and settings of a URL; `None` for a plain connection.
    pub(super) fn new(url: &Url) -> Result<Option<Self>, TlsError> {
        let is_socket = |address: &ServerAddress| matches!(address.host, Host::Socket(_));
        if url.tls == TlsMode::Disable || url.addresses().iter().all(is_socket) {
            return Ok(None);
        }
        let provider = Arc::new(ring::default_provider());
        let fail = |error: &dyn fmt::Display| TlsError::Setup(error.to_string());
        let checks_chain = url.tls >= TlsMode::VerifyCa || url.roots.is_some();
        let chain = if checks_chain {
            let roots = Arc::new(roots(url.roots.as_deref())?);
            let verifier =
                WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider));
            Some(verifier.build().map_err(|error| fail(&error))?)
        } else {
            None
        };
        let verifier = Verifier {
            chain,
            provider: Arc::clone(&provider),
            checks_name: url.tls == TlsMode::VerifyFull,
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| fail(&error))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Some(Self {
            config: Arc::new(config),
        }))
    }
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, TlsError> {
    let Some(path) = file else {
        return Ok(RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        });
    };
    let fail = |reason: &dyn fmt::Display| TlsError::Roots {
        path: path.display().to_string(),
        reason: reason.to_string(),
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| fail(&error))?;
    file.take(ROOTS_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|error| fail(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| fail(&error))?;
        roots.add(certificate).map_err(|error| fail(&error))?;
    }
    if roots.is_empty() {
        return Err(fail(&"no certificate found"));
    }
    Ok(roots)
}

/// Verifies the server's certificate as far as `sslmode` asks.
///
/// It always verifies that the server has the key of its certificate.
#[derive(Debug)]
struct Verifier {
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
    checks_name: bool,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified =
            chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is checked last, so everything else is valid.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.checks_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = TlsClientStream;
    type TlsConnect = Handshake;
    type Error = TlsError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, TlsError> {
        let server = ServerName::try_from(domain.to_owned());
        Ok(Handshake {
            connector: TlsConnector::from(Arc::clone(&self.config)),
            server: server.map_err(|error| TlsError::Setup(error.to_string()))?,
        })
    }
}

/// A TLS handshake to perform.
pub(super) struct Handshake {
    connector: TlsConnector,
    server: ServerName<'static>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = TlsClientStream;
    type Error = TlsError;
    type Future = Pin<Box<dyn Future<Output = Result<TlsClientStream, TlsError>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let stream = self.connector.connect(self.server, socket).await;
            stream.map(TlsClientStream).map_err(TlsError::Handshake)
        })
    }
}

/// A TLS connection.
pub(super) struct TlsClientStream(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for TlsClientStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for TlsClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(context, buffer)
    }
}

impl AsyncWrite for TlsClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(context)
    }
}
