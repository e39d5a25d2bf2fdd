//! An owner whose own work is done.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::project::{Project, Run, is_running, until};

#[test]
fn an_owner_that_is_done_first_does_not_cut_off_the_calls_of_others() {
    let project = Project::new();
    project.script("owner", &["until [ -e started ]; do sleep 0.02; done"]);
    project.script(
        "client",
        &["touch started; sleep 1.5; echo called >> effects", "echo after >> effects"],
    );
    let mut owner = project.run("owner");
    owner.until_event("tool_started");
    project.wait_for_owner();
    let worker = project.owner();
    let client = project.run("client");
    let before = Instant::now();
    owner.end().assert_whole();
    assert!(before.elapsed() < Duration::from_millis(1500), "the shell has its prompt back");
    assert!(is_running(worker), "the call of the other goes on");
    assert_eq!(project.read("effects"), "");
    let client = client.end();
    client.assert_whole();
    assert_eq!(project.read("effects"), "called\nafter\n");
    let text = serde_json::to_string(&client.lines).unwrap();
    assert!(!text.contains("outcome unknown"), "{text}");
    until("its end", || !is_running(worker));
}

/// One process has a long call; the others do not wait for it.
#[test]
fn tasks_go_on_and_new_ones_start_while_an_owner_that_is_done_waits_for_a_call() {
    let project = Project::new();
    project.script("owner", &["until [ -e started ]; do sleep 0.02; done"]);
    project.script("long", &["touch called; until [ -e go ]; do sleep 0.02; done"]);
    let steps = ["touch started; until [ -e left ]; do sleep 0.02; done", "echo one >> effects"];
    project.script("short", &[steps[0], steps[1], "echo two >> effects"]);
    project.script("new", &["echo new >> effects"]);
    let mut owner = project.run("owner");
    owner.until_event("tool_started");
    project.wait_for_owner();
    let worker = project.owner();
    let long = project.run("long");
    until("the long call", || project.path().join("called").exists());
    let short = project.run("short");
    owner.end().assert_whole();
    std::fs::write(project.path().join("left"), "").unwrap();
    short.end().assert_whole();
    project.run("new").end().assert_whole();
    assert_eq!(project.read("effects"), "one\ntwo\nnew\n");
    assert_eq!((project.owner(), is_running(worker)), (worker, true), "it waits for the long call");
    std::fs::write(project.path().join("go"), "").unwrap();
    let long = long.end();
    long.assert_whole();
    let text = serde_json::to_string(&long.lines).unwrap();
    assert!(!text.contains("outcome unknown"), "{text}");
    until("its end", || !is_running(worker));
}

#[test]
fn an_owner_without_clients_ends_at_once() {
    let project = Project::new();
    project.succeed(&["run", "hello"]);
    let worker = project.owner();
    assert!(!is_running(worker));
    assert!(!project.state().join("server.sock").exists());
}

#[test]
fn ctrl_c_and_sigterm_reach_the_work_through_the_process_that_the_shell_knows() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let project = Project::new();
        project.script("owner", &["sleep 600", "echo after >> effects"]);
        let mut owner =
            Run::start(project.run_command("owner", &["--mode", "full", "--grace", "0"]));
        owner.until_event("tool_started");
        let (front, worker) = (owner.child.id().to_string(), project.owner());
        assert!(Command::new("kill").args([signal, &front]).status().unwrap().success());
        let ended = owner.end();
        assert_eq!(ended.code, Some(code), "{signal}: {}", ended.said);
        until("its end", || !is_running(worker));
        assert_eq!(project.read("effects"), "");
    }
}
