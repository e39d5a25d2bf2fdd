//! Tasks of processes that were killed, when every other process is done.

use std::fs;

use crate::project::{Project, Run, is_running, until};

/// Until the file `go` is there.
const GO: &str = "until [ -e go ]; do sleep 0.02; done";

/// Between these commands there are moments at which nothing is called.
const STEPS: [&str; 4] = [
    GO,
    "echo one >> effects; sleep 0.1",
    "echo two >> effects; sleep 0.1",
    "echo three >> effects",
];

fn begun(project: &Project, script: &str) -> Run {
    let mut run = project.run(script);
    run.until_event("tool_started");
    run
}

fn go(project: &Project) {
    fs::write(project.path().join("go"), "").unwrap();
}

/// Every task is completed, each effect of the killed process happened once, and no process is left.
fn assert_all_done(project: &Project) {
    until("every end", || project.tasks().iter().all(|task| task["status"] == "completed"));
    assert_eq!(project.read("effects"), "one\ntwo\nthree\n");
    until("the end of every process", || !is_running(project.owner()));
}

#[test]
fn the_task_of_a_killed_owner_goes_on_when_the_process_that_took_over_is_done() {
    let project = Project::new();
    project.script("killed", &STEPS);
    project.script("client", &[GO]);
    let mut killed = begun(&project, "killed");
    project.wait_for_owner();
    let client = begun(&project, "client");
    go(&project);
    killed.kill();
    // Before the tasks of other processes go on.
    let ended = client.end();
    ended.assert_whole();
    let text =
        "tasks of processes that have ended go on in the background: see `antiphon tasks list`";
    assert!(ended.said.contains(text), "{}", ended.said);
    assert_all_done(&project);
}

#[test]
fn the_task_of_a_killed_client_goes_on_when_the_owner_is_done() {
    let project = Project::new();
    project.script("owner", &["until [ -e leave ]; do sleep 0.02; done"]);
    project.script("killed", &STEPS);
    let owner = begun(&project, "owner");
    project.wait_for_owner();
    let mut killed = begun(&project, "killed");
    killed.kill();
    fs::write(project.path().join("leave"), "").unwrap();
    owner.end().assert_whole();
    go(&project);
    assert_all_done(&project);
}

/// The owner that is done frees the journal when the last call of its client ends, and then no process is left.
#[test]
fn the_task_of_a_killed_process_goes_on_when_the_last_client_ends_as_the_owner_leaves() {
    let project = Project::new();
    project.script("owner", &["until [ -e leave ]; do sleep 0.02; done"]);
    project.script("killed", &["sleep 0.1"; 30]);
    project.script("client", &["sleep 0.35", "sleep 0.35"]);
    let owner = begun(&project, "owner");
    project.wait_for_owner();
    let mut killed = begun(&project, "killed");
    let client = begun(&project, "client");
    killed.kill();
    fs::write(project.path().join("leave"), "").unwrap();
    owner.end().assert_whole();
    client.end().assert_whole();
    until("every end", || project.tasks().iter().all(|task| task["status"] == "completed"));
    until("the end of every process", || !is_running(project.owner()));
}

#[test]
fn every_client_says_which_process_goes_on_when_the_owner_is_killed() {
    let project = Project::new();
    project.script("owner", &["sleep 30"]);
    project.script("client", &[GO, GO]);
    let mut owner = begun(&project, "owner");
    project.wait_for_owner();
    let text_run = || {
        let mut command = project.command(&["run", "--mode", "full", "--model", "scripted/client"]);
        command.args(["--script", "client.toml", "go"]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let clients = [text_run(), text_run(), text_run()];
    until("the clients", || project.tasks().len() == 4);
    let before = project.owner();
    owner.kill();
    until("the next owner", || project.owner() != before && is_running(project.owner()));
    go(&project);
    let said: Vec<String> = clients
        .into_iter()
        .map(|client| {
            let output = client.wait_with_output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stderr).unwrap()
        })
        .collect();
    let text = "the process that ran the tasks of this project has ended; ";
    let lines =
        |end: &str| said.iter().filter(|said| said.contains(&format!("{text}{end}"))).count();
    assert!(said.iter().all(|said| said.contains(text)), "{said:#?}");
    assert!(lines("this one goes on") >= 1 && lines("process ") >= 2, "{said:#?}");
}
