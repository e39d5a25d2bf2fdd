//! The ring: who may come in, and the changes to it.
//!
//! A check is made in memory, and at most once a second looks whether the file is another by now. A
//! file that cannot be read, or is exposed, lets nobody in until somebody sees to it; one that is gone
//! is a ring without keys. A change reads the file, writes it anew and is durable when it returns.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use antiphon_core::SpendLimits;
use antiphon_core::port::{Clock, SystemClock};
use chrono::{DateTime, TimeDelta, Utc};
use secrecy::{ExposeSecret, SecretString};

use crate::document::Document;
use crate::key::{Key, KeyStatus, NewKey};
use crate::key_id::KeyId;
use crate::lock::Lock;
use crate::place::{FILE_BYTES_MAX, Place};
use crate::presented::Presented;
use crate::record::{self, Record};
use crate::refused::{Allowed, Refused};
use crate::ring_error::{RingError, unusable};
use crate::secret::{Digest, Maker};
use crate::stamp::Sight;

/// Most keys in a ring. When there are as many, those out of use give way, oldest first.
pub const KEYS_MAX: usize = 10_000;

/// Longest time that an old secret works beside the new one.
pub const GRACE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long a change by another process may go unseen, by the ring's clock.
pub const LOOK_EVERY: Duration = Duration::from_micros(LOOK_EVERY_US.unsigned_abs());

const LOOK_EVERY_US: i64 = 1_000_000;

/// The keys of a project. Share it behind an `Arc`. Changes block on the file, checks hardly.
pub struct KeyRing {
    place: Place,
    clock: Arc<dyn Clock>,
    state: RwLock<Arc<State>>,
    /// Held by whoever replaces the state, so that an older one never replaces a newer one.
    replacing: Mutex<()>,
    /// When the file was last looked at, by the clock.
    looked_us: AtomicI64,
    /// The latest time that was seen.
    latest_us: AtomicI64,
}

/// What is known of the file.
#[derive(Debug)]
enum State {
    Read { document: Document, sight: Option<Sight> },
    Unread(RingError),
}

