//! The history of a conversation on the wire.

use antiphon_core::{
    AssistantBlock, AssistantMessage, Cancel, ImageBlock, InputBlock, Message, MessageStream,
    ModelRef, StopReason, ToolCallId, ToolResultMessage,
};
use antiphon_model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::world::{
    AT, call, config, message, opaque, provider, request, sent, signature, thinking, user, whole,
};

/// The placeholder for a missing signature.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

fn requested(content: Vec<AssistantBlock>) -> AssistantMessage {
    message(content, StopReason::ToolUse, "STOP")
}

fn foreign(content: Vec<AssistantBlock>) -> AssistantMessage {
    let model = ModelRef::parse("anthropic/claude").expect("a model");
    AssistantMessage { model: Some(model), ..requested(content) }
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
    sent(request(messages)).await["contents"].take()
}

fn function_call(id: &str, signature: &str) -> Value {
    let mut part = bare_call(id);
    part["thoughtSignature"] = json!(signature);
    part
}

fn bare_call(id: &str) -> Value {
    json!({"functionCall": {"id": id, "name": "look", "args": {}}})
}

fn response(id: &str, response: &Value) -> Value {
    json!({"functionResponse": {"id": id, "name": "look", "response": response}})
}

fn found_response(id: &str) -> Value {
    response(id, &json!({"output": "found"}))
}

#[tokio::test]
async fn results_are_one_user_turn_and_come_first_in_it() {
    let image = ImageBlock::new("image/png", *b"png!").expect("an image");
    let failed = ToolResultMessage {
        is_error: true,
        ..result("b", vec![InputBlock::text("no"), InputBlock::text("such")])
    };
    let pictured = result("c", vec![InputBlock::Image(image), InputBlock::text("see")]);
    let messages = vec![
        user("go"),
        requested(vec![
            AssistantBlock::text("I look."),
            call("a", r#"{"n": 1.0}"#, Some("c2ln")),
            call("b", "{}", None),
            call("c", "{}", None),
            call("d", "{}", None),
        ])
        .into(),
        user("retry_at_once"),
        result("d", vec![]).into(),
        pictured.into(),
        found("a"),
        failed.into(),
    ];
    let first = json!({
        "functionCall": {"id": "a", "name": "look", "args": {"n": 1.0}},
        "thoughtSignature": "c2ln",
    });
    let expected = json!([
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [
            {"text": "I look."},
            first,
            bare_call("b"),
            bare_call("c"),
            bare_call("d"),
        ]},
        {"role": "user", "parts": [
            found_response("a"),
            response("b", &json!({"error": "no\nsuch"})),
            response("c", &json!({"output": "see"})),
            {"inlineData": {"mimeType": "image/png", "data": "cG5nIQ=="}},
            response("d", &json!({"output": "(no output)"})),
            {"text": "retry_at_once"},
        ]},
    ]);
    assert_eq!(turns(messages).await, expected);
}

#[tokio::test]
async fn the_models_own_signatures_are_sent_back_unchanged() {
    let messages = vec![
        user("go"),
        requested(vec![
            thinking("Hm\u{a0}é", Some("dGhpbms+/w==")),
            AssistantBlock::text("I look."),
            signature("dGV4dA=="),
            call("a", "{}", Some("Y2FsbA==")),
            opaque("executableCode", r#"{"executableCode":{"code":"1"}}"#),
        ])
        .into(),
        found("a"),
    ];
    let expected = json!([
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [
            {"text": "Hm\u{a0}é", "thought": true, "thoughtSignature": "dGhpbms+/w=="},
            {"text": "I look."},
            {"text": "", "thoughtSignature": "dGV4dA=="},
            function_call("a", "Y2FsbA=="),
            {"executableCode": {"code": "1"}},
        ]},
        {"role": "user", "parts": [found_response("a")]},
    ]);
    assert_eq!(turns(messages).await, expected);
}

