//! A journal that another user made and that a person restored: its messages are of no known sender, and its
//! programs do not start.

use std::fs;

use crate::server::{Project, Server};
use crate::terminals::{OF_USER, SHELL, decide, question, said, until};

/// A program that says when it starts, and writes down each line that it gets. Without `ready` nothing is typed.
fn config(ready: &str) -> String {
    format!(
        "[terminals.listener]\ncommand = [\"bash\", \"-c\", \"touch started; while read -p '> ' line; do echo \
         \\\"$line\\\" >> said; done\"]\n{ready}quiet_ms = 100\n"
    )
}

const READY: &str = "ready = \"^> $\"\n";

fn project(ready: &str) -> Project {
    with_shell(Project::new(), ready)
}

fn with_shell(project: Project, ready: &str) -> Project {
    project.configure(&config(ready));
    fs::create_dir_all(project.path().join(OF_USER).parent().unwrap()).unwrap();
    fs::write(project.path().join(OF_USER), SHELL).unwrap();
    project
}

/// Restores the backup `copy` of one project in the other.
fn restore(theirs: &Project, ours: &Project) -> String {
    fs::create_dir(ours.path().join(".antiphon")).unwrap();
    let brought = ours.path().join(".antiphon/journal.db");
    fs::copy(theirs.path().join("copy"), brought).unwrap();
    ours.out(&["restore", ".antiphon/journal.db"])
}

#[test]
fn a_message_of_an_ended_task_is_typed_only_after_an_answer() {
    let theirs = project("");
    let server = Server::start(&theirs);
    theirs.out(&["agents", "start", "shell"]);
    theirs.out(&["send", "shell", "touch stolen"]);
    theirs.out(&["agents", "stop", "shell"]);
    server.end();
    theirs.out(&["backup", "copy"]);
    for ours in Project::each() {
        is_typed_after_an_answer(&theirs, &with_shell(ours, READY));
    }
}

fn is_typed_after_an_answer(theirs: &Project, ours: &Project) {
    restore(theirs, ours);
    let server = Server::start(ours);
    ours.out(&["agents", "start", "shell"]);
    let asked = question(ours, "a sender that was not recorded");
    assert_eq!(asked["tool_name"], "terminal_input", "{asked}");
    assert_eq!(asked["arguments"]["text"], "touch stolen", "{asked}");
    // What the person sends is typed, past the message that waits.
    ours.out(&["send", "shell", "from the owner"]);
    until("the owner types", || said(ours) == "from the owner\n");
    decide(ours, &asked, &["allow"]);
    until("it is typed", || said(ours) == "from the owner\ntouch stolen\n");
    server.end();
}

#[test]
fn a_program_of_an_unfinished_task_does_not_start() {
    let (theirs, ours) = (project(READY), project(READY));
    let server = Server::start(&theirs);
    theirs.out(&["agents", "start", "shell"]);
    theirs.out(&["send", "shell", "hello"]);
    until("it is typed", || said(&theirs) == "hello\n");
    server.kill();
    theirs.out(&["backup", "copy"]);
    let told = restore(&theirs, &ours);
    assert!(told.contains("1 task now paused"), "{told}");
    let server = Server::start(&ours);
    let tasks = ours.json(&["tasks", "list", "--json"]);
    assert_eq!(tasks[0]["waiting_for"], "resume", "{tasks}");
    // Also when a person resumes it: what it was started with is not known.
    ours.run(&["tasks", "resume", tasks[0]["task_id"].as_str().unwrap()]);
    server.end();
    assert!(!ours.path().join("started").exists());
}
