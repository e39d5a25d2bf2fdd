//! The largest number of keys.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::time::Instant;

use antiphon_keys::{FILE_BYTES_MAX, KEYS_MAX, KeyRefusal, KeyRingError, Level};
use secrecy::{ExposeSecret, SecretString};

use crate::world::{World, accepts, new_key};

/// Writes a file with this many keys of the largest size. Returns the secret of the last.
fn many(world: &World, keys: usize) -> SecretString {
    let one = World::new();
    let (key, secret) = one.ring().create(new_key("a", Level::Write)).unwrap();
    let text = one.text();
    let line = text.lines().nth(1).unwrap();
    let digest = line.split_once("\"sha256\":\"").unwrap().1[..43].to_owned();
    let wide = format!(
        "\"name\":\"{}\",\"holder\":{{\"agent\":\"{}\"}},\"expires_at\":\"9999-12-31T23:59:59.999999Z\",\
         \"rotated_at\":\"2025-01-20T10:00:00.123456Z\",\"old_secret_until\":\"2025-01-20T10:00:00.123456Z\",\
         \"rate_per_minute\":1000000,\"spend\":{{\"daily_nano_usd_max\":18446744073709551615,\
         \"monthly_nano_usd_max\":18446744073709551615}}",
        "n".repeat(64),
        "h".repeat(64)
    );
    let line = line.replace("\"name\":\"a\"", &wide);
    let line = line.replace("\"sha256\":", &format!("\"old_sha256\":\"{digest}\",\"sha256\":"));
    let mut text = "{\"version\":1,\"keys\":[".to_owned();
    for nth in 1..keys {
        write!(text, "\n{},", line.replace(&key.id.to_string(), &format!("{nth:08}"))).unwrap();
    }
    write!(text, "\n{line}\n]}}\n").unwrap();
    fs::DirBuilder::new().mode(0o700).create(world.folder()).unwrap();
    fs::write(world.path(), text).unwrap();
    fs::set_permissions(world.path(), fs::Permissions::from_mode(0o600)).unwrap();
    secret
}

#[test]
fn the_largest_number_of_keys_fits_into_the_file_and_checks_stay_fast() {
    let world = World::new();
    let secret = many(&world, KEYS_MAX);
    let ring = world.ring();
    assert_eq!(ring.list().unwrap().len(), KEYS_MAX);
    let unknown = SecretString::from(format!("ak_unknownA{}", &secret.expose_secret()[11..]));
    let began = Instant::now();
    for _ in 0..1000 {
        assert_eq!(accepts(&ring, &secret), Ok(()));
        assert_eq!(accepts(&ring, &unknown), Err(KeyRefusal::Unknown));
    }
    assert!(began.elapsed().as_millis() < 1000, "{:?}", began.elapsed());

    // The whole file is rewritten, with one key revoked.
    ring.revoke("00000001".parse().unwrap()).unwrap();
    let bytes = world.text().len();
    assert!(bytes > FILE_BYTES_MAX / 2 && bytes < FILE_BYTES_MAX, "{bytes}");
    assert_eq!(world.ring().list().unwrap().len(), KEYS_MAX);
    assert_eq!(accepts(&world.ring(), &secret), Ok(()));
}

#[test]
fn at_the_limit_a_new_key_replaces_the_oldest_inactive_one_and_never_an_active_one() {
    let world = World::new();
    let secret = many(&world, KEYS_MAX);
    let ring = world.ring();
    let before = world.text();
    assert_eq!(ring.create(new_key("b", Level::Read)).unwrap_err(), KeyRingError::Full);
    assert_eq!(world.text(), before);

    let revoked = ["00000007", "00000009"].map(|id| id.parse().unwrap());
    for id in revoked {
        ring.revoke(id).unwrap();
    }
    let (_, new) = ring.create(new_key("b", Level::Read)).unwrap();
    assert_eq!((accepts(&ring, &new), accepts(&ring, &secret)), (Ok(()), Ok(())));
    let remaining = || {
        let keys = ring.list().unwrap();
        assert_eq!(keys.len(), KEYS_MAX);
        revoked.map(|id| keys.iter().any(|key| key.id == id))
    };
    assert_eq!(remaining(), [false, true]);
    ring.create(new_key("c", Level::Read)).unwrap();
    assert_eq!(remaining(), [false, false]);
    assert_eq!(ring.create(new_key("d", Level::Read)).unwrap_err(), KeyRingError::Full);
}

#[test]
fn a_file_with_too_many_keys_is_an_error() {
    let world = World::new();
    many(&world, KEYS_MAX + 1);
    let error = antiphon_keys::KeyRing::open(world.path()).unwrap_err();
    assert!(error.to_string().contains("it has more than 10000 keys"), "{error}");
}
