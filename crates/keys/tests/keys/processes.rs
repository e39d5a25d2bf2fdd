//! Several processes: each sees the others' changes within a second, and none is lost.

use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use antiphon_keys::{KeyRefusal, KeyRing, KeyStatus, Level, RELOAD_EVERY};
use chrono::Utc;

use crate::world::{World, accepts, new_key};

const FILE: &str = "KEYS_TEST_FILE";
const NAME: &str = "KEYS_TEST_NAME";

#[test]
fn another_process_s_change_applies_within_a_second_and_not_every_check_reads_the_file() {
    let world = World::new();
    let (server, other) = (world.ring(), world.ring());
    let (key, secret) = other.create(new_key("a", Level::Write)).unwrap();
    assert_eq!(
        accepts(&server, &secret),
        Err(KeyRefusal::Unknown),
        "the file was checked just now"
    );
    assert_eq!(RELOAD_EVERY, Duration::from_millis(500));
    world.advance_clock(1);
    assert_eq!(accepts(&server, &secret), Ok(()));
    other.revoke(key.id).unwrap();
    assert_eq!(
        accepts(&other, &secret),
        Err(KeyRefusal::Revoked),
        "at once in the process that revokes"
    );
    assert_eq!(accepts(&server, &secret), Ok(()));
    world.advance_clock(1);
    assert_eq!(accepts(&server, &secret), Err(KeyRefusal::Revoked));
}

#[test]
fn a_list_and_a_change_see_other_processes_changes_at_once() {
    let world = World::new();
    let (one, two) = (world.ring(), world.ring());
    let (first, _) = one.create(new_key("a", Level::Write)).unwrap();
    world.advance_clock(1);
    let (second, _) = two.create(new_key("b", Level::Read)).unwrap();
    assert_eq!(one.list(), Ok(vec![first.clone(), second.clone()]));
    assert_eq!(two.list(), one.list());
    assert_eq!(one.revoke(second.id).unwrap().name, second.name);
}

#[test]
fn files_that_replace_each_other_quickly_are_distinguished() {
    let world = World::new();
    let (server, other) = (world.ring(), world.ring());
    let (key, _) = other.create(new_key("a", Level::Write)).unwrap();
    for round in 0..200 {
        // Same length, nearly the same time: only the inode differs.
        let (_, secret) = other.rotate(key.id, Duration::ZERO).unwrap();
        world.advance_clock(1);
        assert_eq!(accepts(&server, &secret), Ok(()), "{round}");
    }
}

/// Creates keys, rotates each and revokes every second one.
#[test]
#[ignore = "the child of the test below"]
fn the_child() {
    let (Ok(file), Ok(name)) = (std::env::var(FILE), std::env::var(NAME)) else { return };
    let ring = KeyRing::open(file).unwrap();
    for nth in 0..10 {
        let (key, _) = ring.create(new_key(&format!("{name} {nth}"), Level::Write)).unwrap();
        ring.rotate(key.id, Duration::from_secs(60)).unwrap();
        if nth % 2 == 0 {
            ring.revoke(key.id).unwrap();
        }
    }
}

#[test]
fn processes_and_threads_that_change_keys_at_the_same_time_lose_no_change() {
    let world = World::new();
    let names = ["a", "b", "c"];
    let children = names.map(|name| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::the_child", "--ignored"])
            .env(FILE, world.path())
            .env(NAME, name)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    });
    let ring = KeyRing::open(world.path()).unwrap();
    std::thread::scope(|scope| {
        for name in ["d", "e"] {
            let ring = &ring;
            scope.spawn(move || {
                for nth in 0..10 {
                    ring.create(new_key(&format!("{name} {nth}"), Level::Read)).unwrap();
                }
            });
        }
    });
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let mut found: Vec<(String, bool, KeyStatus)> = ring
        .list()
        .unwrap()
        .iter()
        .map(|key| (key.name.to_string(), key.rotated_at.is_some(), key.status(Utc::now())))
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let mut expected = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        for nth in 0..10 {
            let child = names.contains(&name);
            let revoked = child && nth % 2 == 0;
            let status = if revoked { KeyStatus::Revoked } else { KeyStatus::Active };
            expected.push((format!("{name} {nth}"), child, status));
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn a_check_during_a_write_gets_a_correct_answer() {
    let world = World::new();
    let (server, other) = (world.ring(), world.ring());
    let (_, kept) = other.create(new_key("kept", Level::Write)).unwrap();
    world.advance_clock(1);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    world.advance_clock(1);
                    assert_eq!(accepts(&server, &kept), Ok(()));
                }
            });
        }
        for _ in 0..30 {
            let (key, secret) = server.create(new_key("a", Level::Read)).unwrap();
            assert_eq!(accepts(&server, &secret), Ok(()), "its own change applies at once");
            other.revoke(key.id).unwrap();
            world.advance_clock(1);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(server.list().unwrap().len(), 31);
}

#[test]
fn concurrent_checks_all_see_a_new_key() {
    let world = World::new();
    let (server, other) = (world.ring(), world.ring());
    for round in 0..50 {
        let (_, secret) = other.create(new_key("a", Level::Read)).unwrap();
        world.advance_clock(1);
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    assert_eq!(accepts(&server, &secret), Ok(()), "{round}");
                });
            }
        });
    }
}
