//! `antiphon mcp serve`.

use std::time::Instant;

use antiphon_core::{EventBody, Provenance};
use serde_json::{Value, json};

use crate::world::{Client, PATIENCE, World, meta, text};

/// A client that shows forms to its person.
fn forms() -> Value {
    json!({ "elicitation": {} })
}

fn until_status(world: &World, task: &str, status: &str) {
    let end = Instant::now() + PATIENCE;
    loop {
        let shown: Value =
            serde_json::from_str(&world.run(&["tasks", "show", task, "--json"])).unwrap();
        if shown["status"] == status {
            return;
        }
        assert!(Instant::now() < end, "{task} is not {status}: {shown}");
    }
}

/// The id of the task that a call has reported.
fn reported_task(client: &mut Client) -> String {
    let is_task = |line: &Value| {
        line["params"]["message"].as_str().is_some_and(|text| text.starts_with("task "))
    };
    let line = client.until_notified(is_task);
    line["params"]["message"].as_str().unwrap()[5..].to_owned()
}

#[test]
fn agents_are_tools_and_a_call_returns_the_result_and_its_task() {
    let world = World::new();
    let mut client = world.client(&json!({}));
    let tools = client.ask("tools/list", &json!({}))["result"]["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"helper") && names.contains(&"task_get"), "{names:?}");
    // The agent of a tool's name is another tool.
    let clash = names.iter().find(|name| name.starts_with("task_get_")).unwrap();
    let result = client.call(clash, &json!({ "message": "hello" }));
    assert_eq!(result["structuredContent"]["agent"], "task_get", "{result}");
    let result = client.call("helper", &json!({ "message": "hello" }));
    assert_eq!(text(&result), "You said hello");
    let task = &result["structuredContent"];
    assert_eq!((&task["status"], &task["result"]), (&json!("completed"), &json!("You said hello")));
    // The session goes on.
    let more = client.call("helper", &json!({ "message": "more", "session": task["sessionId"] }));
    assert_eq!(more["structuredContent"]["sessionId"], task["sessionId"], "{more}");
    let listed = client.call("task_list", &json!({}));
    assert_eq!(listed["structuredContent"]["tasks"].as_array().unwrap().len(), 3, "{listed}");
    assert_eq!(client.close(), Some(0));
}

#[test]
fn what_a_client_sends_is_recorded_as_the_word_of_a_program() {
    let world = World::new();
    let mut client = world.client(&json!({}));
    let result = client.call("helper", &json!({ "message": "hello" }));
    let task = result["structuredContent"]["taskId"].as_str().unwrap();
    let asks = client.call("helper", &json!({ "message": "ask" }));
    let asks = asks["structuredContent"]["taskId"].as_str().unwrap();
    client.call("task_send", &json!({ "taskId": asks, "message": "hurry" }));
    let by_program = Provenance::Event("mcp".to_owned());
    let (mut created, mut queued) = (0, 0);
    for event in world.events() {
        if let EventBody::TaskCreated(body) = &event.body {
            assert_eq!(body.provenance, by_program, "{event:?}");
            created += 1;
        } else if let EventBody::MessageQueued(body) = &event.body {
            assert_eq!(body.provenance, by_program, "{event:?}");
            queued += 1;
        }
    }
    assert_eq!((created, queued), (2, 1), "{task}, {asks}");
}

#[test]
fn errors_are_results_that_the_model_reads() {
    let world = World::new();
    let mut client = world.client(&json!({}));
    for (arguments, said) in [
        (json!({}), "`message`"),
        (json!({ "message": 1 }), "`message`"),
        (json!({ "message": "x", "sesion": "y" }), "`sesion`"),
        (json!({ "message": "x", "session": "none" }), "there is no such session"),
    ] {
        let result = client.call("helper", &arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert!(text(&result).contains(said), "{result}");
    }
    let failed = client.call("helper", &json!({ "message": "break" }));
    assert_eq!(
        (&failed["isError"], &failed["structuredContent"]["status"]),
        (&json!(true), &json!("failed"))
    );
    assert!(text(&failed).contains("it broke"), "{failed}");
    let unknown = client.ask("tools/call", &json!({ "name": "nothing", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[test]
fn a_call_reports_its_progress_and_a_cancellation_cancels_its_task() {
    let world = World::new();
    let mut client = world.client(&json!({}));
    let params = json!({
        "name": "helper", "arguments": { "message": "stall" }, "_meta": { "progressToken": "p" },
    });
    let id = client.send("tools/call", &params);
    let task = reported_task(&mut client);
    until_status(&world, &task, "running");
    client.notify("notifications/cancelled", &json!({ "requestId": id, "reason": "enough" }));
    until_status(&world, &task, "canceled");
    let numbers: Vec<f64> =
        client.notified.iter().filter_map(|line| line["params"]["progress"].as_f64()).collect();
    assert!(numbers.is_sorted() && !numbers.is_empty(), "{numbers:?}");
}

#[test]
fn an_approval_is_asked_at_the_client_and_the_answer_decides() {
    let world = World::new();
    let mut client = world.client(&forms());
    let id = client.start_call("helper", &json!({ "message": "ask" }));
    let asked = client.until_asked();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    assert!(asked["params"]["message"].as_str().unwrap().contains("touch asked.txt"), "{asked}");
    let accept = json!({ "action": "accept", "content": { "decision": "allow_once" } });
    client.reply(&asked, &accept);
    let answer = client.answer(id);
    assert_eq!(answer["result"]["structuredContent"]["status"], "completed", "{answer}");
    assert!(world.path().join("asked.txt").exists());
}

#[test]
fn an_answer_that_does_not_fit_the_question_decides_nothing() {
    for content in [
        json!({ "decision": "expire" }),
        json!({ "decision": "allow_once", "more": true }),
        json!({ "decision": 1 }),
        json!({}),
    ] {
        let world = World::new();
        let mut client = world.client(&forms());
        let id = client.start_call("helper", &json!({ "message": "ask" }));
        let asked = client.until_asked();
        client.reply(&asked, &json!({ "action": "accept", "content": content }));
        let result = client.answer(id)["result"].clone();
        assert_eq!(result["structuredContent"]["status"], "input_required", "{content}: {result}");
        assert!(text(&result).contains("antiphon approvals allow"), "{result}");
        assert!(!world.path().join("asked.txt").exists());
    }
}

#[test]
fn an_answer_to_a_question_that_was_not_asked_is_dropped() {
    let world = World::new();
    let mut client = world.client(&forms());
    let id = client.start_call("helper", &json!({ "message": "ask" }));
    let asked = client.until_asked();
    let accept = json!({ "action": "accept", "content": { "decision": "allow_once" } });
    client.reply(&json!({ "id": 999_999 }), &accept);
    client.reply(&json!({ "id": "spoofed" }), &accept);
    client.reply(&asked, &json!({ "action": "decline" }));
    let answer = client.answer(id);
    assert_eq!(answer["result"]["structuredContent"]["status"], "completed", "{answer}");
    assert!(!world.path().join("asked.txt").exists(), "the call was refused");
}

#[test]
fn without_elicitation_the_call_says_what_waits_and_a_wait_returns_the_result() {
    let world = World::new();
    let mut client = world.client(&json!({}));
    let result = client.call("helper", &json!({ "message": "ask" }));
    let task = &result["structuredContent"];
    assert_eq!(task["status"], "input_required", "{result}");
    let id = task["approval"]["id"].as_str().unwrap();
    assert!(text(&result).contains(&format!("antiphon approvals allow {id}")), "{result}");
    world.run(&["approvals", "allow", id]);
    let waited = client.call("task_wait", &json!({ "taskId": task["taskId"] }));
    assert_eq!(waited["structuredContent"]["status"], "completed", "{waited}");
    assert!(world.path().join("asked.txt").exists());
}

#[test]
fn a_client_of_2026_asks_by_results_and_comes_back_with_the_answers() {
    let world = World::new();
    let mut client = world.connect(&[]);
    let discovered = client.ask("server/discover", &json!({ "_meta": meta(&forms()) }));
    let versions = discovered["result"]["supportedVersions"].to_string();
    assert!(versions.contains("2026-07-28") && versions.contains("2025-11-25"), "{discovered}");
    let call = json!({
        "name": "helper", "arguments": { "message": "ask" },
        "_meta": meta(&json!({ "elicitation": { "form": {} } })),
    });
    let asked = client.ask("tools/call", &call)["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (id, question) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create", "{asked}");
    let mut again = call.clone();
    again["requestState"] = asked["requestState"].clone();
    // Another id decides nothing.
    let accept = json!({ "action": "accept", "content": { "decision": "allow_once" } });
    again["inputResponses"] = json!({ "00000000-0000-4000-8000-000000000000": accept });
    let refused = client.ask("tools/call", &again)["result"].clone();
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(!world.path().join("asked.txt").exists());
    again["inputResponses"] = json!({ id: accept });
    let done = client.ask("tools/call", &again)["result"].clone();
    assert_eq!(done["structuredContent"]["status"], "completed", "{done}");
    assert!(world.path().join("asked.txt").exists());
}

#[test]
fn a_client_that_knows_tasks_gets_one_and_asks_for_its_state() {
    let world = World::new();
    let mut client = world.connect(&[]);
    let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let call = json!({
        "name": "helper", "arguments": { "message": "stall" }, "_meta": meta(&tasks),
    });
    let created = client.ask("tools/call", &call)["result"].clone();
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    let by_id = json!({ "taskId": created["taskId"], "_meta": meta(&tasks) });
    let state = client.ask("tasks/get", &by_id);
    assert_eq!(state["result"]["status"], "working", "{state}");
    let canceled = client.ask("tasks/cancel", &by_id);
    assert!(canceled.get("result").is_some(), "{canceled}");
    until_status(&world, created["taskId"].as_str().unwrap(), "canceled");
    let state = client.ask("tasks/get", &by_id);
    assert_eq!(state["result"]["status"], "cancelled", "{state}");
}

#[test]
fn tasks_and_sessions_are_resources_and_a_subscription_tells_of_changes() {
    let world = World::new();
    let mut client = world.client(&json!({}));
    let task = client.call("helper", &json!({ "message": "hello" }))["structuredContent"].clone();
    let uri = format!("antiphon://tasks/{}", task["taskId"].as_str().unwrap());
    let listed = client.ask("resources/list", &json!({}))["result"].clone();
    assert_eq!(listed["resources"][0]["uri"], uri.as_str(), "{listed}");
    let next = json!({ "cursor": listed["nextCursor"] });
    let sessions = client.ask("resources/list", &next)["result"].clone();
    let session = format!("antiphon://sessions/{}", task["sessionId"].as_str().unwrap());
    assert_eq!(sessions["resources"][0]["uri"], session.as_str(), "{sessions}");
    let read = client.ask("resources/read", &json!({ "uri": session }))["result"].clone();
    let read: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(read["messages"].as_array().unwrap().len(), 2, "{read}");
    let templates = client.ask("resources/templates/list", &json!({}))["result"].clone();
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 2, "{templates}");
    let none = client.ask("resources/read", &json!({ "uri": "antiphon://tasks/none" }));
    assert_eq!(none["error"]["code"], -32002, "{none}");
    // A task that ends while it is subscribed to.
    let call = json!({
        "name": "helper", "arguments": { "message": "stall" }, "_meta": { "progressToken": 1 },
    });
    client.send("tools/call", &call);
    let running = reported_task(&mut client);
    let uri = format!("antiphon://tasks/{running}");
    assert!(client.ask("resources/subscribe", &json!({ "uri": uri })).get("result").is_some());
    client.call("task_cancel", &json!({ "taskId": running }));
    client.until_notified(|line| {
        line["method"] == "notifications/resources/updated" && line["params"]["uri"] == uri.as_str()
    });
}

#[test]
fn each_agent_has_a_prompt_that_names_its_tool() {
    let world = World::new();
    let mut client = world.client(&json!({}));
    let prompts = client.ask("prompts/list", &json!({}))["result"]["prompts"].clone();
    assert!(prompts.as_array().unwrap().iter().any(|prompt| prompt["name"] == "helper"));
    let get = json!({ "name": "helper", "arguments": { "message": "Look." } });
    let prompt = client.ask("prompts/get", &get)["result"].clone();
    let said = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(said.contains("`helper`") && said.ends_with("Look."), "{prompt}");
    let missing = client.ask("prompts/get", &json!({ "name": "helper" }));
    assert_eq!(missing["error"]["code"], -32602, "{missing}");
}

#[test]
fn two_clients_work_beside_each_other_and_a_kill_of_the_owner_loses_no_task() {
    let world = World::new();
    let mut owner = world.client(&json!({}));
    let mut other = world.client(&json!({}));
    let params = json!({
        "name": "helper", "arguments": { "message": "ask" }, "_meta": { "progressToken": "p" },
    });
    let first = owner.call("helper", &json!({ "message": "hello" }));
    assert_eq!(text(&first), "You said hello");
    let id = other.send("tools/call", &params);
    let result = other.answer(id)["result"]["structuredContent"].clone();
    owner.child.kill().unwrap();
    owner.child.wait().unwrap();
    world.run(&["approvals", "allow", result["approval"]["id"].as_str().unwrap()]);
    let waited = other.call("task_wait", &json!({ "taskId": result["taskId"] }));
    assert_eq!(waited["structuredContent"]["status"], "completed", "{waited}");
}

#[test]
fn a_wait_gives_nothing_of_its_own_process_to_the_task_of_another_one() {
    let world = World::new();
    let mut owner = world.client(&json!({}));
    owner.call("helper", &json!({ "message": "hello" }));
    let mut starter = world.client(&json!({}));
    let task = starter.call("helper", &json!({ "message": "steps" }));
    let task = &task["structuredContent"]["taskId"];
    // In its mode, a file cannot be written.
    let mut waiting = world.client_of(&["--mode", "read-only"], &forms());
    let id = waiting.start_call("task_wait", &json!({ "taskId": task }));
    let accept = json!({ "action": "accept", "content": { "decision": "allow_once" } });
    let first = waiting.until_asked();
    waiting.reply(&first, &accept);
    let second = waiting.until_asked();
    for client in [&mut owner, &mut starter] {
        client.child.kill().unwrap();
        client.child.wait().unwrap();
    }
    waiting.reply(&second, &accept);
    let result = waiting.answer(id)["result"].clone();
    assert_eq!(result["structuredContent"]["status"], "completed", "{result}");
    assert!(world.path().join("written.txt").exists(), "{result}");
}

#[test]
fn a_client_that_goes_away_interrupts_its_task_which_can_be_resumed() {
    let world = World::new();
    let mut client = world.client(&json!({}));
    let params = json!({
        "name": "helper", "arguments": { "message": "stall" }, "_meta": { "progressToken": "p" },
    });
    client.send("tools/call", &params);
    let task = reported_task(&mut client);
    until_status(&world, &task, "running");
    assert_eq!(client.close(), Some(0));
    let shown: Value =
        serde_json::from_str(&world.run(&["tasks", "show", &task, "--json"])).unwrap();
    assert_eq!(
        (&shown["status"], &shown["waiting_for"]),
        (&json!("input_required"), &json!("resume"))
    );
}
