//! Killed while it writes: the old file or the new one, and what was told is kept.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use antiphon_keys::{Key, KeyRing, Level};
use secrecy::{ExposeSecret, SecretString};

use crate::world::{HOUR, World, enters, new_key};

const FILE: &str = "KEYS_TEST_FILE";

/// What a child does: it makes keys, and tells of each, until it is killed.
#[test]
#[ignore = "the child of the test below"]
fn the_child() {
    let Ok(file) = std::env::var(FILE) else { return };
    let ring = KeyRing::open(file).unwrap();
    for _ in 0..10_000 {
        let (key, _) = ring.create(new_key("a", Level::Write)).unwrap();
        let (_, secret) = ring.rotate(key.id, HOUR).unwrap();
        println!("told {}", secret.expose_secret());
    }
}

#[test]
fn killed_again_and_again_the_file_is_whole_and_has_all_that_was_told() {
    let world = World::new();
    let mut told: Vec<SecretString> = Vec::new();
    for kill in 0..25 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::the_child", "--ignored", "--nocapture"])
            .env(FILE, world.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok).filter_map(|line| {
            line.strip_prefix("told ").map(|secret| SecretString::from(secret.to_owned()))
        });
        told.extend(lines.by_ref().take(1 + kill % 3));
        child.kill().unwrap();
        child.wait().unwrap();
        told.extend(lines);
        let ring = KeyRing::open(world.path()).unwrap();
        for secret in &told {
            assert_eq!(enters(&ring, secret), Ok(()));
        }
        // One more may have been made that nobody was told of, for each kill.
        let keys = ring.list().unwrap().len();
        assert!((told.len()..=told.len() + kill + 1).contains(&keys), "{keys} of {}", told.len());
    }
    KeyRing::open(world.path()).unwrap().create(new_key("last", Level::Read)).unwrap();
    assert_eq!(world.names(), ["keys.json", "keys.json.lock"]);
}

#[test]
fn what_a_crash_left_beside_the_file_is_never_read_and_taken_away_by_the_next_change() {
    let world = World::new();
    let ring = world.ring();
    let (key, secret) = ring.create(new_key("a", Level::Write)).unwrap();
    let beside = world.folder().join("keys.json.new");
    let whole = world.text();
    for left in ["", &whole[..whole.len() / 2], &whole.replace("write", "admin")] {
        fs::write(&beside, left).unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o400)).unwrap();
        assert_eq!(world.ring().list(), Ok(vec![key.clone()]));
        assert_eq!(enters(&world.ring(), &secret), Ok(()));
        let revoked = world.ring().revoke(key.id).unwrap();
        assert_eq!(revoked, Key { revoked_at: Some(world.now()), ..key.clone() });
        assert_eq!(world.names(), ["keys.json", "keys.json.lock"]);
        fs::write(world.path(), &whole).unwrap();
    }
}

#[test]
fn a_change_that_cannot_be_written_is_an_error_and_all_stays_as_it_was() {
    let world = World::new();
    let ring = world.ring();
    let (key, secret) = ring.create(new_key("a", Level::Write)).unwrap();
    let before = world.text();
    // A folder in the way is not taken away.
    fs::create_dir(world.folder().join("keys.json.new")).unwrap();
    ring.revoke(key.id).unwrap_err();
    ring.create(new_key("b", Level::Write)).unwrap_err();
    assert_eq!(world.text(), before);
    assert_eq!(ring.list(), Ok(vec![key.clone()]));
    assert_eq!(enters(&ring, &secret), Ok(()));
    fs::remove_dir(world.folder().join("keys.json.new")).unwrap();
    ring.revoke(key.id).unwrap();
}
