//! The secrets the user has configured, so that they can be redacted from what agents read. A value that
//! only might be a secret, such as a variable of an MCP server, is not listed: it may be an ordinary word.

use secrecy::{ExposeSecret, SecretString};

use super::{Key, UserSettings};

/// Words that users enter where a key is required but not checked. Redacting them would remove ordinary
/// words from texts.
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

impl UserSettings {
    /// Provider keys, webhook secrets and peer tokens that are set.
    pub fn secrets(&self) -> Vec<SecretString> {
        let keys = self.providers.values().filter_map(|provider| match &provider.key {
            Key::Set { key, .. } if !is_placeholder(key) => Some(key.clone()),
            Key::Set { .. } | Key::Missing { .. } | Key::NotNeeded => None,
        });
        let webhooks = self.webhooks.values().filter_map(|hook| hook.secret(&self.environment));
        let peers =
            self.peers.iter().filter_map(|(name, peer)| peer.token(name, &self.environment).ok());
        let remote = self.a2a.remote.iter();
        let remote =
            remote.filter_map(|(name, agent)| agent.token(name, &self.environment).ok()?);
        keys.chain(webhooks).chain(peers).chain(remote).collect()
    }

    /// Names of the environment variables that hold these secrets.
    pub fn secret_variables(&self) -> Vec<String> {
        let keys = self.providers.values().filter_map(|provider| match &provider.key {
            Key::Missing { variable } | Key::Set { variable: Some(variable), .. } => {
                Some(variable.clone())
            }
            Key::Set { variable: None, .. } | Key::NotNeeded => None,
        });
        let webhooks = self.webhooks.values().map(|webhook| webhook.secret_env.clone());
        let peers = self.peers.values().filter_map(|peer| peer.token_env.clone());
        let remote = self.a2a.remote.values().filter_map(|agent| agent.token_env.clone());
        keys.chain(webhooks).chain(peers).chain(remote).collect()
    }
}

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
