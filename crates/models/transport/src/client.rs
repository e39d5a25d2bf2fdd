//! The HTTP client that all providers share: one connection pool, one TLS stack.

use std::time::Duration;

use antiphon_core::PieceSource;
use reqwest::Client;

use crate::answer_stream::Source;
use crate::dialect::Dialect;
use crate::endpoint::Post;

/// Settings of the HTTP client.
#[derive(Debug, Clone)]
pub struct TransportConfig {
    /// How long connecting to a provider may take.
    pub connect_timeout: Duration,
    /// Certificates to trust in addition to the system's, in PEM.
    pub extra_roots_pem: Option<Vec<u8>>,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(10), extra_roots_pem: None }
    }
}

/// Why the HTTP client cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up HTTP: {reason}")]
pub struct TransportError {
    /// What the HTTP library reports.
    pub reason: String,
}

/// Sends requests and reads responses. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct Transport {
    client: Client,
}

impl Transport {
    /// Creates a client. Proxies are read from the usual environment variables.
    pub fn new(config: &TransportConfig) -> Result<Self, TransportError> {
        let fault = |error: reqwest::Error| TransportError { reason: error.to_string() };
        let mut builder = builder(config);
        if let Some(pem) = &config.extra_roots_pem {
            let roots = reqwest::Certificate::from_pem_bundle(pem).map_err(fault)?;
            builder = builder.tls_certs_merge(roots);
        }
        Ok(Self { client: builder.build().map_err(fault)? })
    }

    /// Creates a client for addresses without TLS. Reading the certificates of the system takes long, and no
    /// connection needs one.
    pub fn without_tls(config: &TransportConfig) -> Result<Self, TransportError> {
        let client = builder(config).tls_certs_only([]).build();
        let client = client.map_err(|error| TransportError { reason: error.to_string() })?;
        Ok(Self { client })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Sends `post` when polled and reads the response with `dialect`.
    pub fn stream(&self, post: Post, dialect: impl Dialect) -> PieceSource {
        Box::pin(Source::new(self.client.clone(), post, dialect))
    }
}

fn builder(config: &TransportConfig) -> reqwest::ClientBuilder {
    // Fails when a provider is installed already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("antiphon/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(config.connect_timeout)
        // A redirect would send the key to another server.
        .redirect(reqwest::redirect::Policy::none())
        .tcp_nodelay(true)
}
