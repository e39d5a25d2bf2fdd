//! The secret of a key: made of the system's randomness, shown once, kept only as a digest, and
//! compared in constant time.
//!
//! The digest is a plain SHA-256. Slow hashes are for passwords, which can be guessed; a secret has
//! 256 random bits, so nobody finds it from its digest however fast that is computed, and a slow one
//! would only let strangers keep the server busy.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::SeedableRng as _;
use rand::distr::{Alphanumeric, SampleString as _};
use rand::rngs::{StdRng, SysRng};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::key_id::{KEY_ID_CHARS, KeyId};

/// What every key begins with, so that people and scanners know one when they see it.
pub const KEY_PREFIX: &str = "ak_";

/// Letters and digits of a secret: the fewest that hold 256 bits.
pub const SECRET_CHARS: usize = 43;

/// Length of a whole key: `ak_ID_SECRET`.
pub const KEY_CHARS: usize = KEY_PREFIX.len() + KEY_ID_CHARS + 1 + SECRET_CHARS;

/// How often an id is made anew because it is taken. Of two hundred thousand billion ids, hardly ever.
const ID_TRIES_MAX: usize = 32;

/// The SHA-256 of a whole key, id and all. It has no `==`: there is no way to compare two but in
/// constant time.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Digest([u8; 32]);

/// The text is no digest. It is not repeated: somebody may have written a secret there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 32 bytes in base64 (URL alphabet, no padding)")]
pub(crate) struct DigestError;

/// The system has no randomness to give.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no randomness: {0}")]
pub(crate) struct NoRandomness(String);

/// Makes ids and secrets.
pub(crate) struct Maker(StdRng);

impl Maker {
    pub(crate) fn new() -> Result<Self, NoRandomness> {
        StdRng::try_from_rng(&mut SysRng).map(Self).map_err(|error| NoRandomness(error.to_string()))
    }

    /// An id that is not taken.
    pub(crate) fn id(&mut self, taken: impl Fn(&KeyId) -> bool) -> Option<KeyId> {
        let id = || Alphanumeric.sample_string(&mut self.0, KEY_ID_CHARS).parse().ok();
        std::iter::repeat_with(id).take(ID_TRIES_MAX).flatten().find(|id| !taken(id))
    }

    /// A whole key with that id.
    pub(crate) fn key(&mut self, id: KeyId) -> SecretString {
        // Room for all of it at once: nothing of a secret stays behind where a text grew.
        let mut key = String::with_capacity(KEY_CHARS);
        key.push_str(KEY_PREFIX);
        key.push_str(&String::from(id));
        key.push('_');
        Alphanumeric.append_string(&mut self.0, &mut key, SECRET_CHARS);
        SecretString::from(key)
    }
}

impl Digest {
    /// Nobody's: nothing is known that has this digest.
    pub(crate) const NOBODY: Self = Self([0; 32]);

    pub(crate) fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    pub(crate) fn matches(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| DigestError)?;
        bytes.try_into().map(Self).map_err(|_| DigestError)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        URL_SAFE_NO_PAD.encode(digest.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(***)")
    }
}
