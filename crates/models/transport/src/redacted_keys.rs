//! Redacts the keys of a request from its response: a provider may repeat them in an error, and
//! errors are stored and shown.

use secrecy::{ExposeSecret, SecretString};

/// Shortest key that is redacted, in bytes: a shorter one would match ordinary words.
const KEY_BYTES_MIN: usize = 8;

/// The keys of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct RedactedKeys(Vec<SecretString>);

impl RedactedKeys {
    pub(crate) fn add(&mut self, key: &str) {
        if key.len() >= KEY_BYTES_MIN {
            self.0.push(SecretString::from(key));
        }
    }

    /// Replaces all keys in a text.
    pub(crate) fn redact(&self, text: &mut String) {
        for key in &self.0 {
            if text.contains(key.expose_secret()) {
                *text = text.replace(key.expose_secret(), "[redacted]");
            }
        }
    }
}
