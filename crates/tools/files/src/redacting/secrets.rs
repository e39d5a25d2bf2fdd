//! The secrets we know. They are never printed.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use antiphon_core::{InputBlock, ToolResult};
use secrecy::{ExposeSecret, SecretString};

/// Shortest secret that is looked for, in bytes.
pub const SECRET_BYTES_MIN: usize = 8;

/// What stands where one was.
const REDACTED: &str = "[redacted]";

/// The secrets we know. Clones share them.
#[derive(Clone, Default)]
pub struct Secrets(Arc<RwLock<Vec<SecretString>>>);

impl Secrets {
    /// One more, which may come to be known only after the tools are there.
    pub fn add(&self, secret: &SecretString) {
        let value = secret.expose_secret().trim();
        if value.len() < SECRET_BYTES_MIN {
            return;
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.iter().all(|other| other.expose_secret() != value) {
            known.push(SecretString::from(value));
            // One that holds another goes as a whole.
            known.sort_by_key(|secret| std::cmp::Reverse(secret.expose_secret().len()));
        }
    }

    /// Takes them out.
    pub(super) fn redact(&self, text: &mut String) {
        for secret in self.0.read().unwrap_or_else(PoisonError::into_inner).iter() {
            if text.contains(secret.expose_secret()) {
                *text = text.replace(secret.expose_secret(), REDACTED);
            }
        }
    }

    /// A result without them.
    pub(crate) fn redacted(&self, mut result: ToolResult) -> ToolResult {
        for block in &mut result.content {
            match block {
                InputBlock::Text(text) => self.redact(&mut text.text),
                InputBlock::Image(_) => {}
            }
        }
        result
    }

    /// How many bytes at the end of `text` may be the beginning of one.
    pub(super) fn begun(&self, text: &str) -> usize {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let begun = |secret: &SecretString| {
            let secret = secret.expose_secret();
            let ends = (1..secret.len()).rev().filter(|end| secret.is_char_boundary(*end));
            ends.into_iter().find(|end| text.ends_with(&secret[..*end])).unwrap_or(0)
        };
        known.iter().map(begun).max().unwrap_or(0)
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
