//! Canonical chat.

use serde_json::{Value, json};

use crate::client::{ask, begin, rest};
use crate::openai::weather;
use crate::world::TestServer;

fn message(role: &str, content: &str) -> Value {
    let id = "7f9c24e8-3b12-4fef-91e0-5f2d0e5a1c11";
    json!({ "id": id, "role": role, "content": content, "timestamp": "2026-01-02T03:04:05Z" })
}

fn body(messages: &[Value], more: &Value) -> Value {
    let mut body = more.clone();
    body["messages"] = json!(messages);
    body
}

fn settled(mut answer: Value) -> Value {
    assert!(answer["message"]["id"].take().is_string());
    assert!(answer["message"]["timestamp"].take().is_string());
    answer
}

#[tokio::test]
async fn a_canonical_body_is_answered_in_canonical_form() {
    let server = TestServer::new().await;
    let text_of = [message("system", "Be brief."), message("user", "hello")];
    let more = json!({ "temperature": 1.5, "max_tokens": 9 });
    let reply = ask(&server, &body(&text_of, &more)).await;
    let expected = json!({
        "message": { "id": null, "role": "assistant", "content": "You said hello", "timestamp": null },
        "model": "scripted/test",
        "usage": { "prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6 },
    });
    assert_eq!(settled(reply.json()), expected);
    let requested = server.requested().remove(0);
    assert_eq!(requested.system_prompt, "Be brief.");
    assert_eq!(requested.temperature.map(f64::from), Some(1.5));
    assert_eq!(requested.max_tokens, 9.try_into().ok());
    let reply = ask(&server, &body(&text_of, &json!({ "stream": true }))).await;
    let mut chunks = reply.chunks();
    assert_eq!(settled(chunks.pop().unwrap()), expected);
    assert_eq!(chunks, [json!({ "delta": "You said hello" })]);
    server.ended().await;
}

#[tokio::test]
async fn metadata_carries_calls_and_results() {
    let server = TestServer::new().await;
    let tools = json!({ "tools": weather() });
    let first = ask(&server, &body(&[message("user", "weather")], &tools)).await.json();
    let calls: Value =
        serde_json::from_str(first["message"]["metadata"]["tool_calls"].as_str().unwrap()).unwrap();
    assert_eq!(calls[1]["function"]["arguments"], r#"{"in":"Oslo"}"#);
    let result = |id: &str, text: &str| {
        let mut result = message("user", text);
        result["metadata"] = json!({ "tool_call_id": id });
        result
    };
    let answer = first["message"].clone();
    let text_of = [message("user", "weather"), answer, result("c1", "sun"), result("c2", "snow")];
    let second = ask(&server, &body(&text_of, &tools)).await.json();
    assert_eq!(second["message"]["content"], "Then: snow");
    server.ended().await;
}

#[tokio::test]
async fn a_canonical_body_is_refused_in_the_native_shape() {
    let server = TestServer::new().await;
    let mut old = message("user", "hello");
    old["timestamp"] = json!("1826-01-02T03:04:05Z");
    let no_id = json!({ "role": "user", "content": "x", "timestamp": "2026-01-02T03:04:05Z" });
    for (messages, more, status, code) in [
        (vec![message("user", " ")], json!({}), 422, "INVALID_MESSAGE"),
        (vec![old], json!({}), 422, "INVALID_MESSAGE"),
        (vec![message("robot", "x")], json!({}), 400, "INVALID_REQUEST"),
        (vec![message("user", "x"), no_id], json!({}), 400, "INVALID_REQUEST"),
        (vec![message("system", "x")], json!({}), 400, "INVALID_REQUEST"),
        (vec![message("user", "x")], json!({ "model": "nobody" }), 404, "NOT_FOUND"),
        (vec![message("user", "x")], json!({ "temperature": 2.5 }), 400, "INVALID_REQUEST"),
        (vec![message("user", "busy")], json!({}), 429, "RATE_LIMIT_EXCEEDED"),
    ] {
        let reply = ask(&server, &body(&messages, &more)).await;
        let refused = reply.json();
        assert_eq!((reply.status, &refused["code"]), (status, &json!(code)), "{refused}");
        assert!(!refused["message"].as_str().unwrap().is_empty());
        assert_eq!(refused.get("error"), None);
    }
    server.ended().await;
}

#[tokio::test]
async fn a_body_without_messages_is_refused_in_the_native_shape_unless_it_is_clearly_openai() {
    let server = TestServer::new().await;
    for body in [
        json!({}),
        json!({ "messages": [] }),
        json!({ "messages": null }),
        json!({ "model": "scripted/test", "messages": [], "temperature": 1.0 }),
    ] {
        let reply = ask(&server, &body).await;
        let refused = reply.json();
        assert_eq!((reply.status, &refused["code"]), (400, &json!("INVALID_REQUEST")), "{refused}");
        assert_eq!(
            refused["details"],
            json!({ "field": "messages", "reason": "missing or empty: send at least one message" })
        );
    }
    for more in [json!({ "n": 1 }), json!({ "stream_options": null }), json!({ "user": "me" })] {
        let reply = ask(&server, &body(&[], &more)).await;
        assert_eq!(reply.json()["error"]["param"], "messages", "{more}");
    }
    let library = begin(&server, "x-stainless-lang: python\r\n", &json!({ "messages": [] })).await;
    assert_eq!(rest(library).await.json()["error"]["param"], "messages");
    server.ended().await;
}

#[tokio::test]
async fn a_refusal_names_the_field_and_the_reason() {
    let server = TestServer::new().await;
    let mut undated = message("user", "x");
    undated["timestamp"] = json!("yesterday");
    for (messages, more, field, reason) in [
        (vec![message("user", " ")], json!({}), "messages[0].content", "must not be blank"),
        (vec![message("robot", "x")], json!({}), "messages[0].role", "unknown variant `robot`"),
        (vec![undated], json!({}), "messages[0].timestamp", "invalid"),
        (vec![message("user", "x")], json!({ "temperature": 2.5 }), "temperature", "from 0 to 2"),
        (vec![message("user", "x")], json!({ "n": 2 }), "n", "not supported"),
    ] {
        let details = ask(&server, &body(&messages, &more)).await.json()["details"].clone();
        assert_eq!(details["field"], field, "{details}");
        assert!(details["reason"].as_str().unwrap().contains(reason), "{details}");
    }
    server.ended().await;
}

#[tokio::test]
async fn ids_and_metadata_are_kept_in_the_task_and_an_answer_keeps_its_id() {
    let server = TestServer::new().await;
    let mut user = message("user", "hello");
    user["metadata"] = json!({ "ticket": "42" });
    let system = message("system", "Be brief.");
    let sent = body(&[system.clone(), user.clone()], &json!({}));
    let asked = async || rest(begin(&server, "idempotency-key: k\r\n", &sent).await).await;
    let (first, again) = (asked().await, asked().await);
    assert_eq!(first.json(), again.json(), "the same request, the same answer, with its id");
    let id: uuid::Uuid = first.json()["message"]["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(id.get_version_num(), 4);
    let kept = server.orchestrator.task(&first.task()).await.unwrap().created.canonical;
    let mut expected = [system, user];
    for header in &mut expected {
        header.as_object_mut().unwrap().remove("content");
    }
    assert_eq!(json!(kept), json!(expected));
    server.ended().await;
}
