//! The remote agents that the user has configured, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use antiphon_outbound::OutboundRules;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Mutex;
use url::Url;

use crate::address;
use crate::card_signature::CardKeys;
use crate::connection::Connection;

/// The path of a card, when the address has none.
const WELL_KNOWN: &str = "/.well-known/agent-card.json";

/// How a remote agent is reached.
#[derive(Debug, Clone, Default)]
pub struct RemoteAgentConfig {
    /// Address of its card, or of its host.
    pub card: String,
    /// Sent with each request.
    pub token: Option<SecretString>,
    /// Name of the header that has the token alone; absent: `Authorization: Bearer`.
    pub header: Option<String>,
    /// Hosts that it may be at beside the public host of its card, as in rules about hosts.
    pub hosts: Vec<String>,
    /// Public keys, one of which has to have signed its card: a set of JSON Web Keys. Absent: the card need not be signed.
    pub card_keys: Option<String>,
}

/// The remote agents of this orchestrator, by name. Their tokens do not print.
#[derive(Debug, Clone, Default)]
pub struct RemoteAgents {
    agents: BTreeMap<String, Arc<RemoteAgent>>,
}

/// A remote agent.
#[derive(Debug)]
pub(crate) struct RemoteAgent {
    pub(crate) name: String,
    pub(crate) card: Url,
    pub(crate) rules: OutboundRules,
    pub(crate) hosts: Vec<String>,
    pub(crate) credentials: Option<(HeaderName, HeaderValue)>,
    pub(crate) card_keys: Option<CardKeys>,
    /// The connection of the last call.
    pub(crate) connection: Mutex<Option<Arc<Connection>>>,
}

/// What is wrong with the configuration of a remote agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RemoteAgentError(String);

impl RemoteAgents {
    /// Adds a remote agent, or replaces the one of this name. Nothing is sent yet.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        config: &RemoteAgentConfig,
    ) -> Result<(), RemoteAgentError> {
        let (name, refuse) = (name.into(), |reason: String| RemoteAgentError(reason));
        let mut card = Url::parse(config.card.trim())
            .map_err(|error| refuse(format!("`card` is not an address: {error}")))?;
        if !matches!(card.scheme(), "http" | "https") || card.host_str().is_none() {
            return Err(refuse("`card` must be an http or https address".to_owned()));
        }
        if matches!(card.path(), "" | "/") {
            card.set_path(WELL_KNOWN);
        }
        let rules = address::rules(&card, &config.hosts).map_err(refuse)?;
        rules.check(&card).map_err(|error| refuse(format!("`card`: {error}")))?;
        let credentials = config.token.as_ref().map(|token| credentials(token, config));
        if credentials.is_some() && !address::is_private(&card) {
            let reason = "the token would be sent in the clear: use an https address";
            return Err(refuse(reason.to_owned()));
        }
        let card_keys = config.card_keys.as_deref().map(CardKeys::parse).transpose();
        let card_keys = card_keys.map_err(|error| refuse(format!("`card_keys`: {error}")))?;
        let agent = RemoteAgent {
            name: name.clone(),
            card,
            rules,
            hosts: config.hosts.clone(),
            credentials: credentials.transpose().map_err(refuse)?,
            card_keys,
            connection: Mutex::new(None),
        };
        self.agents.insert(name, Arc::new(agent));
        Ok(())
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<RemoteAgent>> {
        self.agents.get(name)
    }

    /// The remote agent, if there is only one.
    pub(crate) fn only(&self) -> Option<&Arc<RemoteAgent>> {
        self.agents.values().next().filter(|_| self.agents.len() == 1)
    }

    /// Names of all remote agents, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.agents.keys().map(String::as_str)
    }
}

fn credentials(
    token: &SecretString,
    config: &RemoteAgentConfig,
) -> Result<(HeaderName, HeaderValue), String> {
    let token = token.expose_secret();
    let (name, text) = match &config.header {
        None => (AUTHORIZATION, format!("Bearer {token}")),
        Some(name) => {
            let parsed = HeaderName::from_bytes(name.as_bytes());
            (parsed.map_err(|_| format!("`header`: `{name}` is not a name"))?, token.to_owned())
        }
    };
    let mut value = HeaderValue::from_str(&text)
        .map_err(|_| "the token has characters that cannot be sent".to_owned())?;
    value.set_sensitive(true);
    Ok((name, value))
}
