//! Any sequence of operations matches a simple model.

use std::time::Duration;

use antiphon_keys::{Key, KeyGrant, KeyRefusal, KeyRing, KeyRingError, KeyStatus, Level, NewKey};
use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use secrecy::{ExposeSecret, SecretString};

use crate::world::{World, check, new_key};

#[derive(Debug, Clone)]
enum Step {
    Create {
        level: Level,
        lives_s: Option<i64>,
    },
    Rotate {
        which: Index,
        grace_s: u64,
    },
    Revoke {
        which: Index,
    },
    /// Checks every secret ever created, and one that was not.
    CheckAll,
    List,
    Wait {
        seconds: i64,
    },
    /// The process restarts.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let level = select(Level::ALL.to_vec());
    let lives_s = proptest::option::of(1..200_i64);
    prop_oneof![
        3 => (level, lives_s).prop_map(|(level, lives_s)| Step::Create { level, lives_s }),
        3 => (any::<Index>(), prop_oneof![Just(0_u64), 1..120_u64])
            .prop_map(|(which, grace_s)| Step::Rotate { which, grace_s }),
        1 => any::<Index>().prop_map(|which| Step::Revoke { which }),
        3 => Just(Step::CheckAll),
        1 => Just(Step::List),
        3 => (-50..120_i64).prop_map(|seconds| Step::Wait { seconds }),
        1 => Just(Step::Restart),
    ]
}

/// A key of the model with all its secrets, oldest first.
struct Modeled {
    key: Key,
    secrets: Vec<SecretString>,
}

impl Modeled {
    fn answer(&self, nth: usize, now: DateTime<Utc>) -> Result<KeyGrant, KeyRefusal> {
        let newest = self.secrets.len() - 1;
        let is_old = nth + 1 == newest && self.key.old_secret_until.is_some();
        if nth != newest && !is_old {
            return Err(KeyRefusal::Unknown);
        }
        match self.key.status(now) {
            KeyStatus::Revoked => return Err(KeyRefusal::Revoked),
            KeyStatus::Expired => return Err(KeyRefusal::Expired),
            KeyStatus::Active => {}
        }
        if is_old && self.key.old_secret_until.unwrap() <= now {
            return Err(KeyRefusal::Expired);
        }
        let key = self.key.clone();
        Ok(KeyGrant {
            id: key.id,
            name: key.name,
            level: key.level,
            holder: key.holder,
            scope: key.scope,
            rate_per_minute: key.rate_per_minute,
            spend: key.spend,
        })
    }
}

/// Two processes and their expected state. Each has its own latest time.
struct Model {
    world: World,
    rings: [KeyRing; 2],
    latest: [DateTime<Utc>; 2],
    keys: Vec<Modeled>,
}

impl Model {
    fn new() -> Self {
        let world = World::new();
        let rings = [world.ring(), world.ring()];
        let latest = [world.now(); 2];
        Self { world, rings, latest, keys: Vec::new() }
    }

    fn now(&mut self, process: usize) -> DateTime<Utc> {
        self.latest[process] = self.latest[process].max(self.world.now());
        self.latest[process]
    }

    fn take(&mut self, process: usize, step: Step) {
        match step {
            Step::Create { level, lives_s } => self.create(process, level, lives_s),
            Step::Rotate { which, grace_s } => self.rotate(process, which, grace_s),
            Step::Revoke { which } => self.revoke(process, which),
            Step::CheckAll => self.check_all(process),
            Step::List => self.list(process),
            Step::Wait { seconds } => self.world.advance_clock(seconds),
            Step::Restart => {
                self.rings[process] = self.world.ring();
                self.latest[process] = self.world.now();
            }
        }
    }

    fn create(&mut self, process: usize, level: Level, lives_s: Option<i64>) {
        let now = self.now(process);
        let expires_at = lives_s.map(|seconds| self.world.now() + TimeDelta::seconds(seconds));
        let made = self.rings[process].create(NewKey { expires_at, ..new_key("a", level) });
        if expires_at.is_some_and(|at| at <= now) {
            assert_eq!(made.unwrap_err(), KeyRingError::ExpiresInThePast);
            return;
        }
        let (key, secret) = made.unwrap();
        assert_eq!((key.created_at, key.level, key.expires_at), (now, level, expires_at));
        self.keys.push(Modeled { key, secrets: vec![secret] });
    }

    fn rotate(&mut self, process: usize, which: Index, grace_s: u64) {
        if self.keys.is_empty() {
            return;
        }
        let now = self.now(process);
        let modeled = which.index(self.keys.len());
        let modeled = &mut self.keys[modeled];
        let id = modeled.key.id;
        let rotated = self.rings[process].rotate(id, Duration::from_secs(grace_s));
        let status = modeled.key.status(now);
        if status != KeyStatus::Active {
            assert_eq!(rotated.unwrap_err(), KeyRingError::Inactive { id, status });
            return;
        }
        let (key, secret) = rotated.unwrap();
        let until = now + TimeDelta::from_std(Duration::from_secs(grace_s)).unwrap();
        modeled.key.rotated_at = Some(now);
        modeled.key.old_secret_until = (grace_s > 0).then_some(until);
        assert_eq!(key, modeled.key);
        modeled.secrets.push(secret);
    }

    fn revoke(&mut self, process: usize, which: Index) {
        if self.keys.is_empty() {
            return;
        }
        let now = self.now(process);
        let modeled = which.index(self.keys.len());
        let modeled = &mut self.keys[modeled];
        modeled.key.revoked_at.get_or_insert(now);
        assert_eq!(self.rings[process].revoke(modeled.key.id).unwrap(), modeled.key);
    }

    fn check_all(&mut self, process: usize) {
        if self.keys.is_empty() {
            return;
        }
        // So that it reloads the other's changes. A clock that went back may be, after one second, where
        // it was at the last reload; after two it is not.
        for _ in 0..2 {
            self.world.advance_clock(1);
            self.now(process);
            let _ = check(&self.rings[process], &self.keys[0].secrets[0]);
        }
        let now = self.now(process);
        let ring = &self.rings[process];
        for modeled in &self.keys {
            for (nth, secret) in modeled.secrets.iter().enumerate() {
                assert_eq!(check(ring, secret), modeled.answer(nth, now));
            }
            let (id, _) = modeled.secrets[0].expose_secret().split_at(12);
            let made_up = SecretString::from(format!("{id}{}", "x".repeat(43)));
            assert_eq!(check(ring, &made_up), Err(KeyRefusal::Unknown));
        }
    }

    fn list(&mut self, process: usize) {
        let mut expected: Vec<Key> = self.keys.iter().map(|it| it.key.clone()).collect();
        expected.sort_by_key(|key| (key.created_at, key.id));
        assert_eq!(self.rings[process].list(), Ok(expected));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_operations_by_two_processes_matches_the_model(
        steps in proptest::collection::vec((0..2_usize, step()), 1..40)
    ) {
        let mut model = Model::new();
        for (process, step) in steps {
            model.take(process, step);
        }
        for process in 0..2 {
            model.check_all(process);
            model.list(process);
        }
    }
}
