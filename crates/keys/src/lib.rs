//! API keys: who may come in, how far, and how often.
//!
//! A [`KeyRing`] is a file of keys, `.antiphon/keys.json`. It says who somebody is that shows a key; a
//! [`Limiter`] says whether they come too often, and [`SpendLimits`] what may be spent with it.
//! There is no HTTP in here and no command line: doors ask, and tell.
//!
//! A key is `ak_ID_SECRET`. The id is no secret: it stands in lists and logs, and stays when the secret
//! is changed. The whole key is shown once and kept as a SHA-256. When a key was last used is not kept:
//! a check never writes, so that the file changes only when a person changes it.
//!
//! | what goes wrong                          | what happens                                      |
//! |------------------------------------------|---------------------------------------------------|
//! | the id is unknown, or the secret wrong   | [`Refused::Unknown`], after the same steps         |
//! | the key is revoked beside a running server | refused within [`LOOK_EVERY`]                    |
//! | the file is gone                         | nobody has a key                                  |
//! | it is damaged, exposed, a link, or of another user | nobody is let in ([`Refused::Unavailable`]), nothing is written over; good again when it is |
//! | the process is killed while it writes    | the old file, or the new one                      |
//! | two processes change it at once          | one after the other; nothing is lost              |
//! | the clock goes back                      | what has expired stays expired, limits go on      |
//! | there are [`KEYS_MAX`] keys              | the oldest out of use gives way; else [`RingError::Full`] |
//!
//! Who owns the file is believed. That a file came with a clone can only be known by whoever knows the
//! folder: do not open one in a folder that nothing was done in yet.
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
//! let allowed = ring.check(&parse_authorization(header.as_bytes())?)?;
//! assert_eq!(allowed.id, key.id);
//! assert!(allowed.may(Level::Read) && !allowed.may(Level::Admin));
//!
//! ring.revoke(key.id)?;
//! assert!(ring.check(&parse_authorization(header.as_bytes())?).is_err());
//! # Ok(())
//! # }
//! ```

mod bucket;
mod document;
mod key;
mod key_id;
mod key_name;
mod level;
mod limiter;
mod lock;
mod place;
mod presented;
mod rate_limit;
mod record;
mod refused;
mod ring;
mod ring_error;
mod secret;
mod stamp;
mod verdict;

pub use antiphon_core::SpendLimits;
pub use key::{Holder, Key, KeyStatus, NewKey};
pub use key_id::{KEY_ID_CHARS, KeyId, KeyIdError};
pub use key_name::KeyName;
pub use level::{Level, LevelError};
pub use limiter::{BUCKETS_MAX, Limiter};
pub use lock::LOCK_WAIT;
pub use place::FILE_BYTES_MAX;
pub use presented::{AUTHORIZATION_BYTES_MAX, Presented, parse_authorization};
pub use rate_limit::{RATE_PER_MINUTE_MAX, RateLimit, RateLimitError};
pub use refused::{Allowed, Refused};
pub use ring::{GRACE_MAX, KEYS_MAX, KeyRing, LOOK_EVERY};
pub use ring_error::RingError;
pub use secret::{KEY_CHARS, KEY_PREFIX, SECRET_CHARS};
pub use verdict::Verdict;
