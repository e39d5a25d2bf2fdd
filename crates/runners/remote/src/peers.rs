//! The other orchestrators, by name. Only whoever starts the program says who they are.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, Url, redirect};
use secrecy::{ExposeSecret, SecretString};

use crate::peer::Peer;

/// How long a peer may take to accept a connection.
const CONNECT_WAIT: Duration = Duration::from_secs(10);

/// The other orchestrators, by name. Their tokens do not print.
#[derive(Debug, Clone, Default)]
pub struct LoopbackPeers {
    peers: BTreeMap<String, Peer>,
}

/// Why a peer cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// Write `http://HOST:PORT` or `https://HOST`.
    #[error("the peer `{name}` has no address: {reason}")]
    Url {
        /// Which.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Use `https`, or a peer on this machine.
    #[error("the peer `{name}` would get its token in the clear: use an https address")]
    Insecure {
        /// Which.
        name: String,
    },
    /// Set a token that fits into a header.
    #[error("the token of the peer `{name}` cannot be sent: it has strange characters in it")]
    Token {
        /// Which.
        name: String,
    },
    /// See there.
    #[error("the peer `{name}` cannot be asked: {reason}")]
    Client {
        /// Which.
        name: String,
        /// Why.
        reason: String,
    },
}

impl LoopbackPeers {
    /// Adds the peer of this name, or replaces it.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        url: &str,
        token: &SecretString,
    ) -> Result<(), PeerError> {
        let name = name.into();
        let address =
            |reason: &str| PeerError::Url { name: name.clone(), reason: reason.to_owned() };
        if url.contains('@') {
            return Err(address("an address must not hold a user name or password"));
        }
        let url = Url::parse(url.trim()).map_err(|error| address(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(address("it is not an http or https address"));
        }
        if url.scheme() == "http" && !is_loopback(&url) {
            return Err(PeerError::Insecure { name });
        }
        let mut shown = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))
            .map_err(|_| PeerError::Token { name: name.clone() })?;
        // Printed as `Sensitive`.
        shown.set_sensitive(true);
        let client = client(&url, shown)
            .map_err(|reason| PeerError::Client { name: name.clone(), reason })?;
        self.peers.insert(name.clone(), Peer::new(name, url, client));
        Ok(())
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Peer> {
        self.peers.get(name)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.peers.keys().map(String::as_str)
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || literal.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn client(url: &Url, shown: HeaderValue) -> Result<Client, String> {
    // Fails when one is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("antiphon/", env!("CARGO_PKG_VERSION")))
        .default_headers(HeaderMap::from_iter([(AUTHORIZATION, shown)]))
        .connect_timeout(CONNECT_WAIT)
        // A redirect would carry the token to whoever it names.
        .redirect(redirect::Policy::none())
        .tcp_nodelay(true);
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // The system's certificates are many, and nobody asks for one.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| error.to_string())
}
