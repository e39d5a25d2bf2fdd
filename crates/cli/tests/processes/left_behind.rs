//! Tasks of processes that were killed, when every other process is done.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

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
    let files = ["said-1", "said-2", "said-3"];
    let clients = files.map(|file| {
        let mut command = project.command(&["run", "--mode", "full", "--model", "scripted/client"]);
        command.args(["--script", "client.toml", "go"]);
        let said = fs::File::create(project.path().join(file)).unwrap();
        command.stdout(Stdio::null()).stderr(said);
        command.spawn().unwrap()
    });
    until("the clients", || project.tasks().len() == 4);
    let before = project.owner();
    owner.kill();
    until("the next owner", || project.owner() != before && is_running(project.owner()));
    let text = "the process that ran the tasks of this project has ended; ";
    // The next owner works until each client has found it.
    until("the word of every client", || {
        files.iter().all(|file| project.read(file).contains(text))
    });
    let said = files.map(|file| project.read(file));
    go(&project);
    for mut client in clients {
        assert!(client.wait().unwrap().success(), "{said:#?}");
    }
    let lines =
        |end: &str| said.iter().filter(|said| said.contains(&format!("{text}{end}"))).count();
    assert_eq!(lines("this one goes on"), 1, "{said:#?}");
    assert_eq!(lines("process "), 2, "{said:#?}");
}

/// A process that serves a client on standard input and output. It has written these lines, and its log goes to `log`.
fn server_of_client(project: &Project, command: &[&str], lines: &[Value]) -> Child {
    let mut command = project.command(command);
    let log = fs::File::create(project.path().join("log")).unwrap();
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
    let mut server = command.spawn().unwrap();
    for line in lines {
        writeln!(server.stdin.as_mut().unwrap(), "{line}").unwrap();
    }
    server
}

/// Kills a process that has a task at the owner. The one that works ends a moment after the one that was started.
fn kill_client(project: &Project) {
    begun(project, "killed").kill();
    let clients = || fs::File::open(project.state().join("clients.lock")).unwrap();
    until("its end", || clients().try_lock().is_ok());
}

/// The owner serves a client, whose input ends when a process was killed that had a task here.
fn assert_goes_on_behind_the_input(project: &Project, mut server: Child) {
    project.script("killed", &STEPS);
    project.wait_for_owner();
    assert_eq!(project.owner(), server.id());
    kill_client(project);
    drop(server.stdin.take());
    let text =
        "tasks of processes that have ended go on in the background: see `antiphon tasks list`";
    until("the word of the server", || project.read("log").contains(text));
    assert!(server.try_wait().unwrap().is_none(), "it works on the task");
    go(project);
    assert_all_done(project);
    assert_eq!(server.wait().unwrap().code(), Some(0), "{}", project.read("log"));
}

/// An editor's agent that owns the journal.
fn editors_agent(project: &Project) -> Child {
    let version = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": version }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {} }),
    ];
    server_of_client(project, &["acp"], &lines)
}

#[test]
fn the_task_of_a_killed_process_goes_on_in_an_editors_agent_whose_input_has_ended() {
    let project = Project::new();
    let server = editors_agent(&project);
    assert_goes_on_behind_the_input(&project, server);
}

#[test]
fn the_task_of_a_killed_process_goes_on_in_a_server_of_mcp_whose_input_has_ended() {
    let project = Project::new();
    let client = json!({ "name": "test", "version": "1" });
    let begin =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let list = json!({ "name": "task_list", "arguments": {} });
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": list }),
    ];
    let server = server_of_client(&project, &["mcp", "serve"], &lines);
    assert_goes_on_behind_the_input(&project, server);
}

#[test]
fn an_editors_agent_that_works_on_tasks_of_killed_processes_ends_when_it_is_told_to() {
    let project = Project::new();
    project.script("killed", &STEPS);
    let mut server = editors_agent(&project);
    project.wait_for_owner();
    kill_client(&project);
    drop(server.stdin.take());
    until("the word of the server", || project.read("log").contains("go on in the background"));
    let id = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(143));
}
