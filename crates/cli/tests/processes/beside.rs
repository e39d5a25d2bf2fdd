//! Commands beside a process that works.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::project::{PATIENCE, Project, Run, until};

/// Until the file `go` is there.
const WAIT: &str = "until [ -e go ]; do sleep 0.02; done; echo waited >> effects";

/// A call outside of the project, which a person is asked about.
const OUTSIDE: &str = r#"
name = "asks"
[[reply]]
when = { turn = 0 }
steps = [{ call = { name = "write", arguments = { path = "../outside", content = "x" } } }]
[[reply]]
steps = [{ text = "done" }]
"#;

/// The problem of a server that does not have the journal yet.
const WAITING: &str = "\"problems\":[\"waiting_for_journal\"]";

/// An address that no process listens on.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// The answer to a request without a token.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn project_at_work() -> (Project, Run) {
    let project = Project::new();
    project.script("owner", &[WAIT]);
    let mut owner = project.run("owner");
    owner.until_event("tool_started");
    project.wait_for_owner();
    (project, owner)
}

#[test]
fn a_second_run_works_beside_the_first_and_streams_its_own_task() {
    let (project, owner) = project_at_work();
    project.script("second", &["echo second >> effects"]);
    let second = project.run("second").end();
    second.assert_whole();
    assert!(second.lines.iter().all(|line| line["task_id"] == second.task_id().as_str()));
    let plain = project.succeed(&["run", "hello"]);
    assert!(plain.starts_with("Hello"), "{plain}");
    assert_eq!(project.read("effects"), "second\n");
    fs::write(project.path().join("go"), "").unwrap();
    owner.end().assert_whole();
    assert_eq!(project.read("effects"), "second\nwaited\n");
}

#[test]
fn every_command_works_beside_a_run_and_none_waits_for_the_lock() {
    let (project, mut owner) = project_at_work();
    let task = project.tasks()[0]["task_id"].as_str().unwrap().to_owned();
    let before = Instant::now();
    for _ in 0..5 {
        project.succeed(&["tasks", "list"]);
    }
    assert!(before.elapsed() < Duration::from_secs(4), "{:?}", before.elapsed());
    project.succeed(&["tasks", "show", &task]);
    project.succeed(&["tasks", "send", &task, "and then?"]);
    project.succeed(&["approvals", "list"]);
    project.succeed(&["inbox", "list"]);
    project.succeed(&["run", "hello"]);
    let sessions = project.json(&["sessions", "list", "--json"]);
    let session = sessions[0]["session_id"].as_str().unwrap();
    project.succeed(&["sessions", "fork", session]);
    project.succeed(&["sessions", "export", session, "session.json"]);
    let file = project.read("session.json").replace(session, "imported-1");
    fs::write(project.path().join("imported.json"), file).unwrap();
    let said = project.succeed(&["sessions", "import", "imported.json"]);
    assert!(said.contains("`antiphon run --session imported-1`"), "{said}");
    project.succeed(&["run", "--session", "imported-1", "hello again"]);
    project.succeed(&["tasks", "pause", &task]);
    project.succeed(&["tasks", "cancel", &task]);
    let status = owner.child.wait().unwrap();
    assert_eq!(status.code(), Some(130), "the task was canceled from another terminal");
}

/// Ids begin with a time: their last group tells them apart.
fn short(task: &Value) -> String {
    task["task_id"].as_str().unwrap()[24..32].to_owned()
}

#[test]
fn commands_take_the_begin_of_the_random_part_of_an_id() {
    let (project, owner) = project_at_work();
    project.script("other", &["sleep 600"]);
    let mut other = project.run("other");
    other.until_event("tool_started");
    let tasks = project.tasks();
    let of = |run: &Run| {
        let id = run.printed()[0]["task_id"].clone();
        short(tasks.iter().find(|task| task["task_id"] == id).unwrap())
    };
    let (first, second) = (of(&owner), of(&other));
    project.succeed(&["tasks", "send", &first, "and then?"]);
    project.succeed(&["tasks", "show", &first]);
    project.succeed(&["tasks", "cancel", &second]);
    assert_eq!(other.child.wait().unwrap().code(), Some(130));
    project.succeed(&["tasks", "watch", &second]);
    project.succeed(&["tasks", "pause", &first]);
    fs::write(project.path().join("go"), "").unwrap();
    assert_eq!(owner.end().code, Some(130), "it is paused");
    project.succeed(&["run", "--resume", &first]);
    assert_eq!(project.read("effects"), "waited\n");
}

