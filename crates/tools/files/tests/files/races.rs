//! Two at once.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_core::{RawJson, ToolExecutor};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::world::{Outcome, SECRET, World, context};

/// How long a race is run.
const RACE: Duration = Duration::from_millis(700);

/// Calls a tool on a runtime of its own: from any thread.
fn call(world: &World, task: &str, tool: &str, arguments: &Value) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let arguments = RawJson::of(arguments).unwrap();
    let execute = world.toolbox.execute(tool, &arguments, context(task, "call"));
    Outcome::of(runtime.block_on(execute))
}

/// Tells the other threads to end, also when this one fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Swaps two paths again and again while `work` goes on.
fn while_swapping(one: &Path, other: &Path, work: impl FnMut()) {
    let swap = || renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
    let swaps = beside(swap, work);
    assert!(swaps > 100, "only {swaps} swaps");
}

/// Does one thing again and again beside another, and says how often.
fn beside(one: impl Fn() + Sync, mut other: impl FnMut()) -> u64 {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let doing = scope.spawn(|| {
            let mut times = 0;
            while !done.load(Ordering::Relaxed) {
                one();
                times += 1;
            }
            times
        });
        let ends = Ends(&done);
        let until = Instant::now() + RACE;
        while Instant::now() < until {
            other();
        }
        drop(ends);
        doing.join().unwrap()
    })
}

#[test]
fn a_folder_that_becomes_a_link_leads_nowhere() {
    let world = World::new();
    world.put("swap/secret.txt", "harmless\n");
    world.link("other", &world.outside);
    let mut outcomes = (0, 0);
    while_swapping(&world.path("swap"), &world.path("other"), || {
        let written = world.write("swap/new/file.txt", "x");
        let edited = world.edit("swap/secret.txt", "harmless", "harmless!");
        world.edit("swap/secret.txt", "harmless!", "harmless");
        for outcome in [written, edited, world.read("swap/secret.txt")] {
            assert!(!format!("{outcome:?}").contains(SECRET));
            match &outcome {
                Outcome::Said(_) => outcomes.0 += 1,
                Outcome::Failed(_) => outcomes.1 += 1,
                Outcome::Invalid(_) | Outcome::Other(_) => panic!("{outcome:?}"),
            }
        }
    });
    assert!(outcomes.0 > 0 && outcomes.1 > 0, "no race: {outcomes:?}");
    world.is_unharmed();
}

#[test]
fn a_folder_to_be_made_that_becomes_a_link_leads_nowhere() {
    let world = World::new();
    let new = world.path("new");
    let link = || {
        drop(std::os::unix::fs::symlink(&world.outside, &new));
        drop(fs::remove_file(&new));
    };
    let mut outcomes = (0, 0);
    let links = beside(link, || {
        match world.write("new/er/file", "x") {
            Outcome::Said(_) => outcomes.0 += 1,
            Outcome::Failed(_) => outcomes.1 += 1,
            other @ (Outcome::Invalid(_) | Outcome::Other(_)) => panic!("{other:?}"),
        }
        drop(fs::remove_dir_all(&new));
    });
    assert!(links > 100 && outcomes.0 > 0 && outcomes.1 > 0, "no race: {links} {outcomes:?}");
    world.is_unharmed();
}

#[test]
fn a_file_that_becomes_a_link_leads_nowhere() {
    let world = World::new();
    world.put("swap", "harmless\n");
    world.link("other", world.outside.join("secret.txt"));
    let mut tool_output = 0;
    while_swapping(&world.path("swap"), &world.path("other"), || {
        let read = world.read("swap");
        world.write("swap", "harmless again\n");
        let edited = world.edit("swap", "harmless", "harmless");
        for outcome in [read, edited] {
            assert!(!format!("{outcome:?}").contains(SECRET));
            tool_output += usize::from(matches!(outcome, Outcome::Said(_)));
        }
    });
    assert!(tool_output > 0, "nothing was read");
    world.is_unharmed();
}

