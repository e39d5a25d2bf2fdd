//! Killed during a write: the old file or the new one remains, and every returned secret works.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use antiphon_keys::{Key, KeyRing, Level};
use secrecy::{ExposeSecret, SecretString};

use crate::world::{HOUR, World, accepts, new_key};

const FILE: &str = "KEYS_TEST_FILE";

/// Creates keys and prints each secret, until it is killed.
#[test]
#[ignore = "the child of the test below"]
fn the_child() {
    let Ok(file) = std::env::var(FILE) else { return };
    let ring = KeyRing::open(file).unwrap();
    for _ in 0..10_000 {
        let (key, _) = ring.create(new_key("a", Level::Write)).unwrap();
        let (_, secret) = ring.rotate(key.id, HOUR).unwrap();
        println!("secret {}", secret.expose_secret());
    }
}

#[test]
fn after_repeated_kills_the_file_is_complete_and_has_every_reported_key() {
    let world = World::new();
    let mut reported: Vec<SecretString> = Vec::new();
    for kill in 0..25 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::the_child", "--ignored", "--nocapture"])
            .env(FILE, world.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok).filter_map(|line| {
            line.strip_prefix("secret ").map(|secret| SecretString::from(secret.to_owned()))
        });
        reported.extend(lines.by_ref().take(1 + kill % 3));
        child.kill().unwrap();
        child.wait().unwrap();
        reported.extend(lines);
        let ring = KeyRing::open(world.path()).unwrap();
        for secret in &reported {
            assert_eq!(accepts(&ring, secret), Ok(()));
        }
        // Each kill may leave one more key that was created but not reported.
        let keys = ring.list().unwrap().len();
        assert!(
            (reported.len()..=reported.len() + kill + 1).contains(&keys),
            "{keys} of {}",
            reported.len()
        );
    }
    KeyRing::open(world.path()).unwrap().create(new_key("last", Level::Read)).unwrap();
    assert_eq!(world.names(), ["keys.json", "keys.json.lock"]);
}

#[test]
fn a_temporary_file_left_by_a_crash_is_never_read_and_removed_by_the_next_change() {
    let world = World::new();
    let ring = world.ring();
    let (key, secret) = ring.create(new_key("a", Level::Write)).unwrap();
    let temporary = world.folder().join("keys.json.new");
    let whole = world.text();
    for left in ["", &whole[..whole.len() / 2], &whole.replace("write", "admin")] {
        fs::write(&temporary, left).unwrap();
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o400)).unwrap();
        assert_eq!(world.ring().list(), Ok(vec![key.clone()]));
        assert_eq!(accepts(&world.ring(), &secret), Ok(()));
        let revoked = world.ring().revoke(key.id).unwrap();
        assert_eq!(revoked, Key { revoked_at: Some(world.now()), ..key.clone() });
        assert_eq!(world.names(), ["keys.json", "keys.json.lock"]);
        fs::write(world.path(), &whole).unwrap();
    }
}

#[test]
fn a_change_that_cannot_be_written_is_an_error_and_changes_nothing() {
    let world = World::new();
    let ring = world.ring();
    let (key, secret) = ring.create(new_key("a", Level::Write)).unwrap();
    let before = world.text();
    // A folder with the temporary name is not removed.
    fs::create_dir(world.folder().join("keys.json.new")).unwrap();
    ring.revoke(key.id).unwrap_err();
    ring.create(new_key("b", Level::Write)).unwrap_err();
    assert_eq!(world.text(), before);
    assert_eq!(ring.list(), Ok(vec![key.clone()]));
    assert_eq!(accepts(&ring, &secret), Ok(()));
    fs::remove_dir(world.folder().join("keys.json.new")).unwrap();
    ring.revoke(key.id).unwrap();
}
