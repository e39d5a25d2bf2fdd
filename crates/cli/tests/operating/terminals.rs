//! Who may start a program without a sandbox and type into it, through every way in, with the real binary.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::project_folder::trust;
use crate::server::{Project, Server};
use crate::webhooks::{SECRET, signed};

/// How long something may take that comes by itself.
const LONG: Duration = Duration::from_secs(40);

/// Longer than a message waits when nothing holds it up.
const A_WHILE: Duration = Duration::from_secs(2);

/// A program that writes down each line that it gets.
const CONFIG: &str = r#"
[scripts]
messenger = "messenger.toml"

[terminals.listener]
command = ["bash", "-c", "while read -p '> ' line; do echo \"$line\" >> said; done"]
ready = "^> $"
quiet_ms = 100

[webhooks.ci]
agent = "shell"
secret_env = "CI_SECRET"
"#;

/// Sends what it receives to the shell.
const SCRIPT: &str = r#"
name = "messenger"
[[reply]]
when = { results_since_user = 1 }
steps = [{ text = "Sent." }]
[[reply]]
steps = [{ call = { name = "send_message", arguments = { to = "shell", text = "from an agent" } } }]
"#;

pub(crate) const SHELL: &str = "---\ndescription: A program.\n\
    runtimes: [{kind: terminal, config: {profile: listener}}]\n---\nA program.\n";

const MESSENGER: &str =
    "---\ndescription: Sends.\nmodel: scripted/messenger\nagents: [shell]\n---\nYou send.\n";

/// The agent `shell` is a file of the user (`home/.config/antiphon/agents`) or of the project.
fn project(shell: &str) -> Project {
    project_with(shell, "")
}

fn project_with(shell: &str, more: &str) -> Project {
    let project = Project::new();
    project.configure(&format!("{CONFIG}{more}"));
    let config = project.path().join("../home/.config/antiphon");
    fs::write(config.join("messenger.toml"), SCRIPT).unwrap();
    for folder in ["../home/.config/antiphon/agents", ".antiphon/agents"] {
        fs::create_dir_all(project.path().join(folder)).unwrap();
    }
    fs::write(config.join("agents/messenger.md"), MESSENGER).unwrap();
    fs::write(project.path().join(shell), SHELL).unwrap();
    project
}

pub(crate) const OF_USER: &str = "../home/.config/antiphon/agents/shell.md";
const OF_PROJECT: &str = ".antiphon/agents/shell.md";

fn serve(project: &Project) -> Server {
    Server::with(project, &[], &[("CI_SECRET", SECRET)])
}

pub(crate) fn said(project: &Project) -> String {
    fs::read_to_string(project.path().join("said")).unwrap_or_default()
}

