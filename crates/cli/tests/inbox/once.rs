//! An order is carried out once: a repeated request, because the response was deleted or because of a
//! kill before it was written, gets the same response and changes nothing.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::control::{requested, requester};
use crate::project::{Project, Server};

/// Deletes the response to a request of `boss`, and waits for the next one.
fn answered_anew(project: &Project, name: &str) -> Value {
    let response = project.path().join(format!(".antiphon/requests/boss/{name}.response.json"));
    fs::remove_file(&response).unwrap();
    let text = project.until("it is answered anew", |_| fs::read_to_string(&response).ok());
    serde_json::from_str(&text).unwrap()
}

/// A response without what no two of them share.
fn reported(mut response: Value) -> Value {
    response.as_object_mut().unwrap().remove("time");
    response
}

fn live(project: &Project) -> Vec<String> {
    let status = project.antiphon(&["agents", "status", "--json"]).json();
    let rows = status.as_array().unwrap().iter();
    rows.map(|row| row["agent"].as_str().unwrap().to_owned()).collect()
}

fn served() -> (Project, Server) {
    let project = Project::new();
    let server = project.serve();
    requester(&project, "boss");
    (project, server)
}

#[test]
fn a_spawn_whose_response_is_deleted_does_not_start_what_was_stopped_since() {
    let (project, server) = served();
    let spawn = json!({"action": "spawn_agent", "name": "echo", "profile": "native"});
    let first = requested(&project, "spawn", &spawn);
    assert_eq!(first["status"], "started", "{first}");
    let stop = json!({"action": "stop_agent", "name": "echo"});
    assert_eq!(requested(&project, "stop", &stop)["status"], "stopped");
    assert_eq!(reported(answered_anew(&project, "spawn")), reported(first));
    assert_eq!(live(&project), Vec::<String>::new());
    server.end();
}

#[test]
fn an_update_whose_response_is_deleted_does_not_undo_the_one_behind_it() {
    let (project, server) = served();
    let update = |context: &str| {
        json!({"action": "update_agent_context", "name": "echo",
        "context": context})
    };
    let first = requested(&project, "a", &update("A."));
    assert_eq!(first["status"], "updated", "{first}");
    assert_eq!(requested(&project, "b", &update("B."))["status"], "updated");
    assert_eq!(reported(answered_anew(&project, "a")), reported(first));
    let shown = project.antiphon(&["agents", "show", "echo", "--json"]).json();
    assert_eq!(shown["context"], "B.");
    server.end();
}

#[test]
fn a_stop_without_effect_does_not_stop_an_agent_started_since_also_by_the_next_server() {
    let (project, server) = served();
    let stop = json!({"action": "stop_agent", "name": "echo"});
    let first = requested(&project, "stop", &stop);
    assert_eq!(first["status"], "not_running", "{first}");
    assert_eq!(project.antiphon(&["agents", "start", "echo"]).code, 0);
    assert_eq!(reported(answered_anew(&project, "stop")), reported(first.clone()));
    assert_eq!(live(&project), ["echo"]);
    server.end();
    let server = project.serve();
    assert_eq!(reported(answered_anew(&project, "stop")), reported(first));
    assert_eq!(live(&project), ["echo"]);
    server.end();
}

#[test]
fn records_of_orders_are_listed_only_with_all() {
    let (project, server) = served();
    let invoke = json!({"action": "invoke", "name": "quiet", "prompt": "hi", "wait": true});
    let task_id = requested(&project, "invoke", &invoke)["taskId"].clone();
    for number in 0..3 {
        let stop = json!({"action": "stop_agent", "name": "echo", "id": number.to_string()});
        assert_eq!(requested(&project, &format!("stop{number}"), &stop)["status"], "not_running");
    }
    let titles = |arguments: &[&str]| -> Vec<String> {
        let listed = project.antiphon(&[&["tasks", "list", "--json"], arguments].concat()).json();
        let rows = listed.as_array().unwrap().iter();
        rows.map(|row| row["title"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(titles(&[]), ["hi"]);
    assert_eq!(titles(&["--limit", "1"]), ["hi"]);
    let kept = "stop echo, for boss";
    assert_eq!(titles(&["--all"]), [kept, kept, kept, "hi"]);
    let last = project.antiphon(&["tasks", "show", "last", "--json"]).json();
    assert_eq!(last["task_id"], task_id);
    server.end();
}

#[test]
fn one_id_for_different_orders_is_one_for_each_of_them() {
    let (project, server) = served();
    for agent in ["echo", "quiet"] {
        assert_eq!(project.antiphon(&["agents", "start", agent]).code, 0);
    }
    let [echo, quiet] = ["echo", "quiet"].map(|agent| project.task(agent));
    let invoke = json!({"action": "invoke", "name": "echo", "prompt": "stall", "id": "x"});
    let task_id = requested(&project, "invoke", &invoke)["taskId"].as_str().unwrap().to_owned();
    for (agent, own) in [("echo", echo), ("quiet", quiet)] {
        let stop = json!({"action": "stop_agent", "name": agent, "id": "x"});
        let stopped = requested(&project, &format!("stop-{agent}"), &stop);
        let reported = (&stopped["status"], &stopped["taskId"]);
        assert_eq!(reported, (&json!("stopped"), &json!(own)), "{stopped}");
    }
    let shown = project.antiphon(&["tasks", "show", &task_id, "--json"]).json();
    assert_eq!(shown["status"], "running", "{shown}");
    assert_eq!(project.antiphon(&["tasks", "cancel", &task_id]).code, 0);
    server.end();
}

/// Posts under a key.
fn posted(project: &Project, server: &Server, path: &str, key: &str, body: &str) -> Value {
    let address = server.said.split("http://").nth(1).unwrap().split_whitespace().next().unwrap();
    let token = fs::read_to_string(project.path().join(".antiphon/token")).unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\nidempotency-key: \
         {key}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        token.trim(),
        body.len()
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    socket.read_to_string(&mut reply).unwrap();
    let (_, body) = reply.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {reply}"))
}

#[test]
fn one_key_over_http_for_a_task_and_for_stops_is_one_for_each_of_them() {
    let (project, server) = served();
    for agent in ["echo", "quiet"] {
        assert_eq!(project.antiphon(&["agents", "start", agent]).code, 0);
    }
    let [echo, quiet] = ["echo", "quiet"].map(|agent| project.task(agent));
    let task = json!({"agent": "echo", "message": "stall"}).to_string();
    let task_id = posted(&project, &server, "/v1/tasks", "x", &task)["task_id"].clone();
    for (agent, own) in [("echo", echo), ("quiet", quiet)] {
        let stopped = posted(&project, &server, &format!("/v1/agents/{agent}/stop"), "x", "");
        assert_eq!(stopped, json!({"agent": agent, "task_id": own}));
    }
    let task_id = task_id.as_str().unwrap();
    let shown = project.antiphon(&["tasks", "show", task_id, "--json"]).json();
    assert_eq!(shown["status"], "running", "{shown}");
    assert_eq!(project.antiphon(&["tasks", "cancel", task_id]).code, 0);
    server.end();
}
