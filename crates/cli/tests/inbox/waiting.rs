//! Who waits for an answer and leaves, and what waits for an agent that has failed.

use std::process::Command;

use serde_json::json;

use crate::project::{Project, Seen};

#[test]
fn a_client_that_stops_waiting_learns_that_the_request_continues_and_where_to_look() {
    let project = Project::new();
    let server = project.serve();
    let waiting = project.spawn(&["send", "echo", "--request", "stall", "--wait"]);
    let id = project.until("it is at work", |project| {
        let status = project.antiphon(&["agents", "status", "--json"]).json();
        let thinks = status[0]["state"] == "thinking";
        let said = if thinks { project.said("echo") } else { Vec::new() };
        said.first().map(|(_, text)| text.split(' ').nth(1).unwrap().to_owned())
    });
    let process = waiting.id().to_string();
    assert!(Command::new("kill").args(["-INT", &process]).status().unwrap().success());
    let seen = Seen::of(waiting.wait_with_output().unwrap());
    assert_eq!((seen.code, seen.out.as_str()), (130, ""), "{seen:?}");
    let continues = format!("request {id} continues: see `antiphon inbox show {id}`");
    assert!(seen.err.contains(&continues), "{seen:?}");
    let shown = project.antiphon(&["inbox", "show", &id, "--json"]).json();
    assert_eq!(shown["state"], "taken");
    assert_eq!(project.antiphon(&["agents", "stop", "echo"]).code, 0);
    server.end();
}

#[test]
fn what_waits_for_an_agent_that_has_failed_is_listed_so() {
    let project = Project::new();
    // One more than a turn takes.
    let lines = "break down\n".repeat(17);
    assert_eq!(project.fed(&["send", "echo", "-"], lines.as_bytes()).code, 0);
    let task = project.task("echo");
    let server = project.serve();
    project.until("it fails", |project| {
        let shown = project.antiphon(&["tasks", "show", &task, "--json"]).json();
        (shown["status"] == "failed").then_some(())
    });
    let listed = project.antiphon(&["inbox", "list"]).out;
    let agents: Vec<&str> =
        listed.lines().skip(1).filter_map(|line| line.split("  ").next()).collect();
    assert_eq!(agents, ["echo (failed)"], "{listed}");
    let row = project.antiphon(&["inbox", "list", "--json"]).json()[0].clone();
    assert_eq!((&row["agent"], &row["live"]), (&json!("echo"), &json!(false)));
    server.end();
}
