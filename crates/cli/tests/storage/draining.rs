//! SIGTERM: running commands finish and are recorded, new work is refused, and what takes too long is cut
//! off as after a kill.

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::server::{Server, antiphon, commands, project, signal, text, until};

#[test]
fn a_command_that_runs_finishes_and_is_recorded_and_new_work_is_refused() {
    let folder =
        project(&commands(&["echo begin >> log; sleep 3; echo end >> log", "echo next >> log"]));
    let log = folder.path().join("log");
    let server = Server::start(folder.path(), &[]);
    let task = server.task();
    until("the command runs", || text(&log).contains("begin").then_some(()));
    let began = Instant::now();
    server.signal("-TERM");
    until("it drains", || (server.ask("GET", "/health/ready", "").status == 503).then_some(()));
    let refused = server.ask("POST", "/v1/tasks", r#"{"message":"more"}"#);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.head.contains("retry-after: 5"), "{refused:?}");
    assert_eq!(refused.json()["details"]["cause"], "stopping", "{refused:?}");
    let ready = server.ask("GET", "/health/ready", "");
    assert_eq!((ready.status, &ready.json()["problems"]), (503, &json!(["draining"])));
    let (status, said) = server.ended();
    assert!(status.success(), "{said}");
    assert!(began.elapsed() < Duration::from_secs(9), "it does not wait longer than the command");
    assert_eq!(text(&log), "begin\nend\n", "the command finished, the next did not start");
    let server = Server::start(folder.path(), &[]);
    server.completed(&task);
    assert_eq!(text(&log), "begin\nend\nnext\n", "it was not run twice");
    let events = server.ask("GET", &format!("{task}/events"), "").body;
    assert!(!events.contains("outcome unknown"), "{events}");
    server.signal("-TERM");
    server.ended();
}

#[test]
fn a_command_that_takes_too_long_is_cut_off_as_after_a_kill() {
    let folder = project(&commands(&["echo begin >> log; sleep 60; echo end >> log"]));
    let log = folder.path().join("log");
    let server = Server::start(folder.path(), &["--grace", "1"]);
    let task = server.task();
    until("the command runs", || text(&log).contains("begin").then_some(()));
    let began = Instant::now();
    server.signal("-TERM");
    let (status, said) = server.ended();
    assert!(status.success(), "{said}");
    let took = began.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_secs(15)).contains(&took), "{took:?}");
    let server = Server::start(folder.path(), &[]);
    server.completed(&task);
    assert_eq!(text(&log), "begin\n", "it was neither finished nor run again");
    let events = server.ask("GET", &format!("{task}/events"), "").body;
    assert!(events.contains("outcome unknown"), "{events}");
    server.signal("-TERM");
    server.ended();
}

#[test]
fn a_second_signal_ends_at_once() {
    let folder = project(&commands(&["echo begin >> log; sleep 60"]));
    let log = folder.path().join("log");
    let mut server = Server::start(folder.path(), &["--grace", "50"]);
    let task = server.task();
    until("the command runs", || text(&log).contains("begin").then_some(()));
    let began = Instant::now();
    server.signal("-TERM");
    until("it drains", || (server.ask("GET", "/health/ready", "").status == 503).then_some(()));
    // Signals that come at once are one: some senders signal a process and its group.
    until("its end", || {
        let has_ended = server.process.try_wait().unwrap().is_some();
        if !has_ended {
            server.signal("-TERM");
        }
        has_ended.then_some(())
    });
    let (status, _) = server.ended();
    assert_eq!(status.code(), Some(143));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let server = Server::start(folder.path(), &[]);
    server.completed(&task);
    assert_eq!(text(&log), "begin\n");
    server.signal("-TERM");
    server.ended();
}

#[test]
fn an_idle_server_ends_at_once() {
    let folder = project(&commands(&["true"]));
    let server = Server::start(folder.path(), &["--grace", "60"]);
    let began = Instant::now();
    server.signal("-TERM");
    let (status, said) = server.ended();
    assert!(status.success(), "{said}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn a_run_that_is_terminated_records_its_command_and_can_be_resumed() {
    let folder =
        project(&commands(&["echo begin >> log; sleep 3; echo end >> log", "echo next >> log"]));
    let log = folder.path().join("log");
    let mut command = antiphon(folder.path());
    command.args(["run", "--mode", "full", "go"]).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut process = command.spawn().unwrap();
    until("the command runs", || text(&log).contains("begin").then_some(()));
    signal(process.id(), "-TERM");
    let mut said = String::new();
    process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(143), "{said}");
    assert!(said.contains("antiphon run --resume"), "{said}");
    assert_eq!(text(&log), "begin\nend\n");
    let resumed = antiphon(folder.path())
        .args(["run", "--mode", "full", "--resume", "last"])
        .output()
        .unwrap();
    assert!(resumed.status.success(), "{resumed:?}");
    assert_eq!(text(&log), "begin\nend\nnext\n");
}

/// The command runs in a worker process of the task, in a sandbox.
#[test]
fn a_command_of_a_sandboxed_task_finishes_too() {
    let folder =
        project(&commands(&["echo begin >> log; sleep 3; echo end >> log", "echo next >> log"]));
    let agents = folder.path().join(".antiphon/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let agent = "---\ndescription: Works.\nruntimes: [sandbox]\ntools: bash\n---\nYou work.\n";
    std::fs::write(agents.join("worker.md"), agent).unwrap();
    let log = folder.path().join("log");
    let server = Server::start(folder.path(), &["--mode", "workspace", "--trust"]);
    let answer = server.ask("POST", "/v1/tasks", r#"{"message":"go","agent":"worker"}"#);
    assert_eq!(answer.status, 201, "{answer:?}");
    let task = format!("/v1/tasks/{}", answer.json()["task_id"].as_str().unwrap());
    until("the command runs", || text(&log).contains("begin").then_some(()));
    server.signal("-TERM");
    let (status, said) = server.ended();
    assert!(status.success(), "{said}");
    assert_eq!(text(&log), "begin\nend\n", "the command finished, the next did not start");
    let server = Server::start(folder.path(), &["--mode", "workspace"]);
    server.completed(&task);
    assert_eq!(text(&log), "begin\nend\nnext\n", "it was not run twice");
    let events = server.ask("GET", &format!("{task}/events"), "").body;
    assert!(!events.contains("outcome unknown"), "{events}");
}
