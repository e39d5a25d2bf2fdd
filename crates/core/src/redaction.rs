//! Removes secrets from text. One place for the whole workspace.
//!
//! | type            | removes                                         | used for                               |
//! |-----------------|-------------------------------------------------|----------------------------------------|
//! | [`Secrets`]     | exact values: provider keys, the server's token | tool results, errors of providers      |
//! | [`KeyRedactor`] | text with the shape of a key (`sk-…`, `Bearer …`) | recordings, where values are unknown |

mod key_pattern;
mod secrets;

pub use key_pattern::{KeyRedactor, redact_keys};
pub use secrets::{SECRET_BYTES_MIN, Secrets};

/// Replaces each secret.
pub const REDACTED: &str = "[redacted]";
