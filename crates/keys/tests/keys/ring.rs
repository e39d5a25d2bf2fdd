//! Creating, listing, rotating and revoking keys.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::os::unix::fs::PermissionsExt;
use std::{fs, time::Duration};

use antiphon_keys::{
    GRACE_MAX, Key, KeyGrant, KeyHolder, KeyRefusal, KeyRingError, KeyScope, KeyStatus, Level,
    NewKey, RateLimit, SpendLimits,
};
use chrono::TimeDelta;
use secrecy::{ExposeSecret, SecretString};

use crate::world::{HOUR, START, World, accepts, check, new_key, presented, time};

fn full(world: &World) -> NewKey {
    NewKey {
        name: "nightly build".parse().unwrap(),
        level: Level::Write,
        holder: KeyHolder::Agent("reviewer".parse().unwrap()),
        scope: KeyScope::All,
        expires_at: Some(world.now() + TimeDelta::days(1)),
        rate_per_minute: Some(RateLimit::per_minute(60).unwrap()),
        spend: SpendLimits {
            daily_nano_usd_max: NonZeroU64::new(5_000_000_000),
            monthly_nano_usd_max: NonZeroU64::new(90_000_000_000),
        },
    }
}

#[test]
fn a_new_key_is_listed_with_all_its_fields_and_accepted() {
    let world = World::new();
    let ring = world.ring();
    let new = full(&world);
    let (key, secret) = ring.create(new.clone()).unwrap();
    let expected = Key {
        id: key.id,
        name: new.name.clone(),
        level: new.level,
        holder: new.holder.clone(),
        scope: new.scope,
        created_at: time(START),
        expires_at: new.expires_at,
        rotated_at: None,
        old_secret_until: None,
        revoked_at: None,
        rate_per_minute: new.rate_per_minute,
        spend: new.spend,
    };
    assert_eq!(key, expected);
    assert_eq!(ring.list(), Ok(vec![expected.clone()]));
    assert_eq!(world.ring().list(), Ok(vec![expected]), "and after a restart");
    let grant = KeyGrant {
        id: key.id,
        name: new.name,
        level: new.level,
        holder: new.holder,
        scope: new.scope,
        rate_per_minute: new.rate_per_minute,
        spend: new.spend,
    };
    assert_eq!(check(&ring, &secret), Ok(grant.clone()));
    assert_eq!(check(&world.ring(), &secret), Ok(grant));
}

#[test]
fn only_the_whole_secret_is_accepted() {
    let world = World::new();
    let ring = world.ring();
    let (key, secret) = ring.create(new_key("a", Level::Read)).unwrap();
    let (other, others) = ring.create(new_key("b", Level::Admin)).unwrap();
    let text = secret.expose_secret();
    for at in 12..text.len() {
        let mut wrong = text.to_owned().into_bytes();
        wrong[at] = if wrong[at] == b'x' { b'y' } else { b'x' };
        let wrong = SecretString::from(String::from_utf8(wrong).unwrap());
        assert_eq!(accepts(&ring, &wrong), Err(KeyRefusal::Unknown), "{at}");
    }
    let swapped = text.replace(&key.id.to_string(), &other.id.to_string());
    assert_eq!(accepts(&ring, &SecretString::from(swapped)), Err(KeyRefusal::Unknown));
    let absent = text.replace(&key.id.to_string(), "AAAAAAAA");
    assert_eq!(accepts(&ring, &SecretString::from(absent)), Err(KeyRefusal::Unknown));
    assert_eq!(check(&ring, &secret).unwrap().level, Level::Read);
    assert_eq!(check(&ring, &others).unwrap().level, Level::Admin);
}

#[test]
fn the_file_is_private_and_contains_no_secret() {
    let world = World::new();
    let ring = world.ring();
    let (key, secret) = ring.create(new_key("a", Level::Read)).unwrap();
    let (_, rotated) = ring.rotate(key.id, HOUR).unwrap();
    for secret in [&secret, &rotated] {
        let secret = &secret.expose_secret()[12..];
        assert!(!world.text().contains(secret));
    }
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(world.folder()), mode(world.path())), (0o700, 0o600));
    assert_eq!(world.names(), ["keys.json", "keys.json.lock"]);
    assert_eq!(world.text().lines().count(), 3, "one key on each line");
    assert_eq!(format!("{ring:?}"), format!("KeyRing({})", world.path().display()));
}

