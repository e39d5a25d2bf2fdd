//! The public id of a key: lists, logs and limits use it, and rotating the secret keeps it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Length of an id, in ASCII letters and digits.
pub const KEY_ID_CHARS: usize = 8;

/// The id of a key: [`KEY_ID_CHARS`] ASCII letters and digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyId([u8; KEY_ID_CHARS]);

/// The text is not an id. The error does not repeat the text, which may be a whole key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a key's id has {KEY_ID_CHARS} letters and digits: the part of `ak_ID_SECRET` in the middle"
)]
pub struct KeyIdError;

impl FromStr for KeyId {
    type Err = KeyIdError;

    fn from_str(text: &str) -> Result<Self, KeyIdError> {
        let bytes: [u8; KEY_ID_CHARS] = text.as_bytes().try_into().map_err(|_| KeyIdError)?;
        bytes.iter().all(u8::is_ascii_alphanumeric).then_some(Self(bytes)).ok_or(KeyIdError)
    }
}

impl TryFrom<String> for KeyId {
    type Error = KeyIdError;

    fn try_from(text: String) -> Result<Self, KeyIdError> {
        text.parse()
    }
}

impl From<KeyId> for String {
    fn from(id: KeyId) -> Self {
        id.0.into_iter().map(char::from).collect()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from(*self))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}
