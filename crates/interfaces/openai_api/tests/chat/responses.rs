//! Responses, as OpenAI's clients and Codex ask for them.

use serde_json::{Value, json};

use crate::client::{Reply, request, say};
use crate::world::TestServer;

const RESPONSES: &str = "/v1/responses";

async fn post(server: &TestServer, path: &str, body: &Value) -> Reply {
    say(server, &request("POST", path, "", &body.to_string())).await
}

async fn create(server: &TestServer, input: Value, more: &Value) -> Reply {
    let mut body = json!({ "model": "scripted/test", "input": input });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    post(server, RESPONSES, &body).await
}

fn weather() -> Value {
    json!([{ "type": "function", "name": "weather", "parameters": { "type": "object" } }])
}

#[tokio::test]
async fn a_response_is_answered_shown_and_listed_with_its_input() {
    let server = TestServer::new().await;
    let reply = create(&server, json!("hello"), &json!({})).await;
    let body = reply.json();
    assert_eq!((reply.status, &body["status"]), (200, &json!("completed")), "{body}");
    assert_eq!(body["output"][0]["content"][0]["text"], "You said hello");
    assert_eq!(body["usage"]["total_tokens"], 6);
    let id = body["id"].as_str().unwrap();
    let shown = say(&server, &request("GET", &format!("{RESPONSES}/{id}"), "", "")).await.json();
    assert_eq!(shown["output"], body["output"]);
    let path = format!("{RESPONSES}/{id}/input_items");
    let items = say(&server, &request("GET", &path, "", "")).await.json();
    assert_eq!(items["data"][0]["content"][0]["text"], "hello", "{items}");
    server.ended().await;
}

#[tokio::test]
async fn outputs_of_calls_continue_a_previous_response() {
    let server = TestServer::new().await;
    let tools = json!({ "tools": weather() });
    let first = create(&server, json!("weather"), &tools).await.json();
    let calls: Vec<&Value> = first["output"].as_array().unwrap().iter().collect();
    assert_eq!(calls.len(), 2, "{first}");
    assert_eq!(calls[0]["type"], "function_call");
    let outputs: Value = calls
        .iter()
        .map(|call| json!({ "type": "function_call_output", "call_id": call["call_id"], "output": "sun" }))
        .collect();
    let more = json!({ "tools": weather(), "previous_response_id": first["id"] });
    let incomplete = create(&server, json!("and?"), &more).await;
    assert_eq!(incomplete.status, 400, "{incomplete:?}");
    let next = create(&server, outputs, &more).await;
    let body = next.json();
    assert_eq!(body["output"][0]["content"][0]["text"], "Then: sun", "{body}");
    let requested = server.requested().pop().unwrap();
    assert_eq!(requested.messages.len(), 4);
    server.ended().await;
}

#[tokio::test]
async fn a_stream_has_the_events_of_openai_in_order() {
    let server = TestServer::new().await;
    let reply = create(&server, json!("hello"), &json!({ "stream": true })).await;
    let names: Vec<&str> =
        reply.body.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let mut kinds = names.clone();
    kinds.dedup();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    server.ended().await;
}

#[tokio::test]
async fn a_freeform_tool_and_a_conversation_of_codex_are_read() {
    let server = TestServer::new().await;
    let input = json!([
        { "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": "Be brief." }] },
        { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hello" }] },
        { "type": "reasoning", "summary": [], "encrypted_content": "gAAAA" },
        { "type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin" },
        { "type": "custom_tool_call_output", "call_id": "c1", "output": "Done" },
        { "type": "local_shell_call", "call_id": "c2", "status": "completed", "action": { "type": "exec", "command": ["ls"] } },
        { "type": "function_call_output", "call_id": "c2", "output": "a.txt" },
    ]);
    let tools = json!([
        { "type": "custom", "name": "apply_patch", "format": { "type": "grammar" } },
        { "type": "web_search" },
        { "type": "namespace", "name": "agents", "tools": [{ "type": "function", "name": "spawn" }] },
    ]);
    let more =
        json!({ "tools": tools, "store": false, "include": ["reasoning.encrypted_content"] });
    let reply = create(&server, input, &more).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let requested = server.requested().remove(0);
    let names: Vec<&str> = requested.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["apply_patch", "agents__spawn"]);
    assert_eq!((requested.system_prompt.as_str(), requested.messages.len()), ("Be brief.", 5));
    let id = reply.json()["id"].as_str().unwrap().to_owned();
    let gone = say(&server, &request("GET", &format!("{RESPONSES}/{id}"), "", "")).await;
    assert_eq!(gone.status, 404);
    server.ended().await;
}