#[test]
fn secrets_and_ids_are_never_the_same() {
    let world = World::new();
    let ring = world.ring();
    let mut seen = BTreeSet::new();
    for _ in 0..20 {
        let (key, secret) = ring.create(new_key("a", Level::Read)).unwrap();
        let (_, rotated) = ring.rotate(key.id, Duration::ZERO).unwrap();
        assert_eq!(presented(&rotated).claimed_id(), key.id);
        assert!(seen.insert(key.id.to_string()));
        assert!(seen.insert(secret.expose_secret()[12..].to_owned()));
        assert!(seen.insert(rotated.expose_secret()[12..].to_owned()));
    }
}

#[test]
fn without_a_file_every_key_is_unknown_and_opening_creates_nothing() {
    let world = World::new();
    let ring = world.ring();
    assert_eq!(ring.list(), Ok(vec![]));
    let (_, secret) = World::new().ring().create(new_key("a", Level::Read)).unwrap();
    assert_eq!(accepts(&ring, &secret), Err(KeyRefusal::Unknown));
    assert!(!world.folder().exists());
}

#[test]
fn a_key_is_refused_from_the_moment_it_expires() {
    let world = World::new();
    let ring = world.ring();
    let expires_at = Some(world.now() + TimeDelta::seconds(60));
    let new = NewKey { expires_at, ..new_key("a", Level::Read) };
    let (key, secret) = ring.create(new).unwrap();
    world.advance_clock(59);
    assert_eq!(accepts(&ring, &secret), Ok(()));
    assert_eq!(key.status(world.now()), KeyStatus::Active);
    world.advance_clock(1);
    assert_eq!(accepts(&ring, &secret), Err(KeyRefusal::Expired));
    assert_eq!(key.status(world.now()), KeyStatus::Expired);
    let inactive = KeyRingError::Inactive { id: key.id, status: KeyStatus::Expired };
    assert_eq!(ring.rotate(key.id, HOUR).unwrap_err(), inactive);
    assert_eq!(inactive.to_string(), format!("the key `{}` is expired: create a new one", key.id));
}

#[test]
fn a_revoked_key_is_refused_for_good_and_keeps_the_time_of_the_first_revocation() {
    let world = World::new();
    let ring = world.ring();
    let (key, secret) = ring.create(new_key("a", Level::Admin)).unwrap();
    world.advance_clock(5);
    let revoked = ring.revoke(key.id).unwrap();
    assert_eq!(revoked, Key { revoked_at: Some(world.now()), ..key.clone() });
    world.advance_clock(5);
    assert_eq!(ring.revoke(key.id), Ok(revoked.clone()));
    assert_eq!(ring.list(), Ok(vec![revoked]));
    assert_eq!(accepts(&ring, &secret), Err(KeyRefusal::Revoked));
    assert_eq!(accepts(&world.ring(), &secret), Err(KeyRefusal::Revoked));
    let inactive = KeyRingError::Inactive { id: key.id, status: KeyStatus::Revoked };
    assert_eq!(ring.rotate(key.id, HOUR).unwrap_err(), inactive);
}

#[test]
fn an_old_secret_works_until_its_grace_is_over_and_the_key_stays_the_same() {
    let world = World::new();
    let ring = world.ring();
    let (key, first) = ring.create(full(&world)).unwrap();
    world.advance_clock(10);
    let (rotated, second) = ring.rotate(key.id, Duration::from_secs(60)).unwrap();
    let expected = Key {
        rotated_at: Some(time("2025-01-20T10:00:10Z")),
        old_secret_until: Some(time("2025-01-20T10:01:10Z")),
        ..key.clone()
    };
    assert_eq!(rotated, expected);
    assert_eq!(check(&ring, &first), check(&ring, &second));
    world.advance_clock(59);
    assert_eq!((accepts(&ring, &first), accepts(&ring, &second)), (Ok(()), Ok(())));
    world.advance_clock(1);
    assert_eq!(accepts(&ring, &first), Err(KeyRefusal::Expired));
    assert_eq!(accepts(&ring, &second), Ok(()));
}

