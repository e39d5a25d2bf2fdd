//! The peers of this orchestrator, by name. They come from the user's configuration only.

use std::collections::BTreeMap;

use antiphon_client::{Client, ClientConfig, ConfigError, Endpoint, Timeouts};
use secrecy::SecretString;

use crate::peer::Peer;

/// The peers of this orchestrator, by name. Their tokens do not print.
#[derive(Debug, Clone, Default)]
pub struct Peers {
    peers: BTreeMap<String, Peer>,
}

/// Why a peer cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// Write `http://HOST:PORT` or `https://HOST`.
    #[error("the address of the peer `{name}` is invalid: {reason}")]
    Url {
        /// Name of the peer.
        name: String,
        /// What is wrong with the address.
        reason: String,
    },
    /// Use `https`, or a peer on this machine.
    #[error("the token of the peer `{name}` would be sent in the clear: use an https address")]
    Insecure {
        /// Name of the peer.
        name: String,
    },
    /// Set a token that fits into a header.
    #[error("the token of the peer `{name}` has characters that cannot be sent")]
    Token {
        /// Name of the peer.
        name: String,
    },
    /// The TLS configuration of this machine does not work.
    #[error("no connection to the peer `{name}` can be made: {reason}")]
    Client {
        /// Name of the peer.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

impl Peers {
    /// Adds a peer, or replaces the one of this name. Nothing is sent yet.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        url: &str,
        token: &SecretString,
    ) -> Result<(), PeerError> {
        let name = name.into();
        let endpoint =
            Endpoint::parse(url).map_err(|reason| PeerError::Url { name: name.clone(), reason })?;
        let config = ClientConfig { endpoint, token: token.clone(), timeouts: Timeouts::default() };
        let client = Client::new(config).map_err(|error| match error {
            ConfigError::Insecure => PeerError::Insecure { name: name.clone() },
            ConfigError::Token => PeerError::Token { name: name.clone() },
            ConfigError::Transport { reason } => PeerError::Client { name: name.clone(), reason },
        })?;
        self.peers.insert(name.clone(), Peer::new(name, client));
        Ok(())
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Peer> {
        self.peers.get(name)
    }

    /// The peer, if there is only one.
    pub(crate) fn only(&self) -> Option<&Peer> {
        self.peers.values().next().filter(|_| self.peers.len() == 1)
    }

    /// Names of all peers, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.peers.keys().map(String::as_str)
    }
}
