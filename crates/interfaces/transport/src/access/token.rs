//! The owner's token. It is never printed, and compared in constant time.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

/// Shortest token, in bytes. A shorter one could be guessed.
pub const TOKEN_BYTES_MIN: usize = 32;

/// The owner's token.
#[derive(Clone)]
pub struct Token(SecretString);

/// Why a text cannot be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The text is too short: make a longer one.
    #[error("a token has at least {TOKEN_BYTES_MIN} characters")]
    TooShort,
    /// The text does not fit into a header: use visible ASCII characters.
    #[error("a token consists of visible ASCII characters")]
    Unprintable,
}

impl Token {
    /// A token from its text.
    pub fn new(text: SecretString) -> Result<Self, TokenError> {
        let bytes = text.expose_secret().as_bytes();
        if bytes.len() < TOKEN_BYTES_MIN {
            return Err(TokenError::TooShort);
        }
        if !bytes.iter().all(u8::is_ascii_graphic) {
            return Err(TokenError::Unprintable);
        }
        Ok(Self(text))
    }

    /// The token itself, to be redacted from logs and outputs.
    pub fn secret(&self) -> &SecretString {
        &self.0
    }

    /// Whether an `Authorization` header carries it, as `Bearer T` or `ApiKey T`.
    pub(crate) fn matches(&self, authorization: &[u8]) -> bool {
        let Some(space) = authorization.iter().position(|byte| *byte == b' ') else {
            return false;
        };
        let (scheme, presented) = authorization.split_at(space);
        let known =
            scheme.eq_ignore_ascii_case(b"bearer") || scheme.eq_ignore_ascii_case(b"apikey");
        let own = self.0.expose_secret().as_bytes();
        known && bool::from(own.ct_eq(presented.trim_ascii()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}
