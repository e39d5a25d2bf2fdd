//! API keys: authentication, permission level and rate limits of clients.
//!
//! A [`KeyRing`] is a key file, `keys.json` in a state folder. It checks the key that a client presents; a
//! [`Limiter`] counts its requests, and [`SpendLimits`] bound what it may spend. This crate has no HTTP
//! and no command line: interfaces call it.
//!
//! A key is `ak_ID_SECRET`. The id is public: lists and logs show it, and rotating the secret keeps
//! it. The whole key is shown once and stored as a SHA-256. The file does not record when a key was last
//! used: a check never writes, so the file changes only when a person changes it.
//!
//! | failure                                  | result                                            |
//! |------------------------------------------|---------------------------------------------------|
//! | the id is unknown, or the secret wrong   | [`KeyRefusal::Unknown`], in the same time           |
//! | another process revokes the key          | refused within [`RELOAD_EVERY`]                   |
//! | the file is gone                         | every key is unknown                              |
//! | it is damaged, exposed, a link, or of another user | every key is refused ([`KeyRefusal::Unavailable`]) until the file is repaired; it is never overwritten |
//! | the process is killed while it writes    | the file is the old one or the new one            |
//! | two processes change it at once          | the changes happen one after the other            |
//! | the clock goes back                      | an expired key stays expired, limits still apply  |
//! | there are [`KEYS_MAX`] keys              | the oldest revoked or expired key is removed; else [`KeyRingError::Full`] |
//!
//! A private file of this user is trusted. Whether it came with a cloned project is for the caller to
//! know: do not open a key file in a folder that Antiphon has not used yet.
//!
//! ```
//! use antiphon_keys::{KeyRing, Level, NewKey, parse_authorization};
//! use secrecy::ExposeSecret;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let project = tempfile::tempdir()?;
//! let ring = KeyRing::open(project.path().join("keys.json"))?;
//! let (key, secret) = ring.create(NewKey::new("laptop".parse()?, Level::Write))?;
//!
//! let header = format!("Bearer {}", secret.expose_secret());
//! let grant = ring.check(&parse_authorization(header.as_bytes())?)?;
//! assert_eq!(grant.id, key.id);
//! assert!(grant.may(Level::Read) && !grant.may(Level::Admin));
//!
//! ring.revoke(key.id)?;
//! assert!(ring.check(&parse_authorization(header.as_bytes())?).is_err());
//! # Ok(())
//! # }
//! ```

mod file;
mod key;
mod presented_key;
mod rate;
mod refusal;
mod ring;
mod ring_error;

pub use antiphon_core::SpendLimits;
pub use file::{FILE_BYTES_MAX, LOCK_WAIT};
pub use key::{
    KEY_CHARS, KEY_ID_CHARS, KEY_PREFIX, Key, KeyHolder, KeyId, KeyIdError, KeyName, KeyScope,
    KeyScopeError, KeyStatus, Level, LevelError, NewKey, SECRET_CHARS,
};
pub use presented_key::{AUTHORIZATION_BYTES_MAX, PresentedKey, parse_authorization};
pub use rate::{
    BUCKETS_MAX, Limiter, Peer, RATE_PER_MINUTE_MAX, RateDecision, RateLimit, RateLimitError,
    WrongKeys,
};
pub use refusal::{KeyGrant, KeyRefusal};
pub use ring::{GRACE_MAX, KEYS_MAX, KeyRing, RELOAD_EVERY};
pub use ring_error::KeyRingError;
