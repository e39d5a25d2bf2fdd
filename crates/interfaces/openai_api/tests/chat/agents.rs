//! Agents that are named as models.

use serde_json::{Value, json};

use crate::client::ask;
use crate::openai::{settled, weather, with};
use crate::streams::content;
use crate::world::TestServer;

#[tokio::test]
async fn an_agent_uses_its_own_tools_and_all_of_its_text_is_sent() {
    let server = TestServer::new().await;
    let scene = json!([
        { "role": "system", "content": "Speak up." },
        { "role": "user", "content": "look" },
    ]);
    let more = json!({ "model": "helper", "messages": scene });
    let answer = settled(&ask(&server, &with("", &more)).await);
    let choice = &answer["choices"][0];
    let text = "Looking.\n\nYou said look";
    assert_eq!(answer["model"], "helper");
    assert_eq!(choice["message"], json!({ "role": "assistant", "content": text, "refusal": null }));
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(server.requested()[0].system_prompt, "You help.\n\nSpeak up.");
    let more = json!({ "model": "helper", "stream": true });
    let chunks = ask(&server, &with("look", &more)).await.chunks();
    assert_eq!(content(&chunks), text);
    server.ended().await;
}

/// Text that was streamed cannot be taken back.
#[tokio::test]
async fn a_stream_whose_answer_breaks_off_after_a_tool_call_ends_with_an_error_line() {
    let server = TestServer::new().await;
    let more = json!({ "model": "helper", "stream": true });
    let reply = ask(&server, &with("falter", &more)).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let lines = reply.lines();
    let (last, before) = lines.split_last().unwrap();
    let before: Vec<Value> =
        before.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(content(&before), "Looking.\n\nI see");
    let error: Value = serde_json::from_str(last).unwrap();
    assert_eq!(error["error"]["code"], "overloaded", "{error}");
    assert_eq!(error["error"]["type"], "server_error", "{error}");
    server.ended().await;
}

#[tokio::test]
async fn an_agent_runs_its_own_calls_and_gives_the_client_the_others() {
    let server = TestServer::new().await;
    let more = json!({ "model": "helper", "tools": weather() });
    let answer = settled(&ask(&server, &with("wander", &more)).await);
    let calls = &answer["choices"][0]["message"]["tool_calls"];
    assert_eq!(calls.as_array().unwrap().len(), 1, "{calls}");
    assert_eq!(calls[0]["id"], "c1");
    server.ended().await;
}

#[tokio::test]
async fn an_agent_chooses_its_tools_itself() {
    let server = TestServer::new().await;
    let more = json!({ "model": "helper", "tools": weather(), "tool_choice": "none" });
    settled(&ask(&server, &with("hello", &more)).await);
    let offered: Vec<String> = server.requested()[0].tools.iter().map(|t| t.name.clone()).collect();
    assert_eq!(offered, ["look", "ask_user", "todo"]);
    let more = json!({ "model": "helper", "tools": weather(), "tool_choice": "required" });
    let reply = ask(&server, &with("hello", &more)).await;
    assert_eq!((reply.status, &reply.json()["error"]["param"]), (400, &json!("tool_choice")));
    let look = json!([{ "type": "function", "function": { "name": "look" } }]);
    let reply = ask(&server, &with("hello", &json!({ "model": "helper", "tools": look }))).await;
    // It has one of that name: the client's takes its place.
    assert_eq!(reply.status, 200, "{reply:?}");
    server.ended().await;
}

/// The agent has a tool `look` of its own, and may call others. The client's takes its place, and stays with the agent.
#[tokio::test]
async fn a_client_may_use_the_names_of_the_tools_of_an_agent_that_calls_others() {
    let server = TestServer::new().await;
    let look =
        json!([{ "type": "function", "function": { "name": "look", "description": "Mine." } }]);
    let answer =
        settled(&ask(&server, &with("look", &json!({ "model": "boss", "tools": look }))).await);
    let calls = &answer["choices"][0]["message"]["tool_calls"];
    assert_eq!(calls[0]["function"]["name"], "look", "the client runs it: {answer}");
    let offered = &server.requested()[0].tools;
    let looks: Vec<&str> = offered
        .iter()
        .filter(|tool| tool.name == "look")
        .map(|tool| tool.description.as_str())
        .collect();
    assert_eq!(looks, ["Mine."]);
    assert!(offered.iter().any(|tool| tool.name == "call_agent"), "{offered:?}");
    let reply = ask(
        &server,
        &with(
            "hello",
            &json!({ "model": "boss", "tools": [
        { "type": "function", "function": { "name": "call_agent" } }
    ] }),
        ),
    )
    .await;
    assert_eq!(reply.status, 400, "{reply:?}");
    server.ended().await;
}

#[tokio::test]
async fn a_client_may_offer_512_tools() {
    let server = TestServer::new().await;
    let tools = |count: usize| -> Value {
        (0..count)
            .map(|n| json!({ "type": "function", "function": { "name": format!("tool_{n}") } }))
            .collect()
    };
    let reply = ask(&server, &with("hello", &json!({ "tools": tools(512) }))).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(server.requested()[0].tools.len(), 512);
    let reply = ask(&server, &with("hello", &json!({ "tools": tools(513) }))).await;
    assert_eq!(reply.status, 400, "{reply:?}");
    server.ended().await;
}
