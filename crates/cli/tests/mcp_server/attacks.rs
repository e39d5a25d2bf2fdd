//! What clients must not be able to do.

use serde_json::{Value, json};

use crate::world::{World, initialize, text};

#[test]
fn a_request_needs_a_key_a_known_host_and_no_foreign_origin() {
    let world = World::new();
    let reader = world.key("reader", "read");
    let server = world.server(&[]);
    let token = server.token.clone();
    let body = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize(&json!({})),
    })
    .to_string();
    for (key, more, status) in [
        (None, "", 401),
        (Some("wrong"), "", 401),
        (Some(&*token), "host: evil.example\r\n", 403),
        (Some(&*token), "origin: https://evil.example\r\n", 403),
        (Some(&*token), "", 200),
    ] {
        let reply = server.raw("POST", key, more, &body);
        assert_eq!(reply.status, status, "{more}: {reply:?}");
    }
    assert_eq!(server.raw("POST", Some(&reader), "", &body).status, 403);
}

#[test]
fn messages_that_are_no_messages_are_refused() {
    let world = World::new();
    let server = world.server(&[]);
    let token = server.token.clone();
    let large = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(17 << 20));
    assert_eq!(server.raw("POST", Some(&token), "", &large).status, 413);
    for body in ["", "[", "[]", "null", "{}", "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}"]
    {
        let reply = server.raw("POST", Some(&token), "", body);
        assert!((400..500).contains(&reply.status), "{body}: {reply:?}");
    }
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    assert!((400..500).contains(&server.raw("POST", Some(&token), "", &deep).status));
    // It answers still.
    assert_eq!(
        text(&server.call(&token, "helper", &json!({ "message": "hello" }))),
        "You said hello"
    );
}

#[test]
fn a_session_of_another_key_or_of_none_does_not_exist() {
    let world = World::new();
    let (one, other) = (world.key("one", "write"), world.key("other", "write"));
    let server = world.server(&[]);
    let session = server.session(&one);
    let ask = |key: &str, id: &str| server.in_session(key, id, "tools/list", &json!({})).status;
    assert_eq!(ask(&one, &session), 200);
    for (key, id) in
        [(&other, &*session), (&server.token, &*session), (&one, "unknown"), (&one, "")]
    {
        assert_eq!(ask(key, id), 404, "{id}");
    }
    let stolen = server.raw("GET", Some(&other), &format!("mcp-session-id: {session}\r\n"), "");
    assert_eq!(stolen.status, 404, "{stolen:?}");
    let ended = server.raw("DELETE", Some(&other), &format!("mcp-session-id: {session}\r\n"), "");
    assert_eq!(ended.status, 404, "{ended:?}");
    assert_eq!(ask(&one, &session), 200);
}

#[test]
fn tasks_and_sessions_of_another_key_are_not_visible() {
    let world = World::new();
    let (one, other) = (world.key("one", "write"), world.key("other", "write"));
    let server = world.server(&[]);
    let task =
        server.call(&one, "helper", &json!({ "message": "hello" }))["structuredContent"].clone();
    let (id, session) = (&task["taskId"], &task["sessionId"]);
    let count = |key: &str| {
        let listed = server.call(key, "task_list", &json!({}));
        listed["structuredContent"]["tasks"].as_array().unwrap().len()
    };
    assert_eq!((count(&one), count(&other), count(&server.token)), (1, 0, 1));
    for tool in ["task_get", "task_wait", "task_cancel"] {
        let result = server.call(&other, tool, &json!({ "taskId": id }));
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert!(text(&result).contains("there is no such task"), "{tool}: {result}");
    }
    let sent = server.call(&other, "task_send", &json!({ "taskId": id, "message": "x" }));
    assert!(text(&sent).contains("there is no such task"), "{sent}");
    let joined = server.call(&other, "helper", &json!({ "message": "x", "session": session }));
    assert!(text(&joined).contains("there is no such session"), "{joined}");
    for uri in [
        format!("antiphon://tasks/{}", id.as_str().unwrap()),
        format!("antiphon://sessions/{}", session.as_str().unwrap()),
    ] {
        let read =
            |key: &str| server.ask(key, "resources/read", &json!({ "uri": uri }), &json!({}));
        assert!(read(&one).get("result").is_some(), "{}", read(&one));
        assert!(read(&other).get("error").is_some(), "{}", read(&other));
    }
    let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    for method in ["tasks/get", "tasks/cancel"] {
        let answer = server.ask(&other, method, &json!({ "taskId": id }), &tasks);
        assert!(answer.get("error").is_some(), "{method}: {answer}");
    }
    let state = format!("task:{}", id.as_str().unwrap());
    let call = json!({ "name": "helper", "arguments": { "message": "x" }, "requestState": state });
    let resumed = server.ask(&other, "tools/call", &call, &json!({}))["result"].clone();
    assert_eq!(resumed["isError"], true, "{resumed}");
}

/// As through the native API.
#[test]
fn an_agents_key_cancels_no_task() {
    let world = World::new();
    let new = ["keys", "new", "--name", "a", "--level", "write", "--agent", "helper"];
    let key = world.run(&new).trim().to_owned();
    let server = world.server(&[]);
    let task = server.call(&key, "helper", &json!({ "message": "hello" }));
    let id = &task["structuredContent"]["taskId"];
    assert!(id.is_string(), "{task}");
    let result = server.call(&key, "task_cancel", &json!({ "taskId": id }));
    assert!(text(&result).contains("an agent's key cancels no task"), "{result}");
    let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let answer = server.ask(&key, "tasks/cancel", &json!({ "taskId": id }), &tasks);
    assert!(answer["error"].to_string().contains("an agent's key cancels no task"), "{answer}");
}

#[test]
fn a_key_that_may_not_decide_is_not_asked_and_cannot_answer() {
    let world = World::new();
    let writer = world.key("writer", "write");
    let server = world.server(&[]);
    let forms = json!({ "elicitation": { "form": {} } });
    let call = json!({ "name": "helper", "arguments": { "message": "ask" } });
    let result = server.ask(&writer, "tools/call", &call, &forms)["result"].clone();
    assert_eq!(result["structuredContent"]["status"], "input_required", "{result}");
    assert!(result.get("inputRequests").is_none(), "{result}");
    let task = result["structuredContent"].clone();
    let accept = json!({ "action": "accept", "content": { "decision": "allow_once" } });
    let id = task["approval"]["id"].as_str().unwrap();
    let mut again = call;
    again["requestState"] = json!(format!("task:{}", task["taskId"].as_str().unwrap()));
    again["inputResponses"] = json!({ id: accept });
    let refused = server.ask(&writer, "tools/call", &again, &forms)["result"].clone();
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(text(&refused).contains("may decide"), "{refused}");
    let tasks = json!({
        "elicitation": { "form": {} }, "extensions": { "io.modelcontextprotocol/tasks": {} },
    });
    let update = json!({ "taskId": task["taskId"], "inputResponses": { id: accept } });
    let updated: Value = server.ask(&writer, "tasks/update", &update, &tasks);
    assert!(updated.get("error").is_some(), "{updated}");
    assert!(!world.path().join("asked.txt").exists());
}

#[test]
fn a_line_that_is_too_long_costs_itself_only() {
    let world = World::new();
    let mut client = world.client(&json!({}));
    client.write(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"{}\"}}",
        "x".repeat(17 << 20)
    ));
    client.write("not json");
    let result = client.call("helper", &json!({ "message": "hello" }));
    assert_eq!(text(&result), "You said hello");
}
