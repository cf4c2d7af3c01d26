//! Encryption: rustls with the ring provider, always with the certificate and the host name checked.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls_improved::MakeRustlsConnect;

use super::options::Tls;
use crate::error::StoreError;

/// The connector; none for a connection in the clear.
pub(super) fn connector(tls: &Tls) -> Result<Option<MakeRustlsConnect>, StoreError> {
    let roots = match tls {
        Tls::Off => return Ok(None),
        Tls::System => system_roots()?,
        Tls::Roots(pem) => given_roots(pem)?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| settings(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Some(MakeRustlsConnect::new(config)))
}

fn given_roots(pem: &[u8]) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| settings(&error))?;
        roots.add(certificate).map_err(|error| settings(&error))?;
    }
    if roots.is_empty() {
        return Err(StoreError::Settings("the root certificates contain none; give them in PEM".to_owned()));
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    // One unreadable certificate among the system's many is not our business, none at all is.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let message = "this system has no trusted root certificates; install them, or give your own with Tls::Roots";
        return Err(StoreError::Settings(message.to_owned()));
    }
    Ok(roots)
}

fn settings(error: &dyn std::error::Error) -> StoreError {
    StoreError::Settings(format!("the TLS settings do not work: {error}"))
}
