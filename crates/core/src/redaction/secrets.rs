//! Known secret values. They are never printed.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use secrecy::{ExposeSecret, SecretString};

use super::REDACTED;
use crate::{InputBlock, ToolResult};

/// Shortest secret that is removed, in bytes. A shorter value would match words that are no secret.
pub const SECRET_BYTES_MIN: usize = 8;

/// Known secret values. Clones share one list.
#[derive(Clone, Default)]
pub struct Secrets(Arc<RwLock<Vec<SecretString>>>);

impl Secrets {
    /// Adds a value, without the whitespace around it. Ignores one under [`SECRET_BYTES_MIN`] bytes.
    /// Clones that are in use already remove it from now on.
    pub fn add(&self, secret: &SecretString) {
        let value = secret.expose_secret().trim();
        if value.len() < SECRET_BYTES_MIN {
            return;
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.iter().all(|other| other.expose_secret() != value) {
            known.push(SecretString::from(value));
            // Longest first: a secret that contains another one is replaced as a whole.
            known.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
        }
    }

    /// Replaces each known secret in `text` by [`REDACTED`].
    pub fn redact(&self, text: &mut String) {
        for secret in self.0.read().unwrap_or_else(PoisonError::into_inner).iter() {
            if text.contains(secret.expose_secret()) {
                *text = text.replace(secret.expose_secret(), REDACTED);
            }
        }
    }

    /// Replaces each known secret in the texts of a tool result.
    pub fn redact_result(&self, mut result: ToolResult) -> ToolResult {
        for block in &mut result.content {
            match block {
                InputBlock::Text(text) => self.redact(&mut text.text),
                InputBlock::Image(_) => {}
            }
        }
        result
    }

    /// How many bytes at the end of `text` may be the start of a secret. A stream holds these back until
    /// more text arrives.
    pub fn partial_suffix_bytes(&self, text: &str) -> usize {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let suffix = |secret: &SecretString| {
            let secret = secret.expose_secret();
            let ends = (1..secret.len()).rev().filter(|end| secret.is_char_boundary(*end));
            ends.into_iter().find(|end| text.ends_with(&secret[..*end])).unwrap_or(0)
        };
        known.iter().map(suffix).max().unwrap_or(0)
    }
}

impl FromIterator<SecretString> for Secrets {
    fn from_iter<I: IntoIterator<Item = SecretString>>(secrets: I) -> Self {
        let known = Self::default();
        for secret in secrets {
            known.add(&secret);
        }
        known
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(***)")
    }
}
