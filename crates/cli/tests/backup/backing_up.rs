//! Backups: beside a server at work, and killed on the way.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::project::{Project, events};

/// Who asks for tasks while backups are made.
const CLIENTS: usize = 4;

/// Backups that are made meanwhile.
const BACKUPS: usize = 8;

/// Backups that are killed.
const KILLS: u32 = 20;

#[test]
fn a_backup_beside_a_server_has_every_task_that_was_accepted_before() {
    let project = Project::new();
    let (server, done) = (project.serve(), AtomicBool::new(false));
    let ask = || {
        let body = json!({"message": "hello", "model": "scripted/hello"}).to_string();
        let task = server.ask("POST", "/v1/tasks", &body);
        task["task_id"].as_str().unwrap().to_owned()
    };
    let made = std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    ask();
                }
            });
        }
        let made: Vec<_> = (0..BACKUPS)
            .map(|number| {
                let (task, name) = (ask(), format!("{number}.backup"));
                let reported = project.antiphon(&["backup", &name, "--json"]).json();
                (task, project.at(&name), reported)
            })
            .collect();
        done.store(true, Ordering::Relaxed);
        made
    });
    server.end();
    let everything = events(&project.journal());
    for (task, file, reported) in made {
        let copy = events(&file);
        assert_eq!(copy, everything[..copy.len()]);
        assert!(copy.iter().any(|event| event.task_id.as_str() == task), "{task} is missing");
        let begun = |event: &&antiphon_core::Event| event.seq.0 == 1;
        let tasks = copy.iter().filter(begun).count();
        let ended = copy.iter().filter(|event| event.body.ends_task()).count();
        let mut expected = json!({
            "file": file.file_name().unwrap().to_str().unwrap(),
            "events": copy.len(),
            "tasks": tasks,
            "unfinished": tasks - ended,
            "bytes": fs::metadata(&file).unwrap().len(),
            "schema": 10,
        });
        expected["took_ms"] = reported["took_ms"].clone();
        assert_eq!(reported, expected);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn what_is_there_is_replaced_only_by_force() {
    let project = Project::with_tasks(2);
    let made = project.antiphon(&["backup", "copy"]);
    assert_eq!((made.code, made.err.as_str()), (0, ""), "{made:?}");
    let reported = "202 events of 2 tasks (2 unfinished), ";
    assert!(made.out.starts_with(reported), "{made:?}");
    assert!(made.out.contains("MB, written to copy in ") || made.out.contains("kB, written"));
    project.add_tasks(1);
    let before = fs::read(project.at("copy")).unwrap();
    let refused = project.antiphon(&["backup", "copy"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.err.contains("copy exists already: name another file, or replace it with --force")
    );
    assert_eq!(fs::read(project.at("copy")).unwrap(), before);
    assert_eq!(project.antiphon(&["backup", "copy", "--force", "--json"]).json()["tasks"], 3);
    symlink("copy", project.at("link")).unwrap();
    let journal = project.journal().display().to_string();
    for (target, why) in [
        ("link", "is not a file"),
        ("none/none", "No such file"),
        (".", "is not a file"),
        (journal.as_str(), "is the journal itself"),
        (&format!("{journal}-wal"), "is the journal itself"),
    ] {
        let refused = project.antiphon(&["backup", "--force", target]);
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{refused:?}");
        assert!(refused.err.contains(why), "{refused:?}");
    }
    assert_eq!(project.names("."), ["copy", "link"]);
    let nothing = Project::new().antiphon(&["backup", "copy"]);
    assert_eq!(nothing.code, 2, "{nothing:?}");
    assert!(nothing.err.contains("there are no tasks here"), "{nothing:?}");
}

#[test]
fn a_backup_that_is_killed_leaves_the_last_one_or_none() {
    let project = Project::with_tasks(12);
    let began = Instant::now();
    project.antiphon(&["backup", "once", "--json"]).json();
    let took = began.elapsed();
    let (old, mut killed) = (events(&project.at("once")), 0);
    fs::remove_file(project.at("once")).unwrap();
    for number in 0..KILLS {
        // All along the way: at first there is none, then an old one.
        let after = took * (number * 7 % KILLS) / KILLS;
        if number == KILLS / 2 {
            let made = project.antiphon(&["backup", "copy", "--force", "--json"]).json();
            assert_eq!(made["events"], Value::from(old.len()));
            project.add_tasks(1);
        }
        killed += u32::from(project.killed(&["backup", "--force", "copy"], after));
        if project.at("copy").exists() {
            let found = events(&project.at("copy"));
            assert!(found.len() >= old.len());
            assert_eq!(found[..old.len()], old);
        }
        let names = project.names(".");
        let known = |name: &String| name == "copy" || name.starts_with(".antiphon");
        assert!(names.iter().all(known), "{names:?}");
    }
    assert!(killed > KILLS / 4, "{killed} of {KILLS} in {took:?}");
    // Leftovers are removed once they are too old to be in use.
    let left = project.names(".").into_iter().filter(|name| name.starts_with(".antiphon-copy-"));
    let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    for name in left {
        fs::File::open(project.at(&name)).unwrap().set_modified(hour_ago).unwrap();
    }
    project.antiphon(&["backup", "--force", "copy", "--json"]).json();
    assert_eq!(project.names("."), ["copy"]);
}
