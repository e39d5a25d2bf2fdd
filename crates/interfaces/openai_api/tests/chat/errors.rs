//! What cannot be done is said, in OpenAI's words.

use std::num::NonZeroU64;

use antiphon_core::SpendLimits;
use antiphon_interface_transport::ServerLimits;
use serde_json::{Value, json};

use crate::client::{CHAT, Reply, ask, request, say};
use crate::openai::{body, weather, with};
use crate::world::TestServer;

fn error(reply: &Reply) -> Value {
    let mut body = reply.json();
    let error = body["error"].take();
    let fields: Vec<&String> = error.as_object().unwrap().keys().collect();
    let mut sorted = fields.clone();
    sorted.sort();
    assert_eq!(sorted, ["code", "message", "param", "type"]);
    assert!(!error["message"].as_str().unwrap().is_empty(), "{error}");
    error
}

#[tokio::test]
async fn a_field_that_cannot_be_honored_is_named() {
    let server = TestServer::new().await;
    for (more, param) in [
        (json!({ "messages": [], "user": "me" }), "messages"),
        (json!({ "messages": "hello", "user": "me" }), "messages"),
        (json!({ "model": null }), "model"),
        (json!({ "model": 7 }), "model"),
        (json!({ "temperature": 2.1 }), "temperature"),
        (json!({ "temperature": "hot" }), "temperature"),
        (json!({ "max_tokens": 0 }), "max_tokens"),
        (json!({ "max_tokens": 1, "max_completion_tokens": 2 }), "max_tokens"),
        (json!({ "max_completion_tokens": -1 }), "max_completion_tokens"),
        (json!({ "n": 2 }), "n"),
        (json!({ "top_p": 1.5 }), "top_p"),
        (json!({ "stop": [1] }), "stop"),
        (json!({ "stop": vec!["x"; 17] }), "stop"),
        (json!({ "stop": "" }), "stop"),
        (json!({ "seed": 0.5 }), "seed"),
        (json!({ "presence_penalty": -3 }), "presence_penalty"),
        (json!({ "frequency_penalty": "much" }), "frequency_penalty"),
        (json!({ "reasoning_effort": "huge" }), "reasoning_effort"),
        (json!({ "logprobs": true }), "logprobs"),
        (json!({ "parallel_tool_calls": "no" }), "parallel_tool_calls"),
        (json!({ "functions": [] }), "functions"),
        (json!({ "stream": "yes" }), "stream"),
        (json!({ "stream_options": { "include_usage": true } }), "stream_options"),
        (json!({ "tools": [{ "type": "web" }] }), "tools[0]"),
        (
            json!({ "tools": [{ "type": "function", "function": { "name": "a", "parameters": 1 } }] }),
            "tools[0]",
        ),
        (json!({ "tool_choice": "required" }), "tool_choice"),
        (json!({ "tool_choice": "sometimes" }), "tool_choice"),
        (
            json!({ "tools": weather(), "tool_choice": { "type": "function", "function": { "name": "x" } } }),
            "tool_choice",
        ),
        (json!({ "response_format": { "type": "xml" } }), "response_format"),
        (
            json!({ "response_format": { "type": "json_schema" } }),
            "response_format.json_schema.schema",
        ),
        (
            json!({ "response_format": { "type": "json_schema", "json_schema": { "schema": { "type": 7 } } } }),
            "response_format.json_schema.schema",
        ),
    ] {
        let reply = ask(&server, &with("hello", &more)).await;
        let error = error(&reply);
        assert_eq!((reply.status, &error["param"]), (400, &json!(param)), "{more}: {error}");
        for value in ["sometimes", "xml"] {
            let has = more.to_string().contains(value);
            assert!(!has || error["message"].as_str().unwrap().contains(value), "{error}");
        }
        assert_eq!(error["type"], "invalid_request_error");
    }
    assert_eq!(server.requested(), []);
    server.ended().await;
}

#[tokio::test]
async fn an_invalid_conversation_is_refused() {
    let server = TestServer::new().await;
    let user = json!({ "role": "user", "content": "hello" });
    let call =
        json!({ "id": "c1", "type": "function", "function": { "name": "a", "arguments": "{}" } });
    let calls = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    let twice = json!({ "role": "assistant", "tool_calls": [call, call] });
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "x" });
    let image = json!([{ "type": "image_url", "image_url": { "url": "http://x/y.png" } }]);
    for (messages, param) in [
        (json!([{ "role": "user", "content": " " }]), "messages[0]"),
        (json!([{ "content": "x" }]), "messages[0]"),
        (json!(["x"]), "messages[0]"),
        (json!([{ "role": "robot", "content": "x" }]), "messages[0].role"),
        (json!([{ "role": "user", "content": 7 }]), "messages[0].content"),
        (json!([{ "role": "user", "content": [{ "type": "video" }] }]), "messages[0].content[0]"),
        (json!([{ "role": "user", "content": image }]), "messages[0].content[0]"),
        (json!([{ "role": "system", "content": "x" }]), "messages"),
        (json!([user, { "role": "assistant", "content": "x" }]), "messages"),
        (json!([user, calls]), "messages"),
        (json!([user, calls, user]), "messages[2]"),
        (json!([user, calls, result("c2")]), "messages[2]"),
        (json!([user, result("c1")]), "messages[1]"),
        (json!([user, calls, { "role": "tool", "content": "x" }]), "messages[2]"),
        (json!([user, calls, result("c1"), result("c1")]), "messages[3]"),
        (json!([user, twice]), "messages[1].tool_calls[1]"),
    ] {
        let reply = ask(&server, &with("", &json!({ "messages": messages }))).await;
        let error = error(&reply);
        assert_eq!((reply.status, &error["param"]), (400, &json!(param)), "{messages}: {error}");
    }
    assert_eq!(server.requested(), []);
    server.ended().await;
}

