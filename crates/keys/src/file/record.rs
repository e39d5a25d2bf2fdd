//! A key as it is stored: with the digests of its secrets.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use subtle::Choice;

use crate::key::secret::Digest;
use crate::key::{Key, KeyStatus};
use crate::presented_key::PresentedKey;
use crate::refusal::{KeyGrant, KeyRefusal};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    pub(crate) key: Key,
    /// Digest of the current secret.
    pub(crate) sha256: Digest,
    /// Digest of the secret before it, which is accepted until `old_secret_until`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) old_sha256: Option<Digest>,
}

/// Checks a presented key against a record. A missing record takes the same steps as an existing one,
/// and only a client that knows the secret learns that its key is expired or revoked.
pub(crate) fn check(
    record: Option<&Record>,
    presented: &PresentedKey,
    now: DateTime<Utc>,
) -> Result<KeyGrant, KeyRefusal> {
    let digest = presented.digest();
    let current = record.map_or(Digest::NONE, |record| record.sha256);
    let old = record.and_then(|record| record.old_sha256).unwrap_or(Digest::NONE);
    let (is_current, is_old): (Choice, Choice) = (digest.matches(&current), digest.matches(&old));
    let Some(record) = record.filter(|_| bool::from(is_current | is_old)) else {
        return Err(KeyRefusal::Unknown);
    };
    let key = &record.key;
    match key.status(now) {
        KeyStatus::Revoked => return Err(KeyRefusal::Revoked),
        KeyStatus::Expired => return Err(KeyRefusal::Expired),
        KeyStatus::Active => {}
    }
    let in_grace = key.old_secret_until.is_some_and(|until| now < until);
    if !bool::from(is_current) && !in_grace {
        return Err(KeyRefusal::Expired);
    }
    Ok(granted(key))
}

/// What a key allows that is not expired or revoked, without its secret.
pub(crate) fn grant(record: Option<&Record>, now: DateTime<Utc>) -> Result<KeyGrant, KeyRefusal> {
    let key = &record.ok_or(KeyRefusal::Unknown)?.key;
    match key.status(now) {
        KeyStatus::Revoked => Err(KeyRefusal::Revoked),
        KeyStatus::Expired => Err(KeyRefusal::Expired),
        KeyStatus::Active => Ok(granted(key)),
    }
}

fn granted(key: &Key) -> KeyGrant {
    KeyGrant {
        id: key.id,
        name: key.name.clone(),
        level: key.level,
        holder: key.holder.clone(),
        scope: key.scope,
        rate_per_minute: key.rate_per_minute,
        spend: key.spend,
    }
}
