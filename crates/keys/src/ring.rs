//! The key ring: checks keys and changes them.
//!
//! A check happens in memory; at most twice a second it also checks whether the file changed. While the
//! file cannot be read, or is exposed, every key is refused; a missing file is a ring without keys. A
//! change reads the file, replaces it, and is durable when it returns.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use antiphon_core::SpendLimits;
use antiphon_core::port::{Clock, SystemClock};
use chrono::{DateTime, TimeDelta, Utc};
use secrecy::{ExposeSecret, SecretString};

use crate::file::{Document, FILE_BYTES_MAX, FileLocation, Lock, OpenState, Record, record};
use crate::key::secret::{Digest, KeyGenerator};
use crate::key::{Key, KeyId, KeyStatus, Level, NewKey};
use crate::presented_key::PresentedKey;
use crate::refusal::{KeyGrant, KeyRefusal};
use crate::ring_error::{KeyRingError, unusable};

/// Most keys in a ring. At the limit, a new key replaces the oldest revoked or expired one.
pub const KEYS_MAX: usize = 10_000;

/// Longest grace period: how long an old secret works after a rotation.
pub const GRACE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long a change by another process may go unnoticed, by the ring's clock.
pub const RELOAD_EVERY: Duration = Duration::from_micros(RELOAD_EVERY_US.unsigned_abs());

const RELOAD_EVERY_US: i64 = 500_000;

/// The keys of a project. Share it behind an `Arc`. Changes block on file access; a check reads the
/// file at most once per [`RELOAD_EVERY`].
pub struct KeyRing {
    location: FileLocation,
    clock: Arc<dyn Clock>,
    state: RwLock<Arc<State>>,
    /// Held while the state is replaced, so that an older state never replaces a newer one.
    replacing: Mutex<()>,
    /// When the file was last checked for a change, by the clock.
    checked_us: AtomicI64,
    /// The latest time the clock has shown.
    latest_us: AtomicI64,
}

/// The content of the file, or why it cannot be read.
#[derive(Debug)]
enum State {
    Read { document: Document, state: Option<OpenState> },
    Unreadable(KeyRingError),
}

