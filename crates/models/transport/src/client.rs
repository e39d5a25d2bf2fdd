//! The HTTP client, one for all providers: one pool of connections, one TLS stack.

use std::time::Duration;

use antiphon_core::PieceSource;
use reqwest::Client;

use crate::dialect::Dialect;
use crate::endpoint::Post;
use crate::source::Source;

/// How connections are made.
#[derive(Debug, Clone)]
pub struct TransportConfig {
    /// How long a provider may take to accept a connection.
    pub connect_timeout: Duration,
    /// Certificates to trust beside the system's own, in PEM.
    pub extra_roots_pem: Option<Vec<u8>>,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(10), extra_roots_pem: None }
    }
}

/// Why no client could be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up HTTP: {reason}")]
pub struct TransportError {
    /// What is wrong.
    pub reason: String,
}

/// Sends requests and reads answers. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct Transport {
    client: Client,
}

impl Transport {
    /// Makes a client. Proxies are taken from the usual variables of the environment.
    pub fn new(config: &TransportConfig) -> Result<Self, TransportError> {
        // Fails when one is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let fault = |error: reqwest::Error| TransportError { reason: error.to_string() };
        let mut builder = Client::builder()
            .user_agent(concat!("antiphon/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(config.connect_timeout)
            // A redirect would carry the key to whoever it names.
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true);
        if let Some(pem) = &config.extra_roots_pem {
            let roots = reqwest::Certificate::from_pem_bundle(pem).map_err(fault)?;
            builder = builder.tls_certs_merge(roots);
        }
        Ok(Self { client: builder.build().map_err(fault)? })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Sends `post` when polled and reads the answer in `dialect`.
    pub fn stream(&self, post: Post, dialect: impl Dialect) -> PieceSource {
        Box::pin(Source::new(self.client.clone(), post, dialect))
    }
}
