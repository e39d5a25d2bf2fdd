//! Answers as they come.

use antiphon_interface_transport::ServerLimits;
use serde_json::{Value, json};

use crate::client::{ask, begin, rest};
use crate::openai::{body, weather, with};
use crate::world::{LONG, TestServer};

/// The text in chunks.
pub(crate) fn content(chunks: &[Value]) -> String {
    let text = |chunk: &Value| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned);
    chunks.iter().filter_map(text).collect()
}

fn streamed(text: &str) -> Value {
    with(text, &json!({ "stream": true }))
}

#[tokio::test]
async fn a_stream_has_the_chunks_that_clients_expect() {
    let server = TestServer::new().await;
    let usage = json!({ "stream": true, "stream_options": { "include_usage": true } });
    let reply = ask(&server, &with("hello", &usage)).await;
    let chunks = reply.chunks();
    let (id, created) = (format!("chatcmpl-{}", reply.task()), chunks[0]["created"].clone());
    let chunk = |choices: Value| {
        json!({
            "id": id, "object": "chat.completion.chunk", "created": created,
            "model": "scripted/test", "choices": choices,
        })
    };
    let choice = |delta: Value, reason: Option<&str>| {
        chunk(json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": reason }]))
    };
    let mut bill = chunk(json!([]));
    bill["usage"] = json!({
        "prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6,
        "prompt_tokens_details": { "cached_tokens": 0 },
    });
    let expected = [
        choice(json!({ "role": "assistant", "content": "" }), None),
        choice(json!({ "content": "You said hello" }), None),
        choice(json!({}), Some("stop")),
        bill,
    ];
    assert_eq!(chunks, expected);
    let without = ask(&server, &streamed("hello")).await.chunks();
    assert!(without.iter().all(|chunk| chunk.get("usage").is_none()), "{without:?}");
    server.ended().await;
}

#[tokio::test]
async fn calls_are_streamed_whole_and_once() {
    let server = TestServer::new().await;
    let more = json!({ "stream": true, "tools": weather() });
    let chunks = ask(&server, &with("weather", &more)).await.chunks();
    let call = |index: usize, id: &str, place: &str| {
        let arguments = format!(r#"{{"in":"{place}"}}"#);
        let function = json!({ "name": "weather", "arguments": arguments });
        json!({ "tool_calls": [
            { "index": index, "id": id, "type": "function", "function": function }
        ]})
    };
    let deltas: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    let expected = [
        &json!({ "role": "assistant", "content": "" }),
        &call(0, "c1", "Rome"),
        &call(1, "c2", "Oslo"),
        &json!({}),
    ];
    assert_eq!(deltas, expected);
    assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "tool_calls");
    server.ended().await;
}

#[tokio::test]
async fn a_watcher_that_falls_behind_loses_nothing() {
    let server = TestServer::new().await;
    let chunks = ask(&server, &streamed("a story")).await.chunks();
    assert_eq!(content(&chunks), "x".repeat(LONG));
    assert!(chunks.len() < LONG, "it was never behind");
    server.ended().await;
}

#[tokio::test]
async fn an_early_failure_has_a_status_and_a_late_one_an_error_line() {
    let server = TestServer::new().await;
    let reply = ask(&server, &streamed("busy")).await;
    assert_eq!(reply.status, 429);
    assert_eq!(reply.json()["error"]["code"], "rate_limited");
    let lines = ask(&server, &streamed("break")).await.lines();
    let (last, before) = lines.split_last().unwrap();
    let before: Vec<Value> =
        before.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(content(&before), "It was");
    let error: Value = serde_json::from_str(last).unwrap();
    assert_eq!(error["error"]["code"], "overloaded");
    assert_eq!(error["error"]["type"], "server_error");
    server.ended().await;
}

#[tokio::test]
async fn a_slow_completion_begins_in_time() {
    let wait = std::time::Duration::from_millis(80);
    let limits = ServerLimits { answer_wait: wait, heartbeat: wait / 4, ..ServerLimits::default() };
    let server = TestServer::with(limits).await;
    let whole = ask(&server, &body("slow")).await;
    assert_eq!(whole.status, 200);
    assert!(whole.body.starts_with("  "), "{whole:?}");
    assert_eq!(whole.json()["choices"][0]["message"]["content"], "At last.");
    let socket = begin(&server, "", &streamed("slow")).await;
    let reply = rest(socket).await;
    assert!(reply.body.contains(": alive"), "{reply:?}");
    assert!(reply.body.contains("At last.") && reply.body.ends_with("data: [DONE]\n\n"));
    server.ended().await;
}

#[tokio::test]
async fn a_stream_beyond_the_limit_is_refused_in_the_shape_of_the_request() {
    let server = TestServer::with(ServerLimits { streams_max: 0, ..ServerLimits::default() }).await;
    let reply = ask(&server, &streamed("hello")).await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.json()["error"]["type"], "server_error");
    server.ended().await;
}
