//! Any sequence of operations does what a model of a few lines does.

use std::time::Duration;

use antiphon_keys::{Allowed, Key, KeyRing, KeyStatus, Level, NewKey, Refused, RingError};
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
    /// Every secret there ever was, and one that never was.
    CheckAll,
    List,
    Wait {
        seconds: i64,
    },
    /// The process ends, and another begins.
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

/// A key of the model, and all its secrets, oldest first.
struct Modeled {
    key: Key,
    secrets: Vec<SecretString>,
}

impl Modeled {
    fn answer(&self, nth: usize, now: DateTime<Utc>) -> Result<Allowed, Refused> {
        let newest = self.secrets.len() - 1;
        let is_old = nth + 1 == newest && self.key.old_secret_until.is_some();
        if nth != newest && !is_old {
            return Err(Refused::Unknown);
        }
        match self.key.status(now) {
            KeyStatus::Revoked => return Err(Refused::Revoked),
            KeyStatus::Expired => return Err(Refused::Expired),
            KeyStatus::Active => {}
        }
        if is_old && self.key.old_secret_until.unwrap() <= now {
            return Err(Refused::Expired);
        }
        let key = self.key.clone();
        Ok(Allowed {
            id: key.id,
            name: key.name,
            level: key.level,
            holder: key.holder,
            rate_per_minute: key.rate_per_minute,
            spend: key.spend,
        })
    }
}

/// Two processes and what they should know. Each has seen its own latest time.
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

    fn now(&mut self, who: usize) -> DateTime<Utc> {
        self.latest[who] = self.latest[who].max(self.world.now());
        self.latest[who]
    }

    fn take(&mut self, who: usize, step: Step) {
        match step {
            Step::Create { level, lives_s } => self.create(who, level, lives_s),
            Step::Rotate { which, grace_s } => self.rotate(who, which, grace_s),
            Step::Revoke { which } => self.revoke(who, which),
            Step::CheckAll => self.check_all(who),
            Step::List => self.list(who),
            Step::Wait { seconds } => self.world.turn_clock(seconds),
            Step::Restart => {
                self.rings[who] = self.world.ring();
                self.latest[who] = self.world.now();
            }
        }
    }

    fn create(&mut self, who: usize, level: Level, lives_s: Option<i64>) {
        let now = self.now(who);
        let expires_at = lives_s.map(|seconds| self.world.now() + TimeDelta::seconds(seconds));
        let made = self.rings[who].create(NewKey { expires_at, ..new_key("a", level) });
        if expires_at.is_some_and(|at| at <= now) {
            assert_eq!(made.unwrap_err(), RingError::ExpiresInThePast);
            return;
        }
        let (key, secret) = made.unwrap();
        assert_eq!((key.created_at, key.level, key.expires_at), (now, level, expires_at));
        self.keys.push(Modeled { key, secrets: vec![secret] });
    }

    fn rotate(&mut self, who: usize, which: Index, grace_s: u64) {
        if self.keys.is_empty() {
            return;
        }
        let now = self.now(who);
        let modeled = which.index(self.keys.len());
        let modeled = &mut self.keys[modeled];
        let id = modeled.key.id;
        let rotated = self.rings[who].rotate(id, Duration::from_secs(grace_s));
        let status = modeled.key.status(now);
        if status != KeyStatus::Active {
            assert_eq!(rotated.unwrap_err(), RingError::OutOfUse { id, status });
            return;
        }
        let (key, secret) = rotated.unwrap();
        let until = now + TimeDelta::from_std(Duration::from_secs(grace_s)).unwrap();
        modeled.key.rotated_at = Some(now);
        modeled.key.old_secret_until = (grace_s > 0).then_some(until);
        assert_eq!(key, modeled.key);
        modeled.secrets.push(secret);
    }

    fn revoke(&mut self, who: usize, which: Index) {
        if self.keys.is_empty() {
            return;
        }
        let now = self.now(who);
        let modeled = which.index(self.keys.len());
        let modeled = &mut self.keys[modeled];
        modeled.key.revoked_at.get_or_insert(now);
        assert_eq!(self.rings[who].revoke(modeled.key.id).unwrap(), modeled.key);
    }

    fn check_all(&mut self, who: usize) {
        if self.keys.is_empty() {
            return;
        }
        // So that it has seen what the other did. A clock that went back may be, after one second, where
        // it was at the last look; after two it is not.
        for _ in 0..2 {
            self.world.turn_clock(1);
            self.now(who);
            let _ = check(&self.rings[who], &self.keys[0].secrets[0]);
        }
        let now = self.now(who);
        let ring = &self.rings[who];
        for modeled in &self.keys {
            for (nth, secret) in modeled.secrets.iter().enumerate() {
                assert_eq!(check(ring, secret), modeled.answer(nth, now));
            }
            let (id, _) = modeled.secrets[0].expose_secret().split_at(12);
            let made_up = SecretString::from(format!("{id}{}", "x".repeat(43)));
            assert_eq!(check(ring, &made_up), Err(Refused::Unknown));
        }
    }

    fn list(&mut self, who: usize) {
        let mut expected: Vec<Key> = self.keys.iter().map(|it| it.key.clone()).collect();
        expected.sort_by_key(|key| (key.created_at, key.id));
        assert_eq!(self.rings[who].list(), Ok(expected));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_operations_by_two_processes_does_what_the_model_does(
        steps in proptest::collection::vec((0..2_usize, step()), 1..40)
    ) {
        let mut model = Model::new();
        for (who, step) in steps {
            model.take(who, step);
        }
        for who in 0..2 {
            model.check_all(who);
            model.list(who);
        }
    }
}
