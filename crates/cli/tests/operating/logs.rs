//! What a server says of itself on standard error.

use serde_json::Value;

use crate::server::{Project, Server};

#[test]
fn a_log_for_programs_is_json_line_by_line_and_holds_no_secret() {
    let project = Project::new();
    let key = project.out(&["keys", "new", "--name", "k", "--level", "write"]).trim().to_owned();
    let everything = [("ANTIPHON_LOG", "trace")];
    let server = Server::with(&project, &["--log-format", "json"], &everything);
    server.work(&key, "");
    server.work(&project.token(), "");
    assert_eq!(server.status(&format!("{}zzzz", &key[..key.len() - 4]), "GET /v1/tasks"), 401);
    server.end();
    let log = project.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answered: Vec<&Value> = lines.iter().filter(|line| line["message"] == "answered").collect();
    assert_eq!(answered[0]["http.route"], "/v1/tasks");
    assert_eq!(answered[0]["http.status"], 201);
    assert!(lines.iter().any(|line| line["message"] == "a key was refused"), "{log}");
    assert!(!log.contains(&key[12..]) && !log.contains(&project.token()), "a secret was logged");
    assert!(!log.contains("hello\""), "what people wrote was logged");
}

#[test]
fn a_server_logs_nothing_by_default() {
    let project = Project::new();
    let server = Server::start(&project);
    server.work(&project.token(), "");
    server.end();
    assert_eq!(project.log(), "");
}