#[test]
fn an_approval_of_a_second_run_is_decided_from_a_third_terminal() {
    let (project, _owner) = project_at_work();
    fs::write(project.path().join("asks.toml"), OUTSIDE).unwrap();
    let asks = Run::start(project.run_command("asks", &["--ask", "wait"]));
    let pending = || project.json(&["approvals", "list", "--json"]).as_array().unwrap().clone();
    until("an approval", || !pending().is_empty());
    let id = pending()[0]["approval_id"].as_str().unwrap().to_owned();
    let said = project.succeed(&["approvals", "deny", &id]);
    assert!(said.contains("its task continues"), "{said}");
    // The run ends when its task waits for a person.
    let task = asks.end().task_id();
    until("its end", || {
        let is_done = |it: &Value| it["task_id"] == task.as_str() && it["status"] == "completed";
        project.json(&["tasks", "list", "--all", "--json"]).as_array().unwrap().iter().any(is_done)
    });
}

#[test]
fn a_server_that_starts_beside_a_run_takes_the_journal_when_its_calls_are_recorded() {
    let (project, owner) = project_at_work();
    let address = free_address();
    let mut serve = project.command(&["serve", "--listen", &address]);
    let serve = serve.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut serve = serve.spawn().unwrap();
    until("an answer", || TcpStream::connect(&address).is_ok());
    // It waits for the call that runs, and says so to each request.
    for _ in 0..3 {
        let health = get(&address, "/health");
        assert!(health.starts_with("HTTP/1.1 503") && health.contains(WAITING), "{health}");
    }
    assert!(get(&address, "/health/live").starts_with("HTTP/1.1 200"));
    let tasks = get(&address, "/v1/tasks");
    assert!(tasks.starts_with("HTTP/1.1 503"), "{tasks}");
    assert!(tasks.contains("retry-after: 1") && tasks.contains("SERVICE_UNAVAILABLE"), "{tasks}");
    assert!(serve.try_wait().unwrap().is_none());
    assert_eq!(project.read("effects"), "");
    fs::write(project.path().join("go"), "").unwrap();
    owner.end().assert_whole();
    until("the server", || project.state().join("server.json").exists());
    assert_eq!(project.owner(), serve.id());
    assert_eq!(project.read("effects"), "waited\n", "the call was not cut off");
    until("its health", || get(&address, "/health").starts_with("HTTP/1.1 200"));
    let after = project.succeed(&["run", "hello"]);
    assert!(after.starts_with("Hello"), "{after}");
    let id = serve.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(serve.wait().unwrap().success());
}

#[test]
fn a_server_that_waits_for_another_call_takes_over_the_owners_own_task_too() {
    let (project, mut owner) = project_at_work();
    project.script("client", &["until [ -e late ]; do sleep 0.02; done; echo late >> effects"]);
    let mut client = project.run("client");
    client.until_event("tool_started");
    let address = free_address();
    let mut serve = project.command(&["serve", "--listen", &address]).spawn().unwrap();
    until("an answer", || TcpStream::connect(&address).is_ok());
    // The owner's own call ends, and its task stops there; the call of the client still runs in that process.
    fs::write(project.path().join("go"), "").unwrap();
    until("its end", || project.read("effects") == "waited\n");
    std::thread::sleep(Duration::from_secs(1));
    assert!(owner.child.try_wait().unwrap().is_none(), "it goes on as a client of the server");
    fs::write(project.path().join("late"), "").unwrap();
    owner.end().assert_whole();
    client.end().assert_whole();
    assert_eq!(project.read("effects"), "waited\nlate\n");
    serve.kill().unwrap();
    serve.wait().unwrap();
}

