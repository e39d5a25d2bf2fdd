//! What somebody shows to be let in. It is taken apart here, and never printed. What cannot be a key
//! is refused before anything is looked up.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use crate::key_id::{KEY_ID_CHARS, KeyId};
use crate::refused::Refused;
use crate::secret::{Digest, KEY_CHARS, KEY_PREFIX};

/// Longest `Authorization` header that is looked at, in bytes. A longer one is malformed.
pub const AUTHORIZATION_BYTES_MAX: usize = 256;

/// Something that has the form of a key.
#[derive(Clone)]
pub struct Presented {
    id: KeyId,
    key: SecretString,
}

/// Reads the value of an `Authorization` header: `Bearer KEY` or `ApiKey KEY`, the scheme in any case.
pub fn parse_authorization(header: &[u8]) -> Result<Presented, Refused> {
    if header.len() > AUTHORIZATION_BYTES_MAX {
        return Err(Refused::Malformed);
    }
    let header = std::str::from_utf8(header).map_err(|_| Refused::Malformed)?;
    let (scheme, key) = header.trim_ascii().split_once(' ').ok_or(Refused::Malformed)?;
    let known = ["bearer", "apikey"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    if !known {
        return Err(Refused::Malformed);
    }
    Presented::parse(key.trim_ascii_start())
}

impl Presented {
    /// Takes a text that should be a whole key: `ak_ID_SECRET`.
    pub fn parse(key: &str) -> Result<Self, Refused> {
        let parse = || {
            let (id, secret) = key.strip_prefix(KEY_PREFIX)?.split_at_checked(KEY_ID_CHARS)?;
            let secret = secret.strip_prefix('_')?;
            let whole = key.len() == KEY_CHARS && secret.bytes().all(|b| b.is_ascii_alphanumeric());
            whole.then_some(id.parse().ok()?)
        };
        let id = parse().ok_or(Refused::Malformed)?;
        Ok(Self { id, key: SecretString::from(key) })
    }

    /// Whose key it claims to be. Nothing is checked yet.
    pub fn claimed_id(&self) -> KeyId {
        self.id
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest::of(self.key.expose_secret())
    }
}

impl fmt::Debug for Presented {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Presented({}, ***)", self.id)
    }
}
