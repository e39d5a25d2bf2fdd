//! `antiphon serve` as a client with `curl` sees it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/project_folder.rs"]
mod project_folder;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use project_folder::{ProjectFolder, home, state};

/// A server that is at work. It is ended when it is dropped.
struct Server {
    process: Child,
    out: BufReader<ChildStdout>,
    address: String,
}

fn antiphon(folder: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("antiphon"));
    command.current_dir(folder).env_clear().env("HOME", home(folder));
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command
}

impl Server {
    fn start(folder: &Path) -> Self {
        let mut command = antiphon(folder);
        command.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap().to_owned();
        Self { process, out, address }
    }

    /// What is answered: the status and the body.
    fn ask(&self, token: &str, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        let (address, length) = (&self.address, body.len());
        let head = format!(
            "{method} {path} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).unwrap();
        socket.write_all(body.as_bytes()).unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Ends in order: says the rest of what it said.
    fn end(mut self) -> String {
        self.signal("-TERM");
        let mut said = String::new();
        self.out.read_to_string(&mut said).unwrap();
        assert!(self.process.wait().unwrap().success());
        said
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn token(folder: &Path) -> String {
    fs::read_to_string(state(folder).join("token")).unwrap().trim().to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_task_is_accepted_followed_and_kept_over_a_restart() {
    let folder = ProjectFolder::new();
    let server = Server::start(folder.path());
    let token = token(folder.path());
    let papers = state(folder.path());
    assert_eq!((token.len(), mode(&papers.join("token"))), (64, 0o600));
    let about: Value =
        serde_json::from_str(&fs::read_to_string(papers.join("server.json")).unwrap()).unwrap();
    assert_eq!(
        about,
        json!({
            "url": format!("http://{}", server.address),
            "pid": server.process.id(),
            "socket": true,
        })
    );
    assert_eq!(mode(&papers.join("server.json")), 0o600);
    let (status, body) = server.ask(&token, "POST", "/v1/tasks", r#"{"message":"what is this?"}"#);
    assert_eq!(status, 201, "{body}");
    let task: Value = serde_json::from_str(&body).unwrap();
    let path = format!("/v1/tasks/{}", task["task_id"].as_str().unwrap());
    let (status, events) = server.ask(&token, "GET", &format!("{path}/events"), "");
    assert_eq!(status, 200);
    assert!(events.contains("event: status_changed"), "{events}");
    assert!(events.contains("You wrote: what is this?"), "{events}");
    let (_, paused) = server.ask(&token, "POST", &format!("{path}/pause"), "");
    assert!(paused.contains("CONFLICT"), "{paused}");
    let said = server.end();
    assert!(said.contains("curl ") && !said.contains(&token), "{said}");
    assert!(!papers.join("server.json").exists());
    let again = Server::start(folder.path());
    assert_eq!(crate::token(folder.path()), token, "it is made once");
    let (_, shown) = again.ask(&token, "GET", &path, "");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["status"], "completed");
    let session = json!({"message": "and this?", "session_id": shown["session_id"]}).to_string();
    assert_eq!(again.ask(&token, "POST", "/v1/tasks", &session).0, 201);
    again.end();
}

#[test]
fn what_cannot_be_a_task_of_this_project_is_refused() {
    let folder = ProjectFolder::new();
    let server = Server::start(folder.path());
    let token = token(folder.path());
    assert_eq!(server.ask("wrong", "GET", "/v1/tasks", "").0, 401);
    for (body, status) in [
        (json!({"message": "hi", "agent": "nobody"}), 404),
        (json!({"message": "hi", "session_id": "unknown"}), 404),
        (json!({"message": "hi", "model": "nobody/nothing"}), 400),
        (json!({"message": "hi", "model": "anthropic/claude-sonnet-4-5"}), 400),
    ] {
        let (got, said) = server.ask(&token, "POST", "/v1/tasks", &body.to_string());
        assert_eq!(got, status, "{body}: {said}");
    }
    assert_eq!(server.ask(&token, "GET", "/v1/tasks", "").1, r#"{"tasks":[]}"#);
    server.end();
}

#[test]
fn a_tool_that_does_not_exist_is_refused_wherever_it_is_named() {
    let folder = ProjectFolder::new();
    let server = Server::start(folder.path());
    let token = token(folder.path());
    let ad_hoc = json!({"type": "ad_hoc", "system_prompt": "Saw.", "tools": ["saw"]});
    let scribe =
        json!({"name": "scribe", "description": "Writes.", "context": "Write.", "tools": ["read"]});
    let (status, made) = server.ask(&token, "POST", "/v1/agents", &scribe.to_string());
    assert_eq!(status, 201, "{made}");
    for (method, path, field, body) in [
        ("POST", "/v1/tasks", "tools", json!({"message": "hi", "tools": ["read", "saw"]})),
        (
            "POST",
            "/v1/invocations",
            "targets[0].tools",
            json!({"targets": [{"agent": ad_hoc, "message": "hi"}]}),
        ),
        (
            "POST",
            "/v1/agents",
            "tools",
            json!({"name": "sawyer", "description": "Saws.", "context": "Saw.", "tools": ["saw"]}),
        ),
        ("PUT", "/v1/agents/scribe", "tools", json!({"tools": ["read", "saw"]})),
    ] {
        let (status, said) = server.ask(&token, method, path, &body.to_string());
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((status, &said["code"]), (422, &json!("DOMAIN_VIOLATION")), "{path}: {said}");
        assert_eq!(said["details"]["field"], field, "{path}: {said}");
        let reason = said["details"]["reason"].as_str().unwrap();
        assert!(reason.starts_with("there is no tool `saw`; available: "), "{path}: {said}");
    }
    // The tool of a server that does not run now may be there later.
    let tools = json!({"tools": ["read", "todo", "call_agent", "mcp__files__list"]}).to_string();
    assert_eq!(server.ask(&token, "PUT", "/v1/agents/scribe", &tools).0, 200);
    assert_eq!(server.ask(&token, "GET", "/v1/tasks", "").1, r#"{"tasks":[]}"#);
    server.end();
}

#[test]
fn an_agent_of_the_project_brings_its_scene_and_the_client_can_only_take_away() {
    let folder = ProjectFolder::new();
    fs::create_dir_all(folder.path().join(".antiphon/agents")).unwrap();
    let reviewer = "---\ndescription: Reviews.\ntools: read, grep\n---\nYou review changes.\n";
    fs::write(folder.path().join(".antiphon/agents/reviewer.md"), reviewer).unwrap();
    let server = Server::start(folder.path());
    let token = token(folder.path());
    let body = json!({"message": "hi", "agent": "reviewer", "tools": ["read", "bash"]}).to_string();
    let (status, accepted) = server.ask(&token, "POST", "/v1/tasks", &body);
    assert_eq!(status, 201, "{accepted}");
    let task: Value = serde_json::from_str(&accepted).unwrap();
    let path = format!("/v1/tasks/{}/events", task["task_id"].as_str().unwrap());
    let (_, events) = server.ask(&token, "GET", &path, "");
    let created = events.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let created: Value = serde_json::from_str(created).unwrap();
    assert_eq!(created["data"]["agent"], "reviewer");
    assert_eq!(created["data"]["tools"], json!(["read"]));
    let scene = created["data"]["system_prompt"].as_str().unwrap();
    assert!(scene.starts_with("You review changes."), "{scene}");
    server.end();
}

#[test]
fn agents_are_defined_changed_and_taken_away_as_files_of_the_project() {
    let folder = ProjectFolder::new();
    let own = home(folder.path()).join(".config/antiphon/agents");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("mine.md"), "---\ndescription: Mine.\n---\nYou are mine.\n").unwrap();
    let server = Server::start(folder.path());
    let token = token(folder.path());
    let ask = |method: &str, path: &str, body: &Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, body) = server.ask(&token, method, &format!("/v1/agents{path}"), &body);
        (status, serde_json::from_str::<Value>(&body).unwrap_or_default())
    };
    // An agent that is always there needs a model.
    let scribe = json!({"name": "scribe", "description": "Writes.", "context": "Write.",
        "model": "scripted/hello",
        "tools": ["read"], "limits": {"turns": 3}});
    let (status, made) = ask("POST", "", &scribe);
    assert_eq!((status, &made["limits"]["turns_max"]), (201, &json!(3)), "{made}");
    let path = folder.path().join(".antiphon/agents/scribe.md");
    assert!(fs::read_to_string(&path).unwrap().ends_with("---\nWrite.\n"));
    let other = json!({"name": "scribe", "description": "Writes.", "context": "Other."});
    assert_eq!(ask("POST", "", &other).0, 409);
    let change = json!({"description": "Writes more.", "tools": null});
    let (status, changed) = ask("PUT", "/scribe", &change);
    assert_eq!((status, &changed["description"]), (200, &json!("Writes more.")), "{changed}");
    assert_eq!((&changed["context"], changed.get("tools")), (&json!("Write."), None));
    assert_eq!(ask("PUT", "/scribe", &json!({"tools": {"a": 1}})).0, 400);
    for (method, body) in [("PUT", json!({"context": "x"})), ("DELETE", Value::Null)] {
        assert_eq!(ask(method, "/mine", &body).0, 403, "the user's own");
    }
    let (status, started) = server.ask(&token, "POST", "/v1/agents/scribe/start", "");
    assert_eq!(status, 200, "{started}");
    assert_eq!(ask("DELETE", "/scribe", &Value::Null).0, 204);
    assert!(!path.exists());
    let (_, live) = server.ask(&token, "GET", "/v1/agents/status", "");
    assert_eq!(live, "[]");
    let (_, listed) = ask("GET", "", &Value::Null);
    let names: Vec<&Value> =
        listed["agents"].as_array().unwrap().iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["mine"]);
    server.end();
}

#[test]
fn a_token_that_others_could_know_is_made_anew() {
    let known = "0123456789abcdef0123456789abcdef";
    let folder = ProjectFolder::new();
    // It came with a clone, for its owner only.
    fs::create_dir(folder.path().join(".antiphon")).unwrap();
    let cloned = folder.path().join(".antiphon/token");
    fs::write(&cloned, known).unwrap();
    fs::set_permissions(&cloned, fs::Permissions::from_mode(0o600)).unwrap();
    Server::start(folder.path()).end();
    let path = state(folder.path()).join("token");
    let made = token(folder.path());
    assert_ne!(made, known);
    // Other users could read it.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    Server::start(folder.path()).end();
    assert_ne!(token(folder.path()), made);
    assert_eq!(mode(&path), 0o600);
    // A link leads somewhere else.
    fs::write(folder.path().join("elsewhere"), known).unwrap();
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(folder.path().join("elsewhere"), &path).unwrap();
    Server::start(folder.path()).end();
    assert_ne!(token(folder.path()), known);
    assert_eq!(fs::read_to_string(folder.path().join("elsewhere")).unwrap(), known);
}

#[test]
fn an_address_that_others_can_reach_takes_a_word() {
    let folder = ProjectFolder::new();
    let output = antiphon(folder.path()).args(["serve", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--insecure-listen"));
    assert!(!folder.path().join(".antiphon").exists(), "nothing was begun");
    assert!(!state(folder.path()).exists(), "nothing was begun");
}

#[test]
fn a_task_that_was_cut_off_by_a_kill_goes_on_at_the_next_start() {
    let folder = ProjectFolder::new();
    let server = Server::start(folder.path());
    let token = token(folder.path());
    let slow = json!({"message": "go", "model": "scripted/slow"}).to_string();
    let (status, body) = server.ask(&token, "POST", "/v1/tasks", &slow);
    assert_eq!(status, 201, "{body}");
    let task: Value = serde_json::from_str(&body).unwrap();
    drop(server);
    let mut server = Server::start(folder.path());
    let mut said = String::new();
    while !said.contains("resuming 1 interrupted task") {
        assert!(server.out.read_line(&mut said).unwrap() > 0, "{said}");
    }
    let path = format!("/v1/tasks/{}/cancel", task["task_id"].as_str().unwrap());
    assert_eq!(server.ask(&token, "POST", &path, "").0, 200);
    server.end();
}

#[test]
fn connections_that_there_are_not_enough_files_for_are_refused() {
    let folder = ProjectFolder::new();
    for number in ["0", "1000001", "many"] {
        let requested = ["serve", "--listen", "127.0.0.1:0", "--connections-max", number];
        let output = antiphon(folder.path()).args(requested).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{number}");
    }
    let binary = assert_cmd::cargo::cargo_bin!("antiphon");
    let script =
        "ulimit -n 2000; exec \"$0\" serve --listen 127.0.0.1:0 --connections-max 5000".to_owned();
    let mut shell = Command::new("sh");
    shell.current_dir(folder.path()).env("HOME", home(folder.path()));
    let output = shell.arg("-c").arg(script).arg(binary).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("5000 connections need 6024 open files"), "{said}");
    assert!(said.contains("ulimit -Hn"), "{said}");
    assert!(!folder.path().join(".antiphon").exists(), "nothing was begun");
    assert!(!state(folder.path()).exists(), "nothing was begun");
}

#[test]
fn a_server_makes_room_for_its_connections() {
    let folder = ProjectFolder::new();
    let binary = assert_cmd::cargo::cargo_bin!("antiphon");
    let script = "ulimit -S -n 256; exec \"$0\" serve --listen 127.0.0.1:0 --connections-max 900";
    let mut shell = Command::new("sh");
    shell.current_dir(folder.path()).env("HOME", home(folder.path()));
    let mut process =
        shell.arg("-c").arg(script).arg(binary).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on http://").unwrap().to_owned();
    let server = Server { process, out, address };
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.process.id())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(files.split_whitespace().nth(3), Some("1924"), "{files}");
    server.end();
}