#[test]
fn a_folder_that_becomes_the_repository_is_not_written_to() {
    let world = World::new();
    fs::create_dir(world.path("swap")).unwrap();
    world.link("other", ".git/hooks");
    while_swapping(&world.path("swap"), &world.path("other"), || {
        world.write("swap/pre-commit", "evil");
    });
    assert_eq!(fs::read_dir(world.path(".git/hooks")).unwrap().count(), 0);
}

#[test]
fn two_writers_never_leave_a_torn_file() {
    let world = World::new();
    let text = |letter: &str| format!("{}\n", letter.repeat(99)).repeat(2_000);
    let (one, other) = (text("a"), text("b"));
    world.put("f", &one);
    let done = AtomicBool::new(false);
    let rounds = thread::scope(|scope| {
        let (world, one, other, done) = (&world, &one, &other, &done);
        let writers = [("t1", one), ("t2", other)].map(|(task, text)| {
            scope.spawn(move || {
                let mut written = 0;
                while !done.load(Ordering::Relaxed) {
                    call(world, task, "read", &json!({ "path": "f" }));
                    let arguments = json!({ "path": "f", "content": text });
                    let outcome = call(world, task, "write", &arguments);
                    written += usize::from(matches!(outcome, Outcome::Said(_)));
                }
                written
            })
        });
        let ends = Ends(done);
        let until = Instant::now() + RACE;
        while Instant::now() < until {
            let found = fs::read_to_string(world.path("f")).unwrap();
            assert!(found == *one || found == *other, "torn: {} bytes", found.len());
        }
        drop(ends);
        writers.map(|writer| writer.join().unwrap())
    });
    assert!(rounds.iter().all(|written| *written > 0), "{rounds:?}");
    world.is_unharmed();
}

#[test]
fn no_edit_that_was_reported_is_lost() {
    const TASKS: usize = 4;
    const EDITS: usize = 10;
    let world = World::new();
    let slots = |value: &str| -> String {
        let slots: Vec<String> =
            (0..TASKS * EDITS).map(|i| format!("slot {i:02}: {value}\n")).collect();
        slots.concat()
    };
    world.put("f", slots("no"));
    let retries: usize = thread::scope(|scope| {
        let world = &world;
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                scope.spawn(move || {
                    let mut retries = 0;
                    for i in 0..EDITS {
                        let slot = format!("slot {:02}: ", task * EDITS + i);
                        let edit =
                            json!({ "old": format!("{slot}no"), "new": format!("{slot}yes") });
                        let arguments = json!({ "path": "f", "edits": [edit] });
                        // Bounded: one writer succeeds each time.
                        while !matches!(
                            call(world, &format!("t{task}"), "edit", &arguments),
                            Outcome::Said(_)
                        ) {
                            retries += 1;
                            assert!(retries < 2_000);
                        }
                    }
                    retries
                })
            })
            .collect();
        tasks.into_iter().map(|task| task.join().unwrap()).sum()
    });
    assert_eq!(String::from_utf8(world.bytes("f")).unwrap(), slots("yes"), "{retries} retries");
    world.is_unharmed();
}

#[test]
fn a_new_file_that_two_make_is_made_by_one() {
    let world = World::new();
    for i in 0..20 {
        let path = format!("new{i}/file");
        let outcomes = thread::scope(|scope| {
            let write = |task: &'static str| {
                let arguments = json!({ "path": path, "content": task });
                let world = &world;
                scope.spawn(move || call(world, task, "write", &arguments))
            };
            [write("t1"), write("t2")].map(|writing| writing.join().unwrap())
        });
        let tool_output =
            outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Said(_))).count();
        assert_eq!(tool_output, 1, "{outcomes:?}");
        let winner = if matches!(outcomes[0], Outcome::Said(_)) { "t1" } else { "t2" };
        assert_eq!(world.bytes(&path), winner.as_bytes());
    }
    world.is_unharmed();
}
