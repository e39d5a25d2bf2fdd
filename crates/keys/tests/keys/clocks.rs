//! A clock that goes back.

use std::time::Duration;

use antiphon_keys::{KeyRefusal, Level, NewKey};
use chrono::TimeDelta;

use crate::world::{World, accepts, new_key};

const YEAR_S: i64 = 365 * 24 * 3600;

#[test]
fn an_expired_key_stays_expired_until_the_ring_is_opened_again() {
    let world = World::new();
    let ring = world.ring();
    let expires_at = Some(world.now() + TimeDelta::seconds(60));
    let (_, short) = ring.create(NewKey { expires_at, ..new_key("a", Level::Read) }).unwrap();
    let (key, old) = ring.create(new_key("b", Level::Read)).unwrap();
    let (_, new) = ring.rotate(key.id, Duration::from_secs(60)).unwrap();
    world.advance_clock(60);
    assert_eq!(accepts(&ring, &short), Err(KeyRefusal::Expired));
    world.advance_clock(-YEAR_S);
    assert_eq!(accepts(&ring, &short), Err(KeyRefusal::Expired));
    assert_eq!(accepts(&ring, &old), Err(KeyRefusal::Expired));
    assert_eq!(accepts(&ring, &new), Ok(()));
    // A new ring knows only the current time.
    assert_eq!(accepts(&world.ring(), &short), Ok(()));
}

#[test]
fn keys_are_created_and_revoked_at_any_clock() {
    let world = World::new();
    let (ring, server) = (world.ring(), world.ring());
    for seconds in [-1, -YEAR_S, 1, 3 * YEAR_S, -3 * YEAR_S, 0] {
        world.advance_clock(seconds);
        let (key, secret) = ring.create(new_key("a", Level::Write)).unwrap();
        world.advance_clock(-2);
        assert_eq!(accepts(&server, &secret), Ok(()), "{seconds}");
        ring.revoke(key.id).unwrap();
        assert_eq!(accepts(&ring, &secret), Err(KeyRefusal::Revoked));
        // A step back also triggers a reload.
        world.advance_clock(-1);
        assert_eq!(accepts(&server, &secret), Err(KeyRefusal::Revoked), "{seconds}");
    }
}
