//! A folder with a file of keys, and a clock that is set by hand.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon_core::port::Clock;
use antiphon_keys::{Allowed, KeyRing, Level, NewKey, Presented, Refused};
use chrono::{DateTime, TimeDelta, Utc};
use secrecy::{ExposeSecret, SecretString};
use tempfile::TempDir;

/// A clock that is set by hand.
pub(crate) struct Wall(Mutex<DateTime<Utc>>);

impl Clock for Wall {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock().unwrap()
    }
}

pub(crate) struct World {
    folder: TempDir,
    pub(crate) clock: Arc<Wall>,
}

pub(crate) fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

pub(crate) const START: &str = "2025-01-20T10:00:00Z";

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, clock: Arc::new(Wall(Mutex::new(time(START)))) }
    }

    /// The project's folder, which is not made yet.
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

    /// Also back.
    pub(crate) fn turn_clock(&self, seconds: i64) {
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

pub(crate) fn shown(secret: &SecretString) -> Presented {
    Presented::parse(secret.expose_secret()).unwrap()
}

pub(crate) fn check(ring: &KeyRing, secret: &SecretString) -> Result<Allowed, Refused> {
    ring.check(&shown(secret))
}

/// Just whether, and why not.
pub(crate) fn enters(ring: &KeyRing, secret: &SecretString) -> Result<(), Refused> {
    check(ring, secret).map(|_| ())
}

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
