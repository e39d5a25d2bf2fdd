//! The history of a conversation on the wire.

use antiphon_core::{
    AssistantBlock, AssistantMessage, Cancel, ImageBlock, InputBlock, Message, MessageStream,
    ModelRef, Signature, StopReason, ToolCallBlock, ToolCallId, ToolResultMessage,
};
use antiphon_model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::world::{
    AT, block, call, config, message, opaque, provider, request, sent, text, thinking, user, whole,
};

fn requested(content: Vec<AssistantBlock>) -> AssistantMessage {
    message(content, StopReason::ToolUse, "tool_use")
}

fn result(id: &str, content: Vec<InputBlock>) -> ToolResultMessage {
    ToolResultMessage {
        tool_call_id: ToolCallId::parse(id).expect("an id"),
        tool_name: "look".to_owned(),
        content,
        is_error: false,
        timestamp: AT,
    }
}

fn found(id: &str) -> Message {
    result(id, vec![InputBlock::text("found")]).into()
}

/// The turns that are sent.
async fn turns(messages: Vec<Message>) -> Value {
    sent(request(messages), None).await["messages"].take()
}

fn tool_use(id: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": "look", "input": input})
}

fn tool_result(id: &str) -> Value {
    let content = json!([{"type": "text", "text": "found"}]);
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
}

#[tokio::test]
async fn results_are_one_user_turn_and_come_first_in_it() {
    let image = ImageBlock::new("image/png", *b"png!").expect("an image");
    let failed = ToolResultMessage { is_error: true, ..result("b", vec![]) };
    let pictured = result("c", vec![InputBlock::text("see"), InputBlock::Image(image)]);
    let messages = vec![
        user("go"),
        requested(vec![
            AssistantBlock::text("I look."),
            call("a", "look", r#"{"n": 1.0}"#),
            call("b", "look", "{}"),
            call("c", "look", "{}"),
        ])
        .into(),
        user("retry_at_once"),
        pictured.into(),
        found("a"),
        failed.into(),
        user("now"),
    ];
    let source = json!({"type": "base64", "media_type": "image/png", "data": "cG5nIQ=="});
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "I look."},
            tool_use("a", &json!({"n": 1.0})),
            tool_use("b", &json!({})),
            tool_use("c", &json!({})),
        ]},
        {"role": "user", "content": [
            tool_result("a"),
            {"type": "tool_result", "tool_use_id": "b", "is_error": true, "content": [
                {"type": "text", "text": "(no output)"},
            ]},
            {"type": "tool_result", "tool_use_id": "c", "content": [
                {"type": "text", "text": "see"},
                {"type": "image", "source": source},
            ]},
            {"type": "text", "text": "retry_at_once"},
            {"type": "text", "text": "now"},
        ]},
    ]);
    assert_eq!(turns(messages).await, expected);
}

#[tokio::test]
async fn the_models_own_thinking_is_sent_back_unchanged() {
    let sealed = r#"{"type":"redacted_thinking","data":"c2VhbA=="}"#;
    let messages = vec![
        user("go"),
        requested(vec![
            thinking("Hm\u{a0}é", Some("c2ln+/==")),
            opaque("redacted_thinking", sealed),
            call("a", "look", "{}"),
        ])
        .into(),
        found("a"),
    ];
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm\u{a0}é", "signature": "c2ln+/=="},
            {"type": "redacted_thinking", "data": "c2VhbA=="},
            tool_use("a", &json!({})),
        ]},
        {"role": "user", "content": [tool_result("a")]},
    ]);
    assert_eq!(turns(messages).await, expected);
}