#[test]
fn an_owner_that_is_stopped_is_named_and_waited_for_no_longer_than_it_takes() {
    let (project, mut owner) = project_at_work();
    let pid = project.owner().to_string();
    assert!(Command::new("kill").args(["-STOP", &pid]).status().unwrap().success());
    let before = Instant::now();
    let output = project.output(&["run", "hello"]);
    assert!(before.elapsed() < PATIENCE);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains(&format!("kill -CONT {pid}")), "{said}");
    let listed = project.output(&["tasks", "list"]);
    assert!(listed.status.success());
    let hint = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(hint.contains(&format!("kill -CONT {pid}")), "{hint}");
    assert!(Command::new("kill").args(["-CONT", &pid]).status().unwrap().success());
    owner.kill();
}

#[test]
fn a_task_that_no_process_works_on_is_listed_with_what_to_do() {
    let (project, mut owner) = project_at_work();
    let said = |arguments: &[&str]| {
        let output = project.output(arguments);
        assert!(output.status.success());
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("no process works on running tasks now: ")
    };
    let looks: [&[&str]; 2] = [&["tasks", "list"], &["tasks", "show", "last"]];
    assert!(looks.iter().all(|look| !said(look)));
    owner.kill();
    until("its end", || looks.iter().all(|look| said(look)));
    assert!(!said(&["tasks", "list", "--json"]));
    fs::write(project.path().join("go"), "").unwrap();
    project.succeed(&["run", "--resume", "last"]);
    assert!(!said(&["tasks", "list"]));
}

#[test]
fn files_that_an_owner_left_are_no_owner() {
    let project = Project::new();
    project.succeed(&["run", "hello"]);
    // A socket on which no process listens, and the id of a process that is none of ours.
    drop(std::os::unix::net::UnixListener::bind(project.state().join("server.sock")).unwrap());
    fs::write(project.state().join("journal.db.lock"), "1\n").unwrap();
    fs::write(project.state().join("server.json"), json!({"pid": 1, "socket": true}).to_string())
        .unwrap();
    project.succeed(&["run", "hello"]);
    assert_eq!(project.tasks().len(), 2);
}

#[test]
fn a_file_system_that_cannot_be_written_still_lets_one_look() {
    let project = Project::new();
    project.succeed(&["run", "hello"]);
    let outer = project.path().parent().unwrap().to_owned();
    let look = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && cd \"$0/project\" && \
                ! touch written && \"$1\" tasks list && \"$1\" tasks show last && \"$1\" sessions list";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", look]).arg(&outer);
    command.arg(assert_cmd::cargo::cargo_bin!("antiphon"));
    command.env("HOME", outer.join("home")).env_remove("XDG_STATE_HOME");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("completed") && shown.contains("hello"), "{shown}");
}

#[test]
fn a_server_starts_while_other_processes_look_whether_one_starts() {
    let project = Project::new();
    project.succeed(&["run", "hello"]);
    let file = project.state().join("next-owner.lock");
    let look = fs::OpenOptions::new().create(true).append(true).open(&file).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    look.lock_shared().unwrap();
    let serve =
        project.command(&["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::null()).spawn();
    let mut serve = serve.unwrap();
    let descriptors = format!("/proc/{}/fd", serve.id());
    until("its look", || {
        let open = fs::read_dir(&descriptors).unwrap().filter_map(Result::ok);
        let mut open = open.filter_map(|link| fs::read_link(link.path()).ok());
        open.any(|path| path == file) || serve.try_wait().unwrap().is_some()
    });
    look.unlock().unwrap();
    until("the server", || {
        assert!(serve.try_wait().unwrap().is_none(), "it has ended");
        project.state().join("server.json").exists()
    });
    serve.kill().unwrap();
    serve.wait().unwrap();
}
