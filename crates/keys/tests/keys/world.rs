//! A folder with a key file, and a manual clock.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon_core::port::Clock;
use antiphon_keys::{KeyGrant, KeyRefusal, KeyRing, Level, NewKey, PresentedKey};
use chrono::{DateTime, TimeDelta, Utc};
use secrecy::{ExposeSecret, SecretString};
use tempfile::TempDir;

/// A clock that tests set.
pub(crate) struct ManualClock(Mutex<DateTime<Utc>>);

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock().unwrap()
    }
}

pub(crate) struct World {
    folder: TempDir,
    pub(crate) clock: Arc<ManualClock>,
}

pub(crate) fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

pub(crate) const START: &str = "2025-01-20T10:00:00Z";

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, clock: Arc::new(ManualClock(Mutex::new(time(START)))) }
    }

    /// The project's folder, which does not exist yet.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().join(".antiphon")
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder().join("keys.json")
    }

    pub(crate) fn ring(&self) -> KeyRing {
        KeyRing::open_at(self.path(), self.clock.clone()).unwrap()
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// A negative number moves the clock back.
    pub(crate) fn advance_clock(&self, seconds: i64) {
        *self.clock.0.lock().unwrap() += TimeDelta::seconds(seconds);
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

pub(crate) fn new_key(name: &str, level: Level) -> NewKey {
    NewKey::new(name.parse().unwrap(), level)
}

pub(crate) fn presented(secret: &SecretString) -> PresentedKey {
    PresentedKey::parse(secret.expose_secret()).unwrap()
}

pub(crate) fn check(ring: &KeyRing, secret: &SecretString) -> Result<KeyGrant, KeyRefusal> {
    ring.check(&presented(secret))
}

/// Whether the key is accepted, without the grant.
pub(crate) fn accepts(ring: &KeyRing, secret: &SecretString) -> Result<(), KeyRefusal> {
    check(ring, secret).map(|_| ())
}

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
