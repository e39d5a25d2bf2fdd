//! The secrets that the user has configured, for whoever keeps them out of what others read. What only may
//! be one, such as any variable for an MCP server, is not among them: it may be a word that means something.

use secrecy::{ExposeSecret, SecretString};

use super::{Config, Key, WebhookConfig};

impl Config {
    /// Keys of providers, secrets of webhooks, tokens of peers.
    pub(crate) fn secrets(&self) -> Vec<SecretString> {
        let keys = self.providers.values().filter_map(|provider| match &provider.key {
            Key::Set { key, .. } if !is_placeholder(key) => Some(key.clone()),
            Key::Set { .. } | Key::Missing { .. } | Key::NotNeeded => None,
        });
        let webhooks = self.webhooks.values().filter_map(WebhookConfig::secret);
        let peers = self.peers.iter().filter_map(|(name, peer)| peer.token(name).ok());
        keys.chain(webhooks).chain(peers).collect()
    }

    /// The variables that hold them.
    pub(crate) fn secret_variables(&self) -> Vec<String> {
        let keys = self.providers.values().filter_map(|provider| match &provider.key {
            Key::Missing { variable } | Key::Set { variable: Some(variable), .. } => {
                Some(variable.clone())
            }
            Key::Set { variable: None, .. } | Key::NotNeeded => None,
        });
        let webhooks = self.webhooks.values().map(|webhook| webhook.secret_env.clone());
        let peers = self.peers.values().filter_map(|peer| peer.token_env.clone());
        keys.chain(webhooks).chain(peers).collect()
    }
}

/// A word in place of a key, for servers that need none: `not-needed`.
fn is_placeholder(key: &SecretString) -> bool {
    key.expose_secret().bytes().all(|byte| byte.is_ascii_lowercase() || b"-_ ".contains(&byte))
}
