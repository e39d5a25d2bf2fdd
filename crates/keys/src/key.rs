//! A key, as it may be shown: everything about it but its secret.

use antiphon_core::{AgentName, SpendLimits};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::key_id::KeyId;
use crate::key_name::KeyName;
use crate::level::Level;
use crate::rate_limit::RateLimit;

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Stays the same when the secret is changed.
    pub id: KeyId,
    /// What its owner calls it.
    pub name: KeyName,
    /// How far it reaches.
    pub level: Level,
    /// Who has it.
    #[serde(default, skip_serializing_if = "Holder::is_person")]
    pub holder: Holder,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// From when on it is refused; never when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// When it last got a new secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at: Option<DateTime<Utc>>,
    /// From when on the secret before the last rotation is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_secret_until: Option<DateTime<Utc>>,
    /// When it was revoked. A key that has this is refused, whatever the time is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<DateTime<Utc>>,
    /// How often it may be used; as everybody when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_minute: Option<RateLimit>,
    /// What may be spent with it.
    #[serde(default, skip_serializing_if = "SpendLimits::is_empty")]
    pub spend: SpendLimits,
}

/// Who has a key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Holder {
    /// A person, or a program that acts for one.
    #[default]
    Person,
    /// An agent. Its key decides nothing that a person is asked, and is never `admin`.
    Agent(AgentName),
}

/// Whether a key is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyStatus {
    /// It is.
    Active,
    /// Its time is over.
    Expired,
    /// Somebody took it back.
    Revoked,
}

/// A key that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// What its owner calls it.
    pub name: KeyName,
    /// How far it reaches.
    pub level: Level,
    /// Who has it.
    pub holder: Holder,
    /// From when on it is refused; never when absent.
    pub expires_at: Option<DateTime<Utc>>,
    /// How often it may be used; as everybody when absent.
    pub rate_per_minute: Option<RateLimit>,
    /// What may be spent with it.
    pub spend: SpendLimits,
}

impl NewKey {
    /// A person's key without an end and without limits of its own.
    pub fn new(name: KeyName, level: Level) -> Self {
        Self {
            name,
            level,
            holder: Holder::Person,
            expires_at: None,
            rate_per_minute: None,
            spend: SpendLimits::default(),
        }
    }
}

impl Key {
    /// Whether it is of use at `now`.
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
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl Holder {
    pub(crate) fn is_person(&self) -> bool {
        match self {
            Self::Person => true,
            Self::Agent(_) => false,
        }
    }

    /// Whether a key of this level may be theirs.
    pub(crate) fn may_have(&self, level: Level) -> bool {
        self.is_person() || level < Level::Admin
    }
}
