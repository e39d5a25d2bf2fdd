//! The key that a client presents. It is parsed here and never printed. A text that cannot be a key is
//! refused before anything is looked up.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use crate::key::key_id::{KEY_ID_CHARS, KeyId};
use crate::key::secret::{Digest, KEY_CHARS, KEY_PREFIX};
use crate::refusal::KeyRefusal;

/// Longest `Authorization` header that is parsed, in bytes. A longer one is malformed.
pub const AUTHORIZATION_BYTES_MAX: usize = 256;

/// A text that has the form of a key. Nothing is known about its secret yet.
#[derive(Clone)]
pub struct PresentedKey {
    id: KeyId,
    key: SecretString,
}

/// Parses the value of an `Authorization` header: `Bearer KEY` or `ApiKey KEY`, the scheme in any case.
pub fn parse_authorization(header: &[u8]) -> Result<PresentedKey, KeyRefusal> {
    if header.len() > AUTHORIZATION_BYTES_MAX {
        return Err(KeyRefusal::Malformed);
    }
    let header = std::str::from_utf8(header).map_err(|_| KeyRefusal::Malformed)?;
    let (scheme, key) = header.trim_ascii().split_once(' ').ok_or(KeyRefusal::Malformed)?;
    let known = ["bearer", "apikey"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    if !known {
        return Err(KeyRefusal::Malformed);
    }
    PresentedKey::parse(key.trim_ascii_start())
}

impl PresentedKey {
    /// Parses a whole key: `ak_ID_SECRET`.
    pub fn parse(key: &str) -> Result<Self, KeyRefusal> {
        let parse = || {
            let (id, secret) = key.strip_prefix(KEY_PREFIX)?.split_at_checked(KEY_ID_CHARS)?;
            let secret = secret.strip_prefix('_')?;
            let whole = key.len() == KEY_CHARS && secret.bytes().all(|b| b.is_ascii_alphanumeric());
            whole.then_some(id.parse().ok()?)
        };
        let id = parse().ok_or(KeyRefusal::Malformed)?;
        Ok(Self { id, key: SecretString::from(key) })
    }

    /// The id in the text. It is a claim: the secret is not checked yet.
    pub fn claimed_id(&self) -> KeyId {
        self.id
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest::of(self.key.expose_secret())
    }
}

impl fmt::Debug for PresentedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PresentedKey({}, ***)", self.id)
    }
}
