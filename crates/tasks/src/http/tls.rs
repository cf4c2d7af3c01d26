//! Encryption: rustls with the ring provider, always with the certificate and the host's name checked.

use std::sync::{Arc, OnceLock};

use outlast::{Error, Result};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Made when it is first needed: the system's certificates are many.
pub(super) struct Tls {
    roots: Option<Vec<u8>>,
    config: OnceLock<ClientConfig>,
}

impl Tls {
    pub(super) fn new(roots: Option<Vec<u8>>) -> Tls {
        Tls { roots, config: OnceLock::new() }
    }

    /// For a connection that is encrypted, or for one that is not: that one trusts nobody.
    pub(super) fn config(&self, encrypted: bool) -> Result<ClientConfig> {
        if !encrypted {
            return config(RootCertStore::empty());
        }
        if let Some(config) = self.config.get() {
            return Ok(config.clone());
        }
        let made = config(self.trusted()?)?;
        Ok(self.config.get_or_init(|| made).clone())
    }

    fn trusted(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        match &self.roots {
            Some(pem) => {
                for certificate in CertificateDer::pem_slice_iter(pem) {
                    roots.add(certificate?)?;
                }
            }
            // One unreadable certificate among the system's many is not our business, none at all is.
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if roots.is_empty() {
            let message =
                "there are no trusted root certificates; install them, or give your own in the worker's options";
            return Err(Error::new("error", message));
        }
        Ok(roots)
    }
}

fn config(roots: RootCertStore) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