impl KeyRing {
    /// The keys in a file. There need not be one yet; one that cannot be used is an error.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RingError> {
        Self::open_at(path, Arc::new(SystemClock))
    }

    /// The same, by another clock. One that goes back revives nothing: what was seen expired stays so
    /// until the ring is opened again.
    pub fn open_at(path: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Result<Self, RingError> {
        let place = Place::new(path.into())?;
        let now_us = clock.now().timestamp_micros();
        let state = match read(&place) {
            State::Unread(error) => return Err(error),
            read @ State::Read { .. } => read,
        };
        Ok(Self {
            place,
            clock,
            state: RwLock::new(Arc::new(state)),
            replacing: Mutex::new(()),
            looked_us: AtomicI64::new(now_us),
            latest_us: AtomicI64::new(now_us),
        })
    }

    /// Whether somebody may come in. Tell a stranger nothing of a refusal but that it is one.
    pub fn check(&self, presented: &Presented) -> Result<Allowed, Refused> {
        self.look();
        match &*self.state() {
            State::Read { document, .. } => {
                let record = document.records.get(&presented.claimed_id());
                record::check(record, presented, self.now())
            }
            State::Unread(error) => Err(Refused::Unavailable { reason: error.to_string() }),
        }
    }

    /// What may be spent with a key, whatever became of it; anything where there is none, or where the
    /// file cannot be read.
    pub fn spend_of(&self, id: KeyId) -> SpendLimits {
        self.look();
        match &*self.state() {
            State::Read { document, .. } => {
                document.records.get(&id).map(|record| record.key.spend).unwrap_or_default()
            }
            State::Unread(_) => SpendLimits::default(),
        }
    }

    /// All keys as the file has them now, by age.
    pub fn list(&self) -> Result<Vec<Key>, RingError> {
        let replacing = self.replacing();
        self.look_again(&replacing);
        match &*self.state() {
            State::Read { document, .. } => {
                let mut keys: Vec<Key> =
                    document.records.values().map(|record| record.key.clone()).collect();
                keys.sort_by_key(|key| (key.created_at, key.id));
                Ok(keys)
            }
            State::Unread(error) => Err(error.clone()),
        }
    }

    /// Makes a key. The secret is the whole key, `ak_ID_SECRET`, and is told here only.
    pub fn create(&self, new: NewKey) -> Result<(Key, SecretString), RingError> {
        let now = self.now();
        if new.expires_at.is_some_and(|at| at <= now) {
            return Err(RingError::ExpiresInThePast);
        }
        if !new.holder.may_have(new.level) {
            return Err(RingError::AgentAdmin);
        }
        self.change(|document, maker| {
            if !document.make_room(now) {
                return Err(RingError::Full);
            }
            let taken = |id: &KeyId| document.records.contains_key(id);
            let id = maker.id(taken).ok_or_else(|| self.unusable("no id is free".to_owned()))?;
            let secret = maker.key(id);
            let key = Key {
                id,
                name: new.name,
                level: new.level,
                holder: new.holder,
                created_at: now,
                expires_at: new.expires_at,
                rotated_at: None,
                old_secret_until: None,
                revoked_at: None,
                rate_per_minute: new.rate_per_minute,
                spend: new.spend,
            };
            let sha256 = Digest::of(secret.expose_secret());
            document.records.insert(id, Record { key: key.clone(), sha256, old_sha256: None });
            Ok((key, secret))
        })
    }

    /// Gives a key a new secret; the old one works for `grace` longer. One that was old already is
    /// refused from now on: there are never more than two.
    pub fn rotate(&self, id: KeyId, grace: Duration) -> Result<(Key, SecretString), RingError> {
        if grace > GRACE_MAX {
            return Err(RingError::GraceTooLong);
        }
        let now = self.now();
        let until = TimeDelta::from_std(grace).ok().and_then(|grace| now.checked_add_signed(grace));
        let until = until.ok_or(RingError::GraceTooLong)?;
        self.change(|document, maker| {
            let record = document.records.get_mut(&id).ok_or(RingError::NoSuchKey { id })?;
            match record.key.status(now) {
                KeyStatus::Active => {}
                status @ (KeyStatus::Expired | KeyStatus::Revoked) => {
                    return Err(RingError::OutOfUse { id, status });
                }
            }
            let secret = maker.key(id);
            record.old_sha256 = (!grace.is_zero()).then_some(record.sha256);
            record.key.old_secret_until = (!grace.is_zero()).then_some(until);
            record.key.rotated_at = Some(now);
            record.sha256 = Digest::of(secret.expose_secret());
            Ok((record.key.clone(), secret))
        })
    }

    /// Takes a key back, for good. One that was revoked before stays as it is.
    pub fn revoke(&self, id: KeyId) -> Result<Key, RingError> {
        let now = self.now();
        self.change(|document, _| {
            let record = document.records.get_mut(&id).ok_or(RingError::NoSuchKey { id })?;
            record.key.revoked_at.get_or_insert(now);
            Ok(record.key.clone())
        })
    }

    /// Reads, changes and writes the file, alone.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Document, &mut Maker) -> Result<T, RingError>,
    ) -> Result<T, RingError> {
        let mut maker = Maker::new().map_err(|error| self.unusable(error.to_string()))?;
        let lock = Lock::take(&self.place)?;
        let (mut document, _) = understand(&self.place, lock.read()?)?;
        let changed = change(&mut document, &mut maker)?;
        let text = document.text().map_err(|error| self.unusable(error.to_string()))?;
        if text.len() > FILE_BYTES_MAX {
            return Err(RingError::Full);
        }
        let sight = lock.write(&text)?;
        // The file is still locked: nobody can have found a newer one. Checks did not have to wait.
        self.replace(State::Read { document, sight: Some(sight) }, &self.replacing());
        Ok(changed)
    }

    /// Looks at the file, if it is time. Whoever comes meanwhile waits for what is found.
    fn look(&self) {
        let now_us = self.clock.now().timestamp_micros();
        let is_time = || {
            let last_us = self.looked_us.load(Ordering::Acquire);
            // A clock that went back must not put the next look off.
            !(last_us..last_us.saturating_add(LOOK_EVERY_US)).contains(&now_us)
        };
        if is_time() {
            let replacing = self.replacing();
            if is_time() {
                self.look_again(&replacing);
                self.looked_us.store(now_us, Ordering::Release);
            }
        }
    }

    fn look_again(&self, replacing: &MutexGuard<'_, ()>) {
        let known = match &*self.state() {
            State::Read { sight, .. } => Ok(sight.as_ref().map(|sight| sight.stamp)),
            State::Unread(error) => Err(error.clone()),
        };
        // What could not be read may be readable by now.
        if known.is_err() || self.place.stamp() != known {
            self.replace(read(&self.place), replacing);
        }
    }

    fn replace(&self, state: State, _replacing: &MutexGuard<'_, ()>) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(state);
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replacing(&self) -> MutexGuard<'_, ()> {
        self.replacing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time, which does not go back in here.
    fn now(&self) -> DateTime<Utc> {
        let now = self.clock.now();
        let now_us = now.timestamp_micros();
        let latest_us = self.latest_us.fetch_max(now_us, Ordering::Relaxed).max(now_us);
        DateTime::from_timestamp_micros(latest_us).unwrap_or(now)
    }

    fn unusable(&self, reason: String) -> RingError {
        unusable(self.place.path())(reason)
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRing({})", self.place.path().display())
    }
}

fn read(place: &Place) -> State {
    match place.read().and_then(|found| understand(place, found)) {
        Ok((document, sight)) => State::Read { document, sight },
        Err(error) => State::Unread(error),
    }
}

fn understand(
    place: &Place,
    found: Option<(Sight, Vec<u8>)>,
) -> Result<(Document, Option<Sight>), RingError> {
    let Some((sight, text)) = found else { return Ok((Document::default(), None)) };
    let path = || place.path().display().to_string();
    let document =
        Document::parse(&text).map_err(|reason| RingError::Malformed { path: path(), reason })?;
    Ok((document, Some(sight)))
}
