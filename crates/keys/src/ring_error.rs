//! Errors of the key ring. Each says what to do; none contains a secret.

use std::path::Path;

use crate::file::LOCK_WAIT;
use crate::key::{KeyId, KeyStatus};
use crate::ring::{GRACE_MAX, KEYS_MAX};

/// Why the keys cannot be read or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyRingError {
    /// The file or its folder cannot be used.
    #[error("the key file `{path}` cannot be used: {reason}")]
    Unusable {
        /// Path of the file or folder.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is damaged. Repair it or move it away: it is never overwritten.
    #[error("the key file `{path}` is damaged: {reason}; repair the file or move it away")]
    Malformed {
        /// Path of the file.
        path: String,
        /// Where the text is wrong, and why.
        reason: String,
    },
    /// Other users can access it. Check its content, then remove their permissions.
    #[error(
        "other users can access `{path}` (mode {mode:04o}): check its content, then run \
         `chmod {wanted:o} {path}`"
    )]
    Exposed {
        /// Path of the file or folder.
        path: String,
        /// Its permission bits.
        mode: u32,
        /// The permission bits it should have.
        wanted: u32,
    },
    /// It belongs to another user.
    #[error("`{path}` belongs to user {owner}, not to user {user}: its keys are not used")]
    Foreign {
        /// Path of the file or folder.
        path: String,
        /// User id of its owner.
        owner: u32,
        /// User id of this process.
        user: u32,
    },
    /// Another process holds the lock.
    #[error("another process has locked `{path}` for {} s: try again", LOCK_WAIT.as_secs())]
    Busy {
        /// Path of the file.
        path: String,
    },
    /// The ring holds [`KEYS_MAX`] active keys.
    #[error("the limit of {KEYS_MAX} active keys is reached: revoke a key that is not needed")]
    Full,
    /// No key has this id.
    #[error("there is no key `{id}`: `antiphon keys list` shows all keys")]
    NoSuchKey {
        /// The unknown id.
        id: KeyId,
    },
    /// The key is expired or revoked.
    #[error("the key `{id}` is {}: create a new one", .status.as_str())]
    Inactive {
        /// Id of the key.
        id: KeyId,
        /// Whether it is expired or revoked.
        status: KeyStatus,
    },
    /// `expires_at` is not in the future.
    #[error("the expiry is not in the future: choose a later time")]
    ExpiresInThePast,
    /// The grace period is longer than [`GRACE_MAX`].
    #[error("the grace period is too long: {} days at most", GRACE_MAX.as_secs() / 86_400)]
    GraceTooLong,
    /// An agent's key cannot be `admin`.
    #[error("an agent's key is never `admin`: choose `write` or `read`")]
    AgentAdmin,
    /// A key of level `admin` decides about the work of all, and an agent's key sends to agents that all use.
    #[error(
        "scope `own` is for a person's key of level `read` or `write`: choose such a one, or scope `all`"
    )]
    OwnScope,
}

pub(crate) fn unusable(path: &Path) -> impl Fn(String) -> KeyRingError {
    let path = path.display().to_string();
    move |reason| KeyRingError::Unusable { path: path.clone(), reason }
}
