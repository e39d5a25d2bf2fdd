//! A key without its secret.

pub(crate) mod key_id;
pub(crate) mod key_name;
pub(crate) mod level;
pub(crate) mod scope;
pub(crate) mod secret;

use antiphon_core::{AgentName, SpendLimits};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use self::key_id::{KEY_ID_CHARS, KeyId, KeyIdError};
pub use self::key_name::KeyName;
pub use self::level::{Level, LevelError};
pub use self::scope::{KeyScope, KeyScopeError};
pub use self::secret::{KEY_CHARS, KEY_PREFIX, SECRET_CHARS};
use crate::rate::RateLimit;

/// A key without its secret: safe to print and to list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Rotating the secret keeps the id.
    pub id: KeyId,
    /// Name that its owner gave it. Need not be unique.
    pub name: KeyName,
    /// What a client with this key may do.
    pub level: Level,
    /// Whether a person or an agent holds it.
    #[serde(default, skip_serializing_if = "KeyHolder::is_person")]
    pub holder: KeyHolder,
    /// Whose work it sees.
    #[serde(default, skip_serializing_if = "KeyScope::is_all")]
    pub scope: KeyScope,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// From this time on it is refused; it never expires when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// Time of the last rotation; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at: Option<DateTime<Utc>>,
    /// From this time on the secret before the last rotation is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_secret_until: Option<DateTime<Utc>>,
    /// When it was revoked. A revoked key is refused at any time of the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<DateTime<Utc>>,
    /// Requests per minute; the server's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_minute: Option<RateLimit>,
    /// What clients with this key may spend.
    #[serde(default, skip_serializing_if = "SpendLimits::is_empty")]
    pub spend: SpendLimits,
}

/// Who holds a key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyHolder {
    /// A person, or a program that acts for one.
    #[default]
    Person,
    /// An agent. Its key may not decide what a person is asked, and is never `admin`.
    Agent(AgentName),
}

/// Whether a key is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyStatus {
    /// Accepted.
    Active,
    /// Refused: `expires_at` has passed.
    Expired,
    /// Refused: its owner revoked it.
    Revoked,
}

/// A key to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Name that its owner gave it. Need not be unique.
    pub name: KeyName,
    /// What a client with this key may do.
    pub level: Level,
    /// Whether a person or an agent holds it.
    pub holder: KeyHolder,
    /// Whose work it sees.
    pub scope: KeyScope,
    /// From this time on it is refused; it never expires when absent.
    pub expires_at: Option<DateTime<Utc>>,
    /// Requests per minute; the server's default when absent.
    pub rate_per_minute: Option<RateLimit>,
    /// What clients with this key may spend.
    pub spend: SpendLimits,
}

impl NewKey {
    /// A person's key that never expires and has no limits of its own.
    pub fn new(name: KeyName, level: Level) -> Self {
        Self {
            name,
            level,
            holder: KeyHolder::Person,
            scope: KeyScope::All,
            expires_at: None,
            rate_per_minute: None,
            spend: SpendLimits::default(),
        }
    }
}

impl Key {
    /// Whether the key is accepted at `now`.
    pub fn status(&self, now: DateTime<Utc>) -> KeyStatus {
        if self.revoked_at.is_some() {
            KeyStatus::Revoked
        } else if self.expires_at.is_some_and(|at| at <= now) {
            KeyStatus::Expired
        } else {
            KeyStatus::Active
        }
    }
}

impl KeyStatus {
    /// The word in lists and errors: `active`, `expired` or `revoked`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl KeyHolder {
    pub(crate) fn is_person(&self) -> bool {
        match self {
            Self::Person => true,
            Self::Agent(_) => false,
        }
    }

    /// Whether the holder may have a key of this level.
    pub(crate) fn may_have(&self, level: Level) -> bool {
        self.is_person() || level < Level::Admin
    }
}
