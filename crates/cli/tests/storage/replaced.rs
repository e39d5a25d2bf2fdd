//! The journal's file is deleted or replaced while a server uses it.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::project_folder::state;
use crate::server::{Server, antiphon, commands, project, until};

#[test]
fn a_deleted_journal_is_rescued_and_the_user_is_told_where() {
    let folder = project(&commands(&["echo once >> log"]));
    let server = Server::start(folder.path(), &[]);
    let task = server.task();
    server.completed(&task);
    let journal = state(folder.path()).join("journal.db");
    for end in ["", "-wal", "-shm"] {
        fs::remove_file(PathBuf::from(format!("{}{end}", journal.display()))).unwrap();
    }
    let health = server.ask("GET", "/health/ready", "");
    assert_eq!(health.status, 503, "{health:?}");
    assert_eq!(health.json()["problems"], json!(["journal_replaced"]));
    let refused = server.ask("POST", "/v1/tasks", r#"{"message":"more"}"#);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.body.contains("journal.db.rescued-1"), "{refused:?}");
    assert!(!journal.exists(), "nothing is written in its place");
    server.signal("-TERM");
    let (_, said) = server.ended();
    assert!(said.contains("journal.db.rescued-1"), "{said}");
    let rescued = state(folder.path()).join("journal.db.rescued-1");
    let restored = antiphon(folder.path())
        .args(["restore", "--continue", "--json"])
        .arg(&rescued)
        .output()
        .unwrap();
    assert!(restored.status.success(), "{restored:?}");
    let listed = antiphon(folder.path()).args(["tasks", "list", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed[0]["status"], "completed", "{listed}");
    assert!(task.ends_with(listed[0]["task_id"].as_str().unwrap()));
}

#[test]
fn a_replaced_journal_is_neither_read_nor_written() {
    let folder = project(&commands(&["true"]));
    let server = Server::start(folder.path(), &[]);
    let task = server.task();
    server.completed(&task);
    let journal = state(folder.path()).join("journal.db");
    let other = state(folder.path()).join("other");
    fs::write(&other, "Dear diary").unwrap();
    fs::rename(&other, &journal).unwrap();
    until("it is noticed", || (server.ask("GET", "/health", "").status == 503).then_some(()));
    assert_eq!(server.ask("POST", "/v1/tasks", r#"{"message":"more"}"#).status, 503);
    assert_eq!(server.status(&task), "completed", "what is open can be read");
    server.signal("-TERM");
    server.ended();
    assert_eq!(fs::read_to_string(&journal).unwrap(), "Dear diary");
    let refused = antiphon(folder.path()).args(["serve"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("antiphon restore --force"), "{said}");
}

#[test]
fn a_start_says_what_to_do_about_files_that_are_no_whole_journal() {
    let folder = project(&commands(&["true"]));
    let run = |arguments: &[&str]| {
        let output = antiphon(folder.path()).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(run(&["run", "--mode", "full", "go"]).0, Some(0));
    let journal = state(folder.path()).join("journal.db");
    let whole = fs::read(&journal).unwrap();
    fs::write(&journal, &whole[..whole.len() / 2]).unwrap();
    for command in [&["run", "go"][..], &["serve"], &["tasks", "list"]] {
        let (code, said) = run(command);
        assert_eq!(code, Some(2), "{command:?}: {said}");
        assert!(said.contains("truncated"), "{command:?}: {said}");
        assert!(said.contains("antiphon journal repair"), "{command:?}: {said}");
    }
    fs::write(&journal, "").unwrap();
    let (code, said) = run(&["run", "go"]);
    assert_eq!((code, said.contains("the file is empty")), (Some(2), true), "{said}");
    fs::remove_file(&journal).unwrap();
    fs::write(state(folder.path()).join("journal.db-wal"), "something").unwrap();
    let (code, said) = run(&["run", "go"]);
    assert_eq!((code, said.contains("journal.db-wal")), (Some(2), true), "{said}");
    assert!(!journal.exists(), "nothing was begun");
}
