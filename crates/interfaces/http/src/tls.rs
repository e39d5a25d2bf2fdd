//! TLS, from a certificate and a key in PEM. What cannot be used is refused before anybody connects; no key
//! is ever repeated.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// What is spoken inside.
const HTTP: &[u8] = b"http/1.1";

/// A certificate and its key.
#[derive(Clone)]
pub struct Tls(pub(crate) TlsAcceptor);

/// Why there is no TLS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// Name the file with the certificate.
    #[error("there is no certificate in it: it has to be PEM, `-----BEGIN CERTIFICATE-----`")]
    NoCertificate,
    /// Name the file with the key.
    #[error("there is no private key in it: it has to be PEM, without a password")]
    NoKey,
    /// See whether they belong together.
    #[error("the certificate and the key are of no use: {reason}")]
    Unfit {
        /// What is wrong.
        reason: String,
    },
}

impl Tls {
    /// A certificate, with those that vouch for it behind it, and its key.
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