#[tokio::test]
async fn each_failure_has_its_status() {
    let server = TestServer::new().await;
    for (body, status, code, kind) in [
        (
            with("x", &json!({ "model": "nobody" })),
            404,
            json!("model_not_found"),
            "invalid_request_error",
        ),
        (with("x", &json!({ "model": "unknown/x" })), 400, json!(null), "invalid_request_error"),
        (body("busy"), 429, json!("rate_limited"), "rate_limit_error"),
        (body("break"), 503, json!("overloaded"), "server_error"),
    ] {
        let reply = ask(&server, &body).await;
        let error = error(&reply);
        assert_eq!((reply.status, &error["code"]), (status, &code), "{error}");
        assert_eq!(error["type"], kind);
        let again = reply.head.contains("retry-after: 1");
        assert_eq!(again, status == 429 || status == 503);
    }
    server.ended().await;
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused() {
    let server =
        TestServer::with(ServerLimits { body_bytes_max: 4096, ..ServerLimits::default() }).await;
    let library = "x-stainless-lang: python\r\n";
    for text in ["", "{", "[]", "\"x\"", "{\"messages\": [", "null", "5", "not json"] {
        let reply = say(&server, &request("POST", CHAT, library, text)).await;
        assert_eq!(reply.status, 400, "{text}: {reply:?}");
        assert_eq!(error(&reply)["type"], "invalid_request_error", "{reply:?}");
        // Without the header of OpenAI's libraries, nothing says that it is OpenAI's.
        let reply = say(&server, &request("POST", CHAT, "", text)).await;
        let refused = reply.json();
        assert_eq!((reply.status, &refused["code"]), (400, &json!("INVALID_REQUEST")), "{refused}");
        assert!(!refused["details"]["reason"].as_str().unwrap().is_empty(), "{refused}");
        if !text.starts_with('{') {
            assert_eq!(refused["details"]["field"], "body", "{text}: {refused}");
        }
    }
    let plain = request("POST", CHAT, "", "{}").replace("application/json", "text/plain");
    let reply = say(&server, &plain).await;
    assert_eq!((reply.status, &error(&reply)["type"]), (415, &json!("invalid_request_error")));
    let long = request("POST", CHAT, "", &"x".repeat(5000));
    assert_eq!(say(&server, &long).await.status, 413);
    let wrong = request("POST", CHAT, "", "{}").replace("Bearer 0", "Bearer 1");
    assert_eq!(say(&server, &wrong).await.status, 401);
    for header in ["idempotency-key: \r\n", "x-antiphon-continue: perhaps\r\n"] {
        let reply = say(&server, &request("POST", CHAT, header, &body("x").to_string())).await;
        assert_eq!(reply.status, 400, "{header}: {reply:?}");
        error(&reply);
    }
    server.ended().await;
}

fn little() -> SpendLimits {
    SpendLimits { daily_nano_usd_max: NonZeroU64::new(1), monthly_nano_usd_max: None }
}

#[tokio::test]
async fn a_spent_budget_is_an_insufficient_quota() {
    let server = TestServer::of(ServerLimits::default(), little()).await;
    assert_eq!(ask(&server, &body("hello")).await.status, 200);
    for stream in [false, true] {
        let reply = ask(&server, &with("hello", &json!({ "stream": stream }))).await;
        let error = error(&reply);
        assert_eq!(reply.status, 503, "{error}");
        let reported = (&error["type"], &error["code"]);
        assert_eq!(reported, (&json!("insufficient_quota"), &json!("insufficient_quota")));
        assert!(reply.head.contains("retry-after: "), "{}", reply.head);
    }
    let canonical = json!({ "model": "scripted/test", "messages": [{
        "id": "123e4567-e89b-42d3-a456-426614174000", "role": "user", "content": "hello",
        "timestamp": chrono::Utc::now(),
    }] });
    let reply = ask(&server, &canonical).await;
    let reported = reply.json();
    assert_eq!(
        (reply.status, &reported["code"]),
        (503, &json!("SERVICE_UNAVAILABLE")),
        "{reported}"
    );
    assert_eq!(
        (&reported["details"]["cause"], &reported["details"]["scope"]),
        (&json!("budget"), &json!("total"))
    );
    assert_eq!(server.requested().len(), 1);
    server.ended().await;
}

#[tokio::test]
async fn a_budget_that_is_spent_midway_ends_the_request() {
    let server = TestServer::of(ServerLimits::default(), little()).await;
    // The agent looks first, which costs more than there is.
    let reply = ask(&server, &with("look", &json!({ "model": "helper" }))).await;
    let error = error(&reply);
    assert_eq!((reply.status, &error["code"]), (503, &json!("insufficient_quota")), "{error}");
    assert_eq!(server.requested().len(), 1);
    server.ended().await;
}
