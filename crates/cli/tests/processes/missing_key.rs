//! A task whose process is gone, at an owner that lacks its key.

use std::fs;

use antiphon_model_server::ModelServer;
use serde_json::Value;

use crate::anthropic_wire;
use crate::project::{Project, Run, until};

const KEY: &str = "sk-ant-of-the-first-process";

/// `antiphon run` with a key and the address of its provider.
fn with_key(project: &Project, url: &str, arguments: &[&str]) -> Run {
    let mut command = project.command(&["run", "--json", "--mode", "full", "--model"]);
    command.args(arguments).env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", url);
    Run::start(command)
}

/// The task that `id` names, as the list shows it.
fn listed(project: &Project, id: &str) -> Value {
    project.tasks().into_iter().find(|task| task["task_id"] == id).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_waits_for_its_key_and_goes_on_when_a_process_has_it() {
    let model = ModelServer::start(|_, number| match number {
        0 => anthropic_wire::bash("call-1", "echo called >> effects; sleep 600"),
        _ => anthropic_wire::text("Done with the key."),
    });
    let model = model.await.unwrap();
    let url = model.url();
    tokio::task::spawn_blocking(move || {
        let project = Project::new();
        let mut first = with_key(&project, &url, &["anthropic/claude-sonnet-4-5", "go"]);
        first.until_event("tool_started");
        project.wait_for_owner();
        let task = first.printed()[0]["task_id"].as_str().unwrap().to_owned();
        // The first call is cut off with the owner, and this process is the owner during the second.
        let wait = "until [ -e go ]; do sleep 0.02; done";
        project.script("client", &[wait, wait]);
        let mut client = project.run("client");
        client.until_event("tool_started");
        first.kill();

        until("the wait", || listed(&project, &task)["waiting_for"] == "model");
        let waiting = listed(&project, &task);
        assert_eq!(waiting["status"], "running", "{waiting}");
        assert_eq!(waiting["wait"]["code"], "no_model", "{waiting}");
        let why = waiting["wait"]["error"].as_str().unwrap();
        assert!(why.contains("ANTHROPIC_API_KEY"), "{why}");
        assert!(why.contains("the process that started the task is gone"), "{why}");
        assert_eq!(model.served(), 1, "no other model is asked");

        // The key of the same provider elsewhere is of no use to it.
        let elsewhere = with_key(&project, "http://127.0.0.1:9", &["scripted/hello", "hello"]);
        elsewhere.end().assert_whole();
        assert_eq!(listed(&project, &task)["waiting_for"], "model");

        with_key(&project, &url, &["scripted/hello", "hello"]).end().assert_whole();
        until("its end", || listed(&project, &task)["status"] == "completed");
        assert_eq!(model.served(), 2);
        assert_eq!(model.requests()[1].header("x-api-key"), Some(KEY));
        assert_eq!(project.read("effects"), "called\n");
        fs::write(project.path().join("go"), "").unwrap();
        client.end().assert_whole();
    })
    .await
    .unwrap();
}