impl KeyRing {
    /// Opens the keys in a file. The file may not exist yet; a file that cannot be used is an error.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, KeyRingError> {
        Self::open_at(path, Arc::new(SystemClock))
    }

    /// Opens the keys with another clock. A clock that goes back revives nothing: a key that has expired
    /// stays expired until the ring is opened again.
    pub fn open_at(path: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Result<Self, KeyRingError> {
        let location = FileLocation::new(path.into())?;
        let now_us = clock.now().timestamp_micros();
        let state = match read(&location) {
            State::Unreadable(error) => return Err(error),
            read @ State::Read { .. } => read,
        };
        Ok(Self {
            location,
            clock,
            state: RwLock::new(Arc::new(state)),
            replacing: Mutex::new(()),
            checked_us: AtomicI64::new(now_us),
            latest_us: AtomicI64::new(now_us),
        })
    }

    /// Checks a key. Do not report the reason of a refusal to the client, only that it is refused.
    pub fn check(&self, presented: &PresentedKey) -> Result<KeyGrant, KeyRefusal> {
        self.reload_if_due();
        match &*self.state() {
            State::Read { document, .. } => {
                let record = document.records.get(&presented.claimed_id());
                record::check(record, presented, self.now())
            }
            State::Unreadable(error) => Err(KeyRefusal::Unavailable { reason: error.to_string() }),
        }
    }

    /// What a key allows now, for work that was accepted with it earlier and needs no secret any more. Authenticates
    /// no client: that is [`KeyRing::check`].
    pub fn grant_of(&self, id: KeyId) -> Result<KeyGrant, KeyRefusal> {
        self.reload_if_due();
        match &*self.state() {
            State::Read { document, .. } => record::grant(document.records.get(&id), self.now()),
            State::Unreadable(error) => Err(KeyRefusal::Unavailable { reason: error.to_string() }),
        }
    }

    /// The spend limits of a key, also if it is expired or revoked. Without limits when the key is
    /// unknown or the file cannot be read.
    pub fn spend_of(&self, id: KeyId) -> SpendLimits {
        self.reload_if_due();
        match &*self.state() {
            State::Read { document, .. } => {
                document.records.get(&id).map(|record| record.key.spend).unwrap_or_default()
            }
            State::Unreadable(_) => SpendLimits::default(),
        }
    }

    /// All keys as they are in the file now, oldest first.
    pub fn list(&self) -> Result<Vec<Key>, KeyRingError> {
        let replacing = self.replacing();
        self.reload(&replacing);
        match &*self.state() {
            State::Read { document, .. } => {
                let mut keys: Vec<Key> =
                    document.records.values().map(|record| record.key.clone()).collect();
                keys.sort_by_key(|key| (key.created_at, key.id));
                Ok(keys)
            }
            State::Unreadable(error) => Err(error.clone()),
        }
    }

    /// Creates a key. The secret is the whole key, `ak_ID_SECRET`, and is returned only here.
    pub fn create(&self, new: NewKey) -> Result<(Key, SecretString), KeyRingError> {
        let now = self.now();
        if new.expires_at.is_some_and(|at| at <= now) {
            return Err(KeyRingError::ExpiresInThePast);
        }
        if !new.holder.may_have(new.level) {
            return Err(KeyRingError::AgentAdmin);
        }
        if !new.scope.is_all() && (new.level == Level::Admin || !new.holder.is_person()) {
            return Err(KeyRingError::OwnScope);
        }
        self.change(|document, generator| {
            if !document.make_room(now) {
                return Err(KeyRingError::Full);
            }
            let is_taken = |id: &KeyId| document.records.contains_key(id);
            let id =
                generator.id(is_taken).ok_or_else(|| self.unusable("no id is free".to_owned()))?;
            let secret = generator.key(id);
            let key = Key {
                id,
                name: new.name,
                level: new.level,
                holder: new.holder,
                scope: new.scope,
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

    /// Gives a key a new secret; the old one works for `grace` longer. A secret from an earlier rotation
    /// is refused at once: a key never has more than two.
    pub fn rotate(&self, id: KeyId, grace: Duration) -> Result<(Key, SecretString), KeyRingError> {
        if grace > GRACE_MAX {
            return Err(KeyRingError::GraceTooLong);
        }
        let now = self.now();
        let until = TimeDelta::from_std(grace).ok().and_then(|grace| now.checked_add_signed(grace));
        let until = until.ok_or(KeyRingError::GraceTooLong)?;
        self.change(|document, generator| {
            let record = document.records.get_mut(&id).ok_or(KeyRingError::NoSuchKey { id })?;
            match record.key.status(now) {
                KeyStatus::Active => {}
                status @ (KeyStatus::Expired | KeyStatus::Revoked) => {
                    return Err(KeyRingError::Inactive { id, status });
                }
            }
            let secret = generator.key(id);
            record.old_sha256 = (!grace.is_zero()).then_some(record.sha256);
            record.key.old_secret_until = (!grace.is_zero()).then_some(until);
            record.key.rotated_at = Some(now);
            record.sha256 = Digest::of(secret.expose_secret());
            Ok((record.key.clone(), secret))
        })
    }

    /// Revokes a key. It cannot be allowed again. A key that is revoked already keeps its `revoked_at`.
    pub fn revoke(&self, id: KeyId) -> Result<Key, KeyRingError> {
        let now = self.now();
        self.change(|document, _| {
            let record = document.records.get_mut(&id).ok_or(KeyRingError::NoSuchKey { id })?;
            record.key.revoked_at.get_or_insert(now);
            Ok(record.key.clone())
        })
    }

    /// Reads, changes and replaces the file under the lock.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Document, &mut KeyGenerator) -> Result<T, KeyRingError>,
    ) -> Result<T, KeyRingError> {
        let mut generator =
            KeyGenerator::new().map_err(|error| self.unusable(error.to_string()))?;
        let lock = Lock::acquire(&self.location)?;
        let (mut document, _) = parse(&self.location, lock.read()?)?;
        let changed = change(&mut document, &mut generator)?;
        let text = document.text().map_err(|error| self.unusable(error.to_string()))?;
        if text.len() > FILE_BYTES_MAX {
            return Err(KeyRingError::Full);
        }
        let written = lock.write(&text)?;
        // The file is still locked, so no newer state can exist. Checks did not have to wait.
        self.replace(State::Read { document, state: Some(written) }, &self.replacing());
        Ok(changed)
    }

    /// Reads the file again if it is time and the file changed. Concurrent checks wait for the result.
    fn reload_if_due(&self) {
        let now_us = self.clock.now().timestamp_micros();
        let is_due = || {
            let last_us = self.checked_us.load(Ordering::Acquire);
            // A clock that went back must not delay the next reload.
            !(last_us..last_us.saturating_add(RELOAD_EVERY_US)).contains(&now_us)
        };
        if is_due() {
            let replacing = self.replacing();
            if is_due() {
                self.reload(&replacing);
                self.checked_us.store(now_us, Ordering::Release);
            }
        }
    }

    fn reload(&self, replacing: &MutexGuard<'_, ()>) {
        let known = match &*self.state() {
            State::Read { state, .. } => Ok(state.as_ref().map(|open| open.state)),
            State::Unreadable(error) => Err(error.clone()),
        };
        // A file that could not be read may be readable now.
        if known.is_err() || self.location.state() != known {
            self.replace(read(&self.location), replacing);
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

    /// The time. Never earlier than a time that this ring has seen.
    fn now(&self) -> DateTime<Utc> {
        let now = self.clock.now();
        let now_us = now.timestamp_micros();
        let latest_us = self.latest_us.fetch_max(now_us, Ordering::Relaxed).max(now_us);
        DateTime::from_timestamp_micros(latest_us).unwrap_or(now)
    }

    fn unusable(&self, reason: String) -> KeyRingError {
        unusable(self.location.path())(reason)
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyRing({})", self.location.path().display())
    }
}

fn read(location: &FileLocation) -> State {
    match location.read().and_then(|found| parse(location, found)) {
        Ok((document, state)) => State::Read { document, state },
        Err(error) => State::Unreadable(error),
    }
}

fn parse(
    location: &FileLocation,
    found: Option<(OpenState, Vec<u8>)>,
) -> Result<(Document, Option<OpenState>), KeyRingError> {
    let Some((state, text)) = found else { return Ok((Document::default(), None)) };
    let path = || location.path().display().to_string();
    let document = Document::parse(&text)
        .map_err(|reason| KeyRingError::Malformed { path: path(), reason })?;
    Ok((document, Some(state)))
}