#[tokio::test]
async fn what_cannot_be_honored_is_refused_by_name() {
    let server = TestServer::new().await;
    for (input, more, param) in [
        (json!(7), json!({}), "input"),
        (json!([{ "type": "item_reference", "id": "x" }]), json!({}), "input"),
        (json!([{ "type": "function_call", "name": "a" }]), json!({}), "input[0].call_id"),
        (json!("hi"), json!({ "prompt": { "id": "x" } }), "prompt"),
        (json!("hi"), json!({ "tools": [{ "type": "robot", "name": "a" }] }), "tools[0].type"),
        (json!("hi"), json!({ "tool_choice": "required" }), "tool_choice"),
        (json!("hi"), json!({ "max_output_tokens": 0 }), "max_output_tokens"),
        (json!("hi"), json!({ "background": true, "stream": true }), "background"),
    ] {
        let reply = create(&server, input, &more).await;
        assert_eq!(
            (reply.status, &reply.json()["error"]["param"]),
            (400, &json!(param)),
            "{reply:?}"
        );
    }
    let forged = json!({ "previous_response_id": "resp_01a1e0da-988b-7322-b113-5f71f30110ba" });
    let reply = create(&server, json!("hi"), &forged).await;
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (404, &json!("response_not_found")));
    let text = request("POST", RESPONSES, "", "{}").replace("Bearer ", "Bearer x");
    let reply = say(&server, &text).await;
    assert_eq!(
        (reply.status, &reply.json()["error"]["type"]),
        (401, &json!("authentication_error"))
    );
    server.ended().await;
}

#[tokio::test]
async fn unknown_items_are_ignored_and_a_compaction_is_its_text() {
    let server = TestServer::new().await;
    let input = json!([
        { "type": "item_reference", "id": "msg_1" },
        { "type": "compaction", "encrypted_content": "gAAAA" },
        { "type": "compaction", "summary": [{ "type": "summary_text", "text": "They met." }] },
        { "type": "of_tomorrow", "content": { "deep": [1] } },
        { "type": "message", "role": "user", "content": "hello" },
    ]);
    let reply = create(&server, input, &json!({})).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let requested = server.requested().remove(0);
    let said: Vec<String> = requested.messages.iter().map(crate::openai::text_of).collect();
    let expected = ["user: Summary of the conversation before:\nThey met.", "user: hello"];
    assert_eq!(said, expected);
    let reply = create(&server, json!([{ "type": "of_tomorrow" }]), &json!({})).await;
    assert_eq!(reply.status, 400, "nothing is left: {reply:?}");
    server.ended().await;
}

#[tokio::test]
async fn a_name_that_is_too_long_is_shortened_for_the_model_and_whole_for_the_client() {
    let server = TestServer::new().await;
    let namespace = "a_server_with_a_name_of_forty_characters";
    let names = ["weather_of_a_place_tomorrow_morning", "weather_of_a_place_tomorrow_evening"];
    let tools: Value =
        names.iter().map(|name| json!({ "type": "function", "name": name })).collect();
    let tools = json!([{ "type": "namespace", "name": namespace, "tools": tools }]);
    let choice = json!({ "type": "function", "namespace": namespace, "name": names[1] });
    let more = json!({ "tools": tools, "tool_choice": choice });
    let reply = create(&server, json!("hello"), &more).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let requested = server.requested().remove(0);
    let known: Vec<&str> = requested.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(known.iter().all(|name| name.len() <= 64 && name.starts_with(namespace)), "{known:?}");
    assert_ne!(known[0], known[1]);
    let chosen = antiphon_core::ToolChoice::Named(known[1].to_owned());
    assert_eq!(requested.tool_choice, chosen);
    // A call of it goes back to the client with both names, and comes again as an item.
    let call = json!({ "type": "function_call", "call_id": "c1", "namespace": namespace,
        "name": names[1], "arguments": "{}" });
    let output = json!({ "type": "function_call_output", "call_id": "c1", "output": "sun" });
    let user = json!({ "role": "user", "content": "hello" });
    let reply = create(&server, json!([user, call, output]), &more).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let requested = server.requested().remove(1);
    let Some(antiphon_core::Message::Assistant(answer)) = requested.messages.get(1).map(|it| &**it)
    else {
        panic!("{requested:?}")
    };
    assert_eq!(answer.tool_calls().next().unwrap().name, known[1]);
    server.ended().await;
}