#[test]
fn there_are_never_more_than_two_secrets_and_without_grace_one() {
    let world = World::new();
    let ring = world.ring();
    let (key, first) = ring.create(new_key("a", Level::Read)).unwrap();
    let (_, second) = ring.rotate(key.id, HOUR).unwrap();
    let (_, third) = ring.rotate(key.id, HOUR).unwrap();
    let all = |ring| [&first, &second, &third].map(|secret| accepts(ring, secret));
    assert_eq!(all(&ring), [Err(KeyRefusal::Unknown), Ok(()), Ok(())]);
    let (last, fourth) = ring.rotate(key.id, Duration::ZERO).unwrap();
    assert_eq!(last.old_secret_until, None);
    let unknown = || Err(KeyRefusal::Unknown);
    assert_eq!(all(&ring), [unknown(), unknown(), unknown()]);
    assert_eq!(accepts(&ring, &fourth), Ok(()));
    let (_, fifth) = ring.rotate(key.id, HOUR).unwrap();
    ring.revoke(key.id).unwrap();
    assert_eq!(accepts(&ring, &fourth), Err(KeyRefusal::Revoked), "in its grace");
    assert_eq!(accepts(&ring, &fifth), Err(KeyRefusal::Revoked));
}

#[test]
fn an_invalid_change_is_refused_with_advice_and_nothing_is_written() {
    let world = World::new();
    let ring = world.ring();
    let past = NewKey { expires_at: Some(world.now()), ..new_key("a", Level::Read) };
    assert_eq!(ring.create(past).unwrap_err(), KeyRingError::ExpiresInThePast);
    let agent = KeyHolder::Agent("reviewer".parse().unwrap());
    let admin = NewKey { holder: agent, ..new_key("a", Level::Admin) };
    assert_eq!(ring.create(admin).unwrap_err(), KeyRingError::AgentAdmin);
    let own = |new| NewKey { scope: KeyScope::Own, ..new };
    let agent = KeyHolder::Agent("reviewer".parse().unwrap());
    let agents = NewKey { holder: agent, ..new_key("a", Level::Write) };
    for new in [own(new_key("a", Level::Admin)), own(agents)] {
        assert_eq!(ring.create(new).unwrap_err(), KeyRingError::OwnScope);
    }
    assert!(!world.folder().exists());

    let (key, secret) = ring.create(new_key("a", Level::Read)).unwrap();
    let before = world.text();
    let long = GRACE_MAX + Duration::from_nanos(1);
    assert_eq!(ring.rotate(key.id, long).unwrap_err(), KeyRingError::GraceTooLong);
    let absent = "AAAAAAAA".parse().unwrap();
    let no_such_key = KeyRingError::NoSuchKey { id: absent };
    assert_eq!(ring.rotate(absent, HOUR).unwrap_err(), no_such_key);
    assert_eq!(ring.revoke(absent).unwrap_err(), no_such_key);
    assert_eq!(
        no_such_key.to_string(),
        "there is no key `AAAAAAAA`: `antiphon keys list` shows all keys"
    );
    assert_eq!(world.text(), before);
    assert_eq!(accepts(&ring, &secret), Ok(()));
    ring.rotate(key.id, GRACE_MAX).unwrap();
}

#[test]
fn an_agents_key_may_not_decide_what_a_person_is_asked() {
    let world = World::new();
    let ring = world.ring();
    let may_decide = |holder: KeyHolder, level| {
        let (_, secret) = ring.create(NewKey { holder, ..new_key("a", level) }).unwrap();
        let grant = check(&ring, &secret).unwrap();
        assert!(grant.may(level));
        Level::ALL.map(|needed| grant.may_decide(needed))
    };
    let agent = || KeyHolder::Agent("reviewer".parse().unwrap());
    assert_eq!(may_decide(agent(), Level::Write), [false; 3]);
    assert_eq!(may_decide(agent(), Level::Read), [false; 3]);
    assert_eq!(may_decide(KeyHolder::Person, Level::Write), [true, true, false]);
    assert_eq!(may_decide(KeyHolder::Person, Level::Admin), [true; 3]);
}