#[tokio::test]
async fn thinking_of_other_models_and_unsigned_thinking_is_omitted() {
    let signed_call = AssistantBlock::ToolCall(ToolCallBlock {
        id: ToolCallId::parse("a").expect("an id"),
        name: "look".to_owned(),
        arguments: antiphon_core::ToolArguments::from_model(String::new()),
        signature: Some(Signature("c2ln".to_owned())),
    });
    let foreign = AssistantMessage {
        model: Some(ModelRef::parse("gemini/gemini-3").expect("a model")),
        ..requested(vec![
            thinking("Hm", Some("c2ln")),
            opaque("executableCode", r#"{"executableCode":{}}"#),
            signed_call,
        ])
    };
    let unsigned = message(vec![thinking("Hm", None)], StopReason::EndTurn, "end_turn");
    let messages = vec![user("go"), foreign.into(), found("a"), unsigned.into(), user("more")];
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": [tool_use("a", &json!({}))]},
        {"role": "user", "content": [tool_result("a"), {"type": "text", "text": "more"}]},
    ]);
    assert_eq!(turns(messages).await, expected);
}

#[tokio::test]
async fn blocks_that_cannot_be_sent_are_omitted() {
    let half = AssistantMessage {
        stop_reason: StopReason::Aborted,
        ..requested(vec![AssistantBlock::text("I wa")])
    };
    let orphan = requested(vec![AssistantBlock::text("I look."), call("a", "look", "{}")]);
    let messages =
        vec![user("go"), half.into(), found("nobody"), user("on"), orphan.into(), user("well?")];
    let expected = json!([
        {"role": "user", "content": [
            {"type": "text", "text": "go"},
            {"type": "text", "text": "on"},
        ]},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}]},
        {"role": "user", "content": [{"type": "text", "text": "well?"}]},
    ]);
    assert_eq!(turns(messages).await, expected);
}

#[tokio::test]
async fn arguments_that_are_not_an_object_are_sent_as_an_empty_one() {
    let messages = vec![requested(vec![call("a", "look", r#"{"n":"#)]).into(), found("a")];
    let expected = json!([
        {"role": "assistant", "content": [tool_use("a", &json!({}))]},
        {"role": "user", "content": [tool_result("a")]},
    ]);
    assert_eq!(turns(messages).await, expected);
}

#[tokio::test]
async fn ids_that_the_wire_refuses_are_replaced_in_call_and_result() {
    let long = "x".repeat(65);
    let messages = vec![
        requested(vec![call("call|1", "look", "{}"), call(&long, "look", "{}")]).into(),
        found(&long),
        found("call|1"),
        requested(vec![call("call_0", "look", "{}")]).into(),
        found("call_0"),
    ];
    let expected = json!([
        {"role": "assistant", "content": [
            tool_use("call_0", &json!({})),
            tool_use("call_1", &json!({})),
        ]},
        {"role": "user", "content": [tool_result("call_0"), tool_result("call_1")]},
        {"role": "assistant", "content": [tool_use("call_2", &json!({}))]},
        {"role": "user", "content": [tool_result("call_2")]},
    ]);
    assert_eq!(turns(messages).await, expected);
}

#[tokio::test]
async fn an_answer_is_sent_back_unchanged() {
    let called = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}"#;
    let query = r#"{"type":"input_json_delta","partial_json":"{\"query\":\"rust\"}"}"#;
    let found = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","encrypted_content":"ZW5j"}]}"#;
    let thinks = r#"{"type":"thinking","thinking":"Hm","signature":"c2ln"}"#;
    let body = whole(&[
        block(0, thinks, &[]),
        block(1, called, &[query]),
        block(2, found, &[]),
        text(3, "Rust."),
    ]);
    let reply = move |_: &_, _| Reply::events(body.as_str());
    let server = ModelServer::start(reply).await.expect("a server");
    let provider = provider(config(&server, None));
    let ask = |messages| MessageStream::open(&provider, request(messages), Cancel::never(), AT);
    let answer = ask(vec![user("what?")]).complete().await.expect("an answer");
    ask(vec![user("what?"), answer.into(), user("why?")]).complete().await.expect("an answer");
    let expected = json!([
        {"type": "thinking", "thinking": "Hm", "signature": "c2ln"},
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "rust"},
        },
        serde_json::from_str::<Value>(found).expect("JSON"),
        {"type": "text", "text": "Rust."},
    ]);
    assert_eq!(server.requests()[1].json()["messages"][1]["content"], expected);
}
