//! The secret of a key: generated from the system's randomness, shown once, stored as a digest, and
//! compared in constant time.
//!
//! The digest is a plain SHA-256. Slow hashes are for passwords, which can be guessed; a secret has
//! 256 random bits, so it cannot be found from its digest however fast that is computed, and a slow hash
//! would only let unauthenticated clients keep the server busy.

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

use super::key_id::{KEY_ID_CHARS, KeyId};

/// Every key starts with this, so that people and secret scanners recognize one.
pub const KEY_PREFIX: &str = "ak_";

/// Length of a secret, in letters and digits: the fewest that hold 256 bits.
pub const SECRET_CHARS: usize = 43;

/// Length of a whole key: `ak_ID_SECRET`.
pub const KEY_CHARS: usize = KEY_PREFIX.len() + KEY_ID_CHARS + 1 + SECRET_CHARS;

/// How many ids are tried until one is free. There are two hundred thousand billion ids.
const ID_TRIES_MAX: usize = 32;

/// The SHA-256 of a whole key, id included. It has no `==`, so that two can only be compared in
/// constant time.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Digest([u8; 32]);

/// The text is not a digest. The error does not repeat it: a user may have pasted a secret there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 32 bytes in base64 (URL alphabet, no padding)")]
pub(crate) struct DigestError;

/// The system provides no randomness.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the system provides no randomness: {0}")]
pub(crate) struct RandomnessError(String);

/// Generates ids and secrets.
pub(crate) struct KeyGenerator(StdRng);

impl KeyGenerator {
    pub(crate) fn new() -> Result<Self, RandomnessError> {
        StdRng::try_from_rng(&mut SysRng)
            .map(Self)
            .map_err(|error| RandomnessError(error.to_string()))
    }

    /// A free id; `None` when no attempt found one.
    pub(crate) fn id(&mut self, is_taken: impl Fn(&KeyId) -> bool) -> Option<KeyId> {
        let id = || Alphanumeric.sample_string(&mut self.0, KEY_ID_CHARS).parse().ok();
        std::iter::repeat_with(id).take(ID_TRIES_MAX).flatten().find(|id| !is_taken(id))
    }

    /// A whole key with this id and a new secret.
    pub(crate) fn key(&mut self, id: KeyId) -> SecretString {
        // Allocated once: a string that grows leaves copies of the secret in freed memory.
        let mut key = String::with_capacity(KEY_CHARS);
        key.push_str(KEY_PREFIX);
        key.push_str(&String::from(id));
        key.push('_');
        Alphanumeric.append_string(&mut self.0, &mut key, SECRET_CHARS);
        SecretString::from(key)
    }
}

impl Digest {
    /// No known text has this digest: compared when there is no record, to take the same time.
    pub(crate) const NONE: Self = Self([0; 32]);

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
