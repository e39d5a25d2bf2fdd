//! What a check of a key says: who it is, or why not.

use antiphon_core::SpendLimits;

use crate::key::Holder;
use crate::key_id::KeyId;
use crate::key_name::KeyName;
use crate::level::Level;
use crate::rate_limit::RateLimit;

/// Who was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// The key.
    pub id: KeyId,
    /// What its owner calls it.
    pub name: KeyName,
    /// How far it reaches.
    pub level: Level,
    /// Who has it.
    pub holder: Holder,
    /// How often it may be used; as everybody when absent.
    pub rate_per_minute: Option<RateLimit>,
    /// What may be spent with it.
    pub spend: SpendLimits,
}

/// Why somebody was not let in. For the log: a stranger learns nothing but that the answer is no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such key, or its secret is another.
    #[error("no such key")]
    Unknown,
    /// The time of the key is over, or that of a secret that was rotated away.
    #[error("the key has expired")]
    Expired,
    /// Somebody took it back.
    #[error("the key was revoked")]
    Revoked,
    /// It does not have the form of a key.
    #[error("not `Bearer KEY` or `ApiKey KEY` with a key in it")]
    Malformed,
    /// See to the file of keys. Nobody is let in until it can be read: 503, not 401.
    #[error("{reason}")]
    Unavailable {
        /// What is wrong, and what to do.
        reason: String,
    },
}

impl Allowed {
    /// Whether it may do what needs that level.
    pub fn may(&self, needed: Level) -> bool {
        self.level.allows(needed)
    }

    /// Whether it may answer what a person is asked (approve, allow always, trust) where that needs
    /// this level. An agent's key never may.
    pub fn may_decide(&self, needed: Level) -> bool {
        self.holder.is_person() && self.may(needed)
    }
}
