//! Why keys are not known, or not changed. Each says what to do; none holds a secret.

use std::path::Path;

use crate::key::KeyStatus;
use crate::key_id::KeyId;
use crate::lock::LOCK_WAIT;
use crate::ring::{GRACE_MAX, KEYS_MAX};

/// Why keys are not known, or not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// See to the file or its folder.
    #[error("keys in `{path}` cannot be used: {reason}")]
    Unusable {
        /// The file or folder.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// Correct the file, or move it away. It is never written over.
    #[error("keys in `{path}` are not understood: {reason}; correct the file or move it away")]
    Malformed {
        /// The file.
        path: String,
        /// Where and why.
        reason: String,
    },
    /// Make sure that it says what it should, then take the permission away.
    #[error(
        "others can get at `{path}` (mode {mode:04o}): look at what is in it, then run \
         `chmod {wanted:o} {path}`"
    )]
    Exposed {
        /// The file or folder.
        path: String,
        /// Its mode.
        mode: u32,
        /// The mode it should have.
        wanted: u32,
    },
    /// Use keys of your own.
    #[error("`{path}` belongs to user {owner}, not to user {user}: its keys are not used")]
    Foreign {
        /// The file or folder.
        path: String,
        /// Whose it is.
        owner: u32,
        /// Who asks.
        user: u32,
    },
    /// Try again.
    #[error("another process has held `{path}` for {} s: try again", LOCK_WAIT.as_secs())]
    Busy {
        /// The file.
        path: String,
    },
    /// Revoke some.
    #[error("there are {KEYS_MAX} keys in use: revoke one that nobody needs")]
    Full,
    /// Look at the list.
    #[error("there is no key `{id}`: `antiphon keys list` shows those there are")]
    NoSuchKey {
        /// The id.
        id: KeyId,
    },
    /// Make a new key.
    #[error("the key `{id}` is {}: make a new one", .status.as_str())]
    OutOfUse {
        /// The key.
        id: KeyId,
        /// Why.
        status: KeyStatus,
    },
    /// Choose a later time.
    #[error("the key would have expired already: choose a time to come")]
    ExpiresInThePast,
    /// Choose a shorter one.
    #[error("an old secret works for {} days at most", GRACE_MAX.as_secs() / 86_400)]
    GraceTooLong,
    /// Choose `write` or `read`.
    #[error("an agent's key is never `admin`: choose `write` or `read`")]
    AgentAdmin,
}

pub(crate) fn unusable(path: &Path) -> impl Fn(String) -> RingError {
    let path = path.display().to_string();
    move |reason| RingError::Unusable { path: path.clone(), reason }
}
