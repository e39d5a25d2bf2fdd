//! TLS from a certificate and a key in PEM. Refuses unusable ones before the server listens. Never prints the
//! key.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// The protocol inside of TLS, for ALPN.
const HTTP: &[u8] = b"http/1.1";

/// A certificate and its key.
#[derive(Clone)]
pub struct Tls(pub(crate) TlsAcceptor);

/// Why a certificate and a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The file has no certificate: name another file.
    #[error("no certificate found: expected PEM, `-----BEGIN CERTIFICATE-----`")]
    NoCertificate,
    /// The file has no key: name another file.
    #[error("no private key found: expected PEM, without a password")]
    NoKey,
    /// They do not belong together, or TLS does not support them.
    #[error("the certificate and the key cannot be used: {reason}")]
    Unfit {
        /// The reason, from the TLS library.
        reason: String,
    },
}

impl Tls {
    /// From a certificate, followed by its chain, and its key.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or(TlsError::NoCertificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::NoKey)?;
        let unfit = |error: rustls::Error| TlsError::Unfit { reason: error.to_string() };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unfit)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(unfit)?;
        config.alpn_protocols = vec![HTTP.to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls(***)")
    }
}
