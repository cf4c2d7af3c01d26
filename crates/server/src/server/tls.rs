//! TLS: a certificate and its key, from files.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Why a certificate cannot be used.
#[derive(Debug, Error)]
#[error("{file} cannot be used: {problem}")]
pub struct TlsError {
    file: PathBuf,
    problem: String,
}

/// A certificate and its key. Cheap to clone.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(…)")
    }
}

impl Tls {
    /// Reads a chain of certificates, the server's own first, and its key: both as PEM.
    pub fn read(certificates: &Path, key: &Path) -> Result<Tls, TlsError> {
        let refused = |file: &Path, problem: String| TlsError { file: file.to_owned(), problem };
        let chain = CertificateDer::pem_file_iter(certificates).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|error| refused(certificates, error.to_string()))?;
        if chain.is_empty() {
            return Err(refused(certificates, "there is no certificate in it".to_owned()));
        }
        let own = PrivateKeyDer::from_pem_file(key).map_err(|error| refused(key, error.to_string()))?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(key, error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, own)
            .map_err(|error| refused(key, error.to_string()))?;
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }

    pub(super) async fn greet(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}
