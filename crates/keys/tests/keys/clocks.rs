//! A clock that goes back.

use std::time::Duration;

use antiphon_keys::{Level, NewKey, Refused};
use chrono::TimeDelta;

use crate::world::{World, enters, new_key};

const YEAR_S: i64 = 365 * 24 * 3600;

#[test]
fn what_was_seen_expired_stays_expired_until_the_ring_is_opened_again() {
    let world = World::new();
    let ring = world.ring();
    let expires_at = Some(world.now() + TimeDelta::seconds(60));
    let (_, short) = ring.create(NewKey { expires_at, ..new_key("a", Level::Read) }).unwrap();
    let (key, old) = ring.create(new_key("b", Level::Read)).unwrap();
    let (_, new) = ring.rotate(key.id, Duration::from_secs(60)).unwrap();
    world.turn_clock(60);
    assert_eq!(enters(&ring, &short), Err(Refused::Expired));
    world.turn_clock(-YEAR_S);
    assert_eq!(enters(&ring, &short), Err(Refused::Expired));
    assert_eq!(enters(&ring, &old), Err(Refused::Expired));
    assert_eq!(enters(&ring, &new), Ok(()));
    // Nobody can tell by then.
    assert_eq!(enters(&world.ring(), &short), Ok(()));
}

#[test]
fn keys_are_made_and_revoked_and_seen_to_be_whatever_the_clock_does() {
    let world = World::new();
    let (ring, server) = (world.ring(), world.ring());
    for seconds in [-1, -YEAR_S, 1, 3 * YEAR_S, -3 * YEAR_S, 0] {
        world.turn_clock(seconds);
        let (key, secret) = ring.create(new_key("a", Level::Write)).unwrap();
        world.turn_clock(-2);
        assert_eq!(enters(&server, &secret), Ok(()), "{seconds}");
        ring.revoke(key.id).unwrap();
        assert_eq!(enters(&ring, &secret), Err(Refused::Revoked));
        // A step back, too, is reason enough to look.
        world.turn_clock(-1);
        assert_eq!(enters(&server, &secret), Err(Refused::Revoked), "{seconds}");
    }
}
