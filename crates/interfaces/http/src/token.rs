//! The token: what a client has to show. It is never printed, and compared in constant time.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

/// Shortest token, in bytes. Anything shorter could be guessed.
pub const TOKEN_BYTES_MIN: usize = 32;

/// What a client has to show.
#[derive(Clone)]
pub struct Token(SecretString);

/// Why a text is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Make a longer one.
    #[error("a token has at least {TOKEN_BYTES_MIN} characters")]
    TooShort,
    /// Make one that fits into a header.
    #[error("a token has only letters, digits and signs of ASCII in it")]
    Unprintable,
}

impl Token {
    /// Takes a text as a token.
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

    /// The token itself, for whoever keeps it out of what others read.
    pub fn secret(&self) -> &SecretString {
        &self.0
    }

    /// Whether `authorization` shows it, as `Bearer T` or `ApiKey T`.
    pub(crate) fn is_shown_by(&self, authorization: &[u8]) -> bool {
        let Some(space) = authorization.iter().position(|byte| *byte == b' ') else {
            return false;
        };
        let (scheme, shown) = authorization.split_at(space);
        let known =
            scheme.eq_ignore_ascii_case(b"bearer") || scheme.eq_ignore_ascii_case(b"apikey");
        let own = self.0.expose_secret().as_bytes();
        known && bool::from(own.ct_eq(shown.trim_ascii()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}
