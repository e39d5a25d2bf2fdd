//! Signals to `antiphon tasks resume`, which runs the tasks itself or waits at the owner.

use std::fs;
use std::process::{Child, Command, Stdio};

use crate::project::{Project, Run, until};

/// Until the file `go` is there.
const CALL: &str =
    "echo began >> began; until [ -e go ]; do sleep 0.02; done; echo called >> effects";

/// A task whose process was killed in its first call.
fn left_task(project: &Project) -> String {
    project.script("left", &[CALL, CALL, "echo last >> effects"]);
    let mut left = project.run("left");
    left.until_event("tool_started");
    until("the first call", || has_begun(project, 1));
    let id = left.printed()[0]["task_id"].as_str().unwrap().to_owned();
    left.kill();
    id
}

fn has_begun(project: &Project, calls: usize) -> bool {
    project.read("began").lines().count() == calls
}

fn resume(project: &Project, id: &str) -> Child {
    let mut command = project.command(&["tasks", "resume", id]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the second call", || has_begun(project, 2));
    child
}

fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

fn status(project: &Project, id: &str) -> String {
    let tasks = project.tasks();
    let task = tasks.iter().find(|task| task["task_id"] == id).unwrap();
    task["status"].as_str().unwrap().to_owned()
}

/// Exit code and standard error.
fn end(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn ctrl_c_interrupts_the_tasks_that_it_resumes() {
    let project = Project::new();
    let id = left_task(&project);
    let resuming = resume(&project, &id);
    send(&resuming, "-INT");
    let (code, said) = end(resuming);
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("antiphon tasks resume"), "{said}");
    assert_eq!(status(&project, &id), "input_required");
    assert_eq!(project.read("effects"), "", "its call has ended");
    let resumed = project.succeed(&["tasks", "resume", &id]);
    assert_eq!(resumed, format!("{id} completed\n"));
    assert_eq!(project.read("effects"), "last\n");
}

#[test]
fn sigterm_lets_the_calls_finish_that_it_runs() {
    let project = Project::new();
    let id = left_task(&project);
    let resuming = resume(&project, &id);
    send(&resuming, "-TERM");
    let ready = "GET /health/ready HTTP/1.0\r\nhost: localhost\r\n\r\n";
    until("the drain", || project.ask_owner(ready).contains(" 503 "));
    fs::write(project.path().join("go"), "").unwrap();
    let (code, said) = end(resuming);
    assert_eq!(code, Some(143), "{said}");
    assert_eq!(
        (project.read("effects").as_str(), status(&project, &id).as_str()),
        ("called\n", "running")
    );
    assert_eq!(project.succeed(&["tasks", "resume", &id]), format!("{id} completed\n"));
    assert_eq!(project.read("effects"), "called\nlast\n");
}

/// The owner is another process, and stays.
#[test]
fn ctrl_c_interrupts_its_tasks_in_the_owner_and_no_other_task() {
    let project = Project::new();
    let id = left_task(&project);
    project.script("owner", &["until [ -e end ]; do sleep 0.02; done", "echo owner >> effects"]);
    let mut owner: Run = project.run("owner");
    owner.until_event("tool_started");
    project.wait_for_owner();
    let resuming = resume(&project, &id);
    send(&resuming, "-INT");
    let (code, said) = end(resuming);
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(status(&project, &id), "input_required");
    fs::write(project.path().join("end"), "").unwrap();
    owner.end().assert_whole();
    assert_eq!(project.read("effects"), "owner\n");
}