pub(crate) fn until(what: &str, mut look: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !look() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn questions(project: &Project) -> Vec<Value> {
    let listed = project.json(&["approvals", "list", "--json"]);
    listed.as_array().unwrap().clone()
}

/// The question of a sender, once it is asked.
pub(crate) fn question(project: &Project, sender: &str) -> Value {
    let mut found = None;
    let of_sender = |asked: &Value| asked["reason"].as_str().unwrap().contains(sender);
    until(&format!("no question about {sender}"), || {
        found = questions(project).into_iter().find(of_sender);
        found.is_some()
    });
    found.unwrap()
}

pub(crate) fn decide(project: &Project, question: &Value, words: &[&str]) {
    let id = question["approval_id"].as_str().unwrap();
    project.out(&[&["approvals"], words, &[id]].concat());
}

fn drop_request(project: &Project, request: &Value) -> Value {
    let mut command = project.command(&["request", "-", "--json"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_way_into_a_program_is_a_question_unless_a_person_types() {
    let project = project(OF_USER);
    let server = serve(&project);
    project.out(&["agents", "start", "shell"]);
    project.out(&["send", "shell", "from the owner"]);
    until("the owner types", || said(&project) == "from the owner\n");
    let write = project.out(&["keys", "new", "--name", "w", "--level", "write"]);
    let admin = project.out(&["keys", "new", "--name", "a", "--level", "admin"]);
    let body = r#"{"message": "from a key"}"#;
    let inbox = "POST /v1/agents/shell/inbox";
    let mut status = 0;
    until("the keys are read", || {
        status = server.ask(write.trim(), inbox, "", body).0;
        status != 401
    });
    assert_eq!(status, 202);
    assert_eq!(server.ask(admin.trim(), inbox, "", body).0, 202);
    until("an admin key types", || said(&project) == "from the owner\nfrom a key\n");
    project.out(&["send", "shell", "--from", "cron", "from an event"]);
    let hook = r#"{"body": "from a webhook"}"#;
    assert_eq!(server.ask("", "POST /v1/events/ci", &signed("m1", hook), hook).0, 202);
    let sent = drop_request(
        &project,
        &json!({"action": "send", "name": "shell", "message": "from a file"}),
    );
    assert_eq!(sent["status"], "accepted", "{sent}");
    let body = r#"{"agent": "messenger", "message": "go"}"#;
    assert_eq!(server.ask(&project.token(), "POST /v1/tasks", "", body).0, 201);
    let senders =
        ["the write key", "source `cron`", "webhook `ci`", "a request file", "`messenger`"];
    for sender in senders {
        let asked = question(&project, sender);
        assert_eq!(asked["tool_name"], "terminal_input", "{asked}");
        assert!(asked["arguments"]["text"].as_str().unwrap().contains("from a"), "{asked}");
    }
    std::thread::sleep(A_WHILE);
    assert_eq!(said(&project), "from the owner\nfrom a key\n", "nothing was typed");
    until("the status says why they wait", || {
        project.out(&["agents", "status"]).contains("5 messages wait: a person has to answer")
    });
    // A write key cannot answer its own question.
    let asked = question(&project, "the write key");
    let line = format!("POST /v1/approvals/{}", asked["approval_id"].as_str().unwrap());
    assert_eq!(server.ask(write.trim(), &line, "", r#"{"decision": "allow_once"}"#).0, 403);

    server.kill();
    let server = serve(&project);
    until("the questions are there again", || questions(&project).len() == senders.len());
    decide(&project, &question(&project, "`messenger`"), &["deny"]);
    decide(&project, &question(&project, "webhook `ci`"), &["allow"]);
    let typed = "from the owner\nfrom a key\n[EVENT via ci] from a webhook\n";
    until("what was allowed is typed", || said(&project) == typed);
    assert_eq!(questions(&project).len(), senders.len() - 2);
    server.end();
}

#[test]
fn a_grant_for_a_sender_is_kept_over_a_restart() {
    let project = project(OF_USER);
    let server = serve(&project);
    project.out(&["agents", "start", "shell"]);
    project.out(&["send", "shell", "--from", "cron", "one"]);
    decide(&project, &question(&project, "source `cron`"), &["allow", "--always"]);
    until("it is typed", || said(&project) == "[EVENT via cron] one\n");
    server.end();
    let server = serve(&project);
    project.out(&["agents", "start", "shell"]);
    project.out(&["send", "shell", "--from", "cron", "two"]);
    until("it is typed", || said(&project).ends_with("[EVENT via cron] two\n"));
    project.out(&["send", "shell", "--from", "cron2", "three"]);
    question(&project, "source `cron2`");
    server.end();
}

#[test]
fn a_schedule_and_a_key_start_no_program_without_an_answer() {
    let schedule = "[schedules.tick]\nagent = \"shell\"\nevery = \"1s\"\nbody = \"tick\"\n";
    let project = project_with(OF_USER, schedule);
    let server = serve(&project);
    let asked = question(&project, "the schedule `tick`");
    assert_eq!(asked["tool_name"], "terminal_start", "{asked}");
    std::thread::sleep(A_WHILE);
    assert_eq!(said(&project), "");
    let shown = project.out(&["agents", "status"]);
    assert!(shown.contains("may the schedule `tick` start it?"), "{shown}");
    decide(&project, &asked, &["deny"]);
    server.end();

    let project = self::project(OF_USER);
    let server = serve(&project);
    let write = project.out(&["keys", "new", "--name", "w", "--level", "write"]);
    until("the key is read", || {
        server.ask(write.trim(), "POST /v1/agents/shell/start", "", "").0 == 200
    });
    let asked = question(&project, "the write key");
    assert_eq!(asked["tool_name"], "terminal_start", "{asked}");
    let body = r#"{"agent": "shell", "message": "typed by a task"}"#;
    assert_eq!(server.ask(write.trim(), "POST /v1/tasks", "", body).0, 201);
    until("both are asked about", || questions(&project).len() == 2);
    std::thread::sleep(A_WHILE);
    assert_eq!(said(&project), "");
    for asked in questions(&project) {
        decide(&project, &asked, &["allow"]);
    }
    until("the task is typed", || said(&project) == "typed by a task\n");
    server.end();
}

#[test]
fn an_agent_file_of_a_project_gets_a_terminal_only_if_a_person_allows_it() {
    let project = project(OF_PROJECT);
    // To trust the file is not to let it start a program.
    trust(project.path());
    let server = serve(&project);
    project.out(&["agents", "start", "shell"]);
    let asked = question(&project, "came with the project");
    assert_eq!(asked["tool_name"], "terminal_start", "{asked}");
    project.out(&["send", "shell", "hello"]);
    std::thread::sleep(A_WHILE);
    assert_eq!(said(&project), "");
    decide(&project, &asked, &["allow", "--always"]);
    until("it is typed", || said(&project) == "hello\n");
    server.end();
    // Allowed as long as the file is the same.
    let server = serve(&project);
    project.out(&["agents", "start", "shell"]);
    project.out(&["send", "shell", "again"]);
    until("it is typed", || said(&project) == "hello\nagain\n");
    project.out(&["agents", "stop", "shell"]);
    fs::write(project.path().join(OF_PROJECT), format!("{SHELL}\nObey the repository.\n")).unwrap();
    trust(project.path());
    let mut started = false;
    until("the change is read", || {
        let shown = project.json(&["agents", "show", "shell", "--json"]);
        started = shown["context"].as_str().unwrap().contains("Obey");
        started
    });
    std::thread::sleep(A_WHILE);
    project.out(&["agents", "start", "shell"]);
    question(&project, "came with the project");
    server.end();

    // Without a person to ask, it is refused with the reason.
    let project = self::project(OF_PROJECT);
    trust(project.path());
    let output = project.run(&["run", "--agent", "shell", "hello"]);
    assert!(!output.status.success(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("came with the project"), "{told}");
    assert_eq!(said(&project), "");
}
