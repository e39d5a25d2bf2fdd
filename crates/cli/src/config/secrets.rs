//! The secrets that the user has configured, for whoever keeps them out of what others read. What only may
//! be one, such as any variable for an MCP server, is not among them: it may be a word that means something.

use secrecy::{ExposeSecret, SecretString};

use super::{Config, Key, WebhookConfig};

/// What people write where a key is asked for and none is needed. Taken out of what is said, they would
/// be missed there.
const PLACEHOLDERS: [&str; 17] = [
    "",
    "anything",
    "api-key",
    "dummy",
    "empty",
    "lm-studio",
    "local",
    "no-key",
    "no-key-required",
    "none",
    "not-needed",
    "not_needed",
    "ollama",
    "placeholder",
    "sk-no-key-required",
    "test",
    "unused",
];

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

/// A word in place of a key, for servers that need none.
fn is_placeholder(key: &SecretString) -> bool {
    PLACEHOLDERS.contains(&key.expose_secret().trim().to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_words_stand_in_place_of_a_key() {
        for word in ["not-needed", "NOT-NEEDED", " ollama\n", ""] {
            assert!(is_placeholder(&word.into()), "{word}");
        }
        for key in
            ["correct-horse-battery-staple", "not-needed-really", "abcdefghijkl", "a_b_c_d_e"]
        {
            assert!(!is_placeholder(&key.into()), "{key}");
        }
    }
}
