//! The result of checking a key: what it grants, or why it is refused.

use antiphon_core::SpendLimits;

use crate::key::KeyHolder;
use crate::key::key_id::KeyId;
use crate::key::key_name::KeyName;
use crate::key::level::Level;
use crate::key::scope::KeyScope;
use crate::rate::RateLimit;

/// What an accepted key allows its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyGrant {
    /// Id of the accepted key.
    pub id: KeyId,
    /// Name that its owner gave it.
    pub name: KeyName,
    /// What the client may do.
    pub level: Level,
    /// Whether a person or an agent holds the key.
    pub holder: KeyHolder,
    /// Whose work the client sees.
    pub scope: KeyScope,
    /// Requests per minute; the server's default when absent.
    pub rate_per_minute: Option<RateLimit>,
    /// What the client may spend.
    pub spend: SpendLimits,
}

/// Why a key is refused. For the log: a client learns only that it is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyRefusal {
    /// No key has this id, or the secret is wrong.
    #[error("no such key")]
    Unknown,
    /// The key has expired, or the secret was rotated and its grace period is over.
    #[error("the key has expired")]
    Expired,
    /// The owner revoked the key.
    #[error("the key was revoked")]
    Revoked,
    /// The text does not have the form of a key.
    #[error("not `Bearer KEY` or `ApiKey KEY` with a key in it")]
    Malformed,
    /// The key file cannot be read, so every key is refused: 503, not 401.
    #[error("{reason}")]
    Unavailable {
        /// What is wrong with the file, and what to do.
        reason: String,
    },
}

impl KeyGrant {
    /// Whether the client may do what requires `needed`.
    pub fn may(&self, needed: Level) -> bool {
        self.level.allows(needed)
    }

    /// Whether the grant still allows all that `earlier`, a grant of the same key, allowed. The key may have
    /// been changed in between.
    pub fn covers(&self, earlier: &Self) -> bool {
        self.id == earlier.id
            && self.holder == earlier.holder
            && self.scope.covers(earlier.scope)
            && self.level.allows(earlier.level)
    }

    /// Whether the client may decide what a person is asked (approve, allow always, trust) where that
    /// requires `needed`. A key of an agent, and one that sees only its own work, never may.
    pub fn may_decide(&self, needed: Level) -> bool {
        self.holder.is_person() && self.scope.is_all() && self.may(needed)
    }
}