#[tokio::test]
async fn thinking_and_signatures_of_other_models_are_omitted() {
    let messages = vec![
        user("go"),
        foreign(vec![
            thinking("Hm", Some("c2ln")),
            opaque("redacted_thinking", r#"{"type":"redacted_thinking"}"#),
            call("a", "{}", Some("c2ln")),
            call("b", "{}", None),
        ])
        .into(),
        found("a"),
        found("b"),
        message(vec![thinking("Hm", None)], StopReason::EndTurn, "STOP").into(),
        user("more"),
    ];
    let expected = json!([
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [function_call("a", NO_SIGNATURE), bare_call("b")]},
        {"role": "user", "parts": [
            found_response("a"),
            found_response("b"),
            {"text": "more"},
        ]},
    ]);
    assert_eq!(turns(messages).await, expected);
}

#[tokio::test]
async fn the_first_remaining_call_is_signed_even_if_it_was_not_the_first() {
    let content = vec![call("a", "{}", Some("c2ln")), call("b", "{}", None)];
    let expected = json!([
        {"role": "model", "parts": [function_call("b", NO_SIGNATURE)]},
        {"role": "user", "parts": [found_response("b")]},
    ]);
    assert_eq!(turns(vec![requested(content).into(), found("b")]).await, expected);
}

#[tokio::test]
async fn parts_that_cannot_be_sent_are_omitted() {
    let half = AssistantMessage {
        stop_reason: StopReason::Aborted,
        ..requested(vec![AssistantBlock::text("I wa")])
    };
    let unsafe_answer = AssistantMessage {
        stop_reason: StopReason::Error,
        raw_stop_reason: "SAFETY".to_owned(),
        ..requested(vec![AssistantBlock::text("How to")])
    };
    let orphan = requested(vec![AssistantBlock::text("I look."), call("a", "{}", None)]);
    let messages = vec![
        user("go"),
        half.into(),
        found("nobody"),
        user("on"),
        unsafe_answer.into(),
        orphan.into(),
        user("well?"),
    ];
    let expected = json!([
        {"role": "user", "parts": [{"text": "go"}, {"text": "on"}]},
        {"role": "model", "parts": [{"text": "I look."}]},
        {"role": "user", "parts": [{"text": "well?"}]},
    ]);
    assert_eq!(turns(messages).await, expected);
}

#[tokio::test]
async fn arguments_that_are_not_an_object_are_sent_as_an_empty_one() {
    let messages = vec![requested(vec![call("a", r#"{"n":"#, Some("c2ln"))]).into(), found("a")];
    let expected = json!([
        {"role": "model", "parts": [function_call("a", "c2ln")]},
        {"role": "user", "parts": [found_response("a")]},
    ]);
    assert_eq!(turns(messages).await, expected);
}

#[tokio::test]
async fn ids_are_sent_unchanged_and_unique() {
    let step = || vec![foreign(vec![call("toolu|1", "{}", None)]).into(), found("toolu|1")];
    let expected = json!([
        {"role": "model", "parts": [function_call("toolu|1", NO_SIGNATURE)]},
        {"role": "user", "parts": [found_response("toolu|1")]},
        {"role": "model", "parts": [function_call("call_1", NO_SIGNATURE)]},
        {"role": "user", "parts": [found_response("call_1")]},
    ]);
    assert_eq!(turns([step(), step()].concat()).await, expected);
}

#[tokio::test]
async fn an_answer_is_sent_back_unchanged() {
    let code =
        r#"{"executableCode":{"language":"PYTHON","code":"1"},"thoughtSignature":"Y29kZQ=="}"#;
    let body = whole(&[
        &[r#"{"text":"Hm","thought":true,"thoughtSignature":"dGhpbms="}"#],
        &[code, r#"{"text":"Ru"}"#],
        &[r#"{"text":"st.","thoughtSignature":"dGV4dA=="}"#],
    ]);
    let reply = move |_: &_, _| Reply::events(body.as_str());
    let server = ModelServer::start(reply).await.expect("a server");
    let provider = provider(config(&server));
    let ask = |messages| MessageStream::open(&provider, request(messages), Cancel::never(), AT);
    let answer = ask(vec![user("what?")]).complete().await.expect("an answer");
    ask(vec![user("what?"), answer.into(), user("why?")]).complete().await.expect("an answer");
    let expected = json!([
        {"text": "Hm", "thought": true, "thoughtSignature": "dGhpbms="},
        serde_json::from_str::<Value>(code).expect("JSON"),
        {"text": "Rust."},
        {"text": "", "thoughtSignature": "dGV4dA=="},
    ]);
    assert_eq!(server.requests()[1].json()["contents"][1]["parts"], expected);
}
