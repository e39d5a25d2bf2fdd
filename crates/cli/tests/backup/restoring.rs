//! Restoring: elsewhere, over what a kill left, killed on the way, and from what is no backup.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::project::{Project, events};

/// Restores that are killed.
const KILLS: u32 = 20;

/// The journals that were kept.
fn replaced_journals(project: &Project) -> Vec<String> {
    let names = project.names(project.state()).into_iter();
    names.filter(|name| name.starts_with("journal.db.before-")).collect()
}

#[test]
fn tasks_go_on_elsewhere_from_where_the_backup_was_made() {
    let project = Project::new();
    let server = project.serve();
    let slow = json!({"message": "go", "model": "scripted/slow"}).to_string();
    let task = server.ask("POST", "/v1/tasks", &slow)["task_id"].as_str().unwrap().to_owned();
    project.antiphon(&["backup", "copy", "--json"]).json();
    let copy = project.at("copy");
    let copy = copy.to_str().unwrap();
    let refused = project.antiphon(&["restore", "--force", "copy"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.err.contains("is in use by process"), "{refused:?}");
    drop(server);

    let other = Project::new();
    let restored = other.antiphon(&["restore", "--continue", copy]);
    assert_eq!((restored.code, restored.err.as_str()), (0, ""), "{restored:?}");
    assert!(restored.out.contains("events of 1 task (1 unfinished)"), "{restored:?}");
    assert!(restored.out.contains("may repeat what they did since"), "{restored:?}");
    assert_eq!(events(&other.journal()), events(Path::new(copy)));
    let mut server = other.serve();
    server.says("resuming 1 interrupted task");
    server.ask("POST", &format!("/v1/tasks/{task}/cancel"), "");
    server.end();

    let there = other.antiphon(&["restore", copy]);
    assert_eq!(there.code, 2, "{there:?}");
    assert!(there.err.contains("replace it with --force, which keeps the old one"), "{there:?}");
    let paused = other.antiphon(&["restore", "--force", copy]);
    assert_eq!(paused.code, 0, "{paused:?}");
    assert!(paused.out.contains("1 task now paused, without approvals"), "{paused:?}");
    let before = &replaced_journals(&other)[..];
    assert_eq!(before.len(), 1);
    assert!(paused.out.contains(&format!("{}\n", before[0])), "{paused:?}");
    let (was, is) = (events(Path::new(copy)), events(&other.journal()));
    assert_eq!((&is[..was.len()], is.len()), (&was[..], was.len() + 2));
    let list = other.antiphon(&["tasks", "list", "--unfinished", "--json"]).json();
    assert_eq!(list[0]["waiting_for"], "resume", "{list}");
    let server = other.serve();
    let resting = server.ask("GET", &format!("/v1/tasks/{task}/rest?wait_s=1"), "");
    assert_eq!((&resting["status"], &resting["rests"]), (&json!("input_required"), &json!(true)));
    server.end();

    other.antiphon(&["backup", "resting", "--json"]).json();
    let again = other.antiphon(&["restore", "--force", "resting"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.out.contains("1 task now paused"), "{again:?}");
    assert!(!again.out.contains("continues them"), "{again:?}");
}

/// The log that the server left would bring half of the old journal into the restored one.
#[test]
fn what_a_killed_server_left_stays_with_the_old_journal() {
    let project = Project::with_tasks(3);
    project.antiphon(&["backup", "copy", "--json"]).json();
    let server = project.serve();
    for _ in 0..5 {
        server.ask("POST", "/v1/tasks", r#"{"message":"hello","model":"scripted/hello"}"#);
    }
    let later = events(&project.journal());
    drop(server);
    assert!(fs::metadata(project.state().join("journal.db-wal")).unwrap().len() > 0);
    let reported = project.antiphon(&["restore", "--force", "--continue", "--json", "copy"]).json();
    let before = replaced_journals(&project);
    assert_eq!(before.len(), 1);
    let mut expected = json!({
        "file": "copy", "events": 303, "tasks": 3, "unfinished": 3, "schema": 10, "paused": 0,
        "before": project.state().join(&before[0]),
    });
    for name in ["bytes", "took_ms"] {
        assert!(reported[name].is_number(), "{reported}");
        expected[name] = reported[name].clone();
    }
    assert_eq!(reported, expected);
    assert_eq!(events(&project.journal()), events(&project.at("copy")));
    let old = events(&project.state().join(&before[0]));
    assert_eq!(old[..later.len()], later);
    // It can be had back.
    let path = project.state().join(&before[0]);
    project
        .antiphon(&["restore", "--force", "--continue", "--json", path.to_str().unwrap()])
        .json();
    assert_eq!(events(&project.journal()), old);
}

#[test]
fn a_restore_that_is_killed_leaves_the_old_journal_or_the_restored_one() {
    let project = Project::with_tasks(8);
    project.antiphon(&["backup", "copy", "--json"]).json();
    project.add_tasks(1);
    let (new, old) = (events(&project.at("copy")), events(&project.journal()));
    project.antiphon(&["backup", "whole", "--json"]).json();
    let began = Instant::now();
    project.antiphon(&["restore", "--force", "--continue", "copy", "--json"]).json();
    let took = began.elapsed();
    let (mut killed, mut olds, mut news) = (0, 0, 0);
    for number in 0..KILLS {
        project.antiphon(&["restore", "--force", "--continue", "whole", "--json"]).json();
        assert_eq!(events(&project.journal()), old);
        for name in project.names(project.state()).iter().filter(|name| name.contains(".before-")) {
            fs::remove_file(project.state().join(name)).unwrap();
        }
        // More of them near its end, where files change places.
        let after = took * (30 + number * 70 / KILLS) / 100;
        killed += u32::from(project.killed(&["restore", "--force", "--continue", "copy"], after));
        let found = events(&project.journal());
        if found == new {
            news += 1;
            // Wherever it was when it was killed, the old one is there.
            let names = project.names(project.state());
            let replaced_journals =
                |name: &&String| name.contains(".before-") || name.contains(".restore-");
            let replaced_journals: Vec<&String> = names.iter().filter(replaced_journals).collect();
            assert_eq!(replaced_journals.len(), 1, "{names:?}");
            assert_eq!(events(&project.state().join(replaced_journals[0])), old);
        } else {
            assert!(found == old, "neither the old one nor the new one");
            olds += 1;
        }
        for name in project.names(project.state()).iter().filter(|name| name.contains(".restore-"))
        {
            fs::remove_file(project.state().join(name)).unwrap();
        }
    }
    println!("{killed} killed in {took:?}: {olds} old, {news} new");
    assert!(killed > 0, "none of {KILLS} in {took:?}");
}

#[test]
fn a_file_that_is_no_backup_is_refused_and_nothing_is_touched() {
    let project = Project::with_tasks(2);
    project.antiphon(&["backup", "copy", "--json"]).json();
    let whole = fs::read(project.at("copy")).unwrap();
    let journal = fs::read(project.journal()).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    let bad: [(&str, &[u8]); 5] = [
        ("empty", b""),
        ("text", &b"Dear diary, ".repeat(500)),
        ("truncated", &whole[..whole.len() / 2]),
        ("flipped", &flipped),
        ("longer", &[&whole[..], b"!"].concat()),
    ];
    for (name, content) in bad {
        fs::write(project.at(name), content).unwrap();
        let refused = project.antiphon(&["restore", "--force", name]);
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{refused:?}");
        let said = format!("{name} is damaged or not a journal: ");
        assert!(refused.err.contains(&said), "{refused:?}");
    }
    for (name, why) in [
        ("none", "No such file"),
        (".", "is not a file"),
        (project.journal().to_str().unwrap(), "is the journal itself"),
    ] {
        let refused = project.antiphon(&["restore", "--force", name]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains(why), "{refused:?}");
    }
    assert_eq!(fs::read(project.journal()).unwrap(), journal);
    let own = ["journal.db", "journal.db-shm", "journal.db-wal", "journal.db.lock", "project.json"];
    let names = project.names(project.state());
    assert!(names.iter().all(|name| own.contains(&name.as_str())), "{names:?} are left");
}

#[test]
fn what_came_with_a_clone_is_not_believed_because_a_journal_is_restored() {
    let project = Project::with_tasks(1);
    project.antiphon(&["backup", "copy", "--json"]).json();
    let copy = project.at("copy");
    let clone = Project::new();
    fs::create_dir(clone.at(".antiphon")).unwrap();
    fs::write(clone.at(".antiphon/token"), "0123456789abcdef").unwrap();
    fs::write(clone.at(".antiphon/keys.json"), "{}").unwrap();
    let restored: Value = clone.antiphon(&["restore", copy.to_str().unwrap(), "--json"]).json();
    assert_eq!(restored["events"], 101);
    assert!(!clone.state().join("token").exists(), "the token of the clone is not taken over");
    assert!(!clone.state().join("keys.json").exists(), "nor are its keys");
    let mode = fs::metadata(clone.journal()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
}
