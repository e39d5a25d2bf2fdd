//! Responses: requests.

use std::num::NonZeroU32;

use antiphon_core::{
    AssistantMessage, InputBlock, Message, Request, StopReason, Temperature, ToolChoice,
    UserMessage,
};
use antiphon_model_server::Reply;
use antiphon_openai::ResponsesQuirks;
use serde_json::{Value, json};

use crate::world::{
    AT, PICTURE_URL, Wire, answer, ask, call, conversation, encrypted, hello, malformed_call,
    model, picture, requested, result, sent, text, thinking, weather_tool,
};

const SEALED: &str = r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"s3al"}"#;

/// The `input` of a conversation; the rest of the body is checked here.
async fn items(history: Vec<Message>) -> Value {
    let mut body = sent(Wire::responses(), conversation(history)).await;
    let input = body["input"].take();
    let rest = json!({"model": "m", "input": null, "stream": true, "store": false,
        "include": ["reasoning.encrypted_content"]});
    assert_eq!(body, rest);
    input
}

/// The wire form of a call and of its result.
fn wire_call(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "get_weather", "arguments": arguments})
}

fn wire_result(id: &str, output: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": output})
}

fn user_item(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn answered(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": text})
}

#[tokio::test]
async fn it_posts_json_with_the_key_to_the_right_address() {
    let (_, requests) = ask(Wire::responses(), Reply::events(""), hello()).await;
    let [request] = requests.as_slice() else { unreachable!("one request is sent") };
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/responses"));
    assert_eq!(request.header("authorization"), Some("Bearer sk-test"));
    assert_eq!(request.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn a_plain_question_is_one_item() {
    assert_eq!(items(vec![requested("hi")]).await, json!([user_item("hi")]));
}

#[tokio::test]
async fn all_settings_of_a_request_are_sent() {
    let request = Request {
        system_prompt: "Be brief.".to_owned(),
        tools: vec![weather_tool()],
        tool_choice: ToolChoice::Named("get_weather".to_owned()),
        max_tokens: NonZeroU32::new(50),
        thinking_tokens: NonZeroU32::new(20_000),
        temperature: Some(Temperature::new(0.5).unwrap()),
        ..conversation(vec![requested("hi")])
    };
    let mut expected = json!({
        "model": "m",
        "instructions": "Be brief.",
        "input": [user_item("hi")],
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 50,
        "temperature": 0.5,
        "reasoning": {"effort": "high", "summary": "auto"},
        "tools": [{
            "type": "function",
            "name": "get_weather",
            "description": "The weather in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
            "strict": false,
        }],
        "tool_choice": {"type": "function", "name": "get_weather"},
    });
    assert_eq!(sent(Wire::responses(), request.clone()).await, expected);

    let quirks = ResponsesQuirks { encrypted_reasoning: false, reasoning_summary: false };
    expected.as_object_mut().unwrap().remove("include");
    expected["reasoning"] = json!({"effort": "high"});
    assert_eq!(sent(Wire::Responses(quirks), request).await, expected);
}

#[tokio::test]
async fn options_that_the_wire_knows_are_sent() {
    let options = json!({"top_p": 0.25, "stop": ["END"], "seed": 7, "presence_penalty": -0.5,
        "frequency_penalty": 0.5, "reasoning_effort": "xhigh", "parallel_tool_calls": false});
    let sampling = serde_json::from_value(options).unwrap();
    let request = Request { sampling, tools: vec![weather_tool()], ..hello() };
    let sent = sent(Wire::responses(), request).await;
    assert_eq!(sent["top_p"], 0.25);
    assert_eq!(sent["reasoning"]["effort"], "xhigh");
    assert_eq!(sent["parallel_tool_calls"], false);
    for unknown in ["stop", "seed", "presence_penalty", "frequency_penalty"] {
        assert_eq!(sent.get(unknown), None);
    }
}

#[tokio::test]
async fn a_tool_choice_is_one_word_and_absent_without_tools() {
    for (tool_choice, word) in [
        (ToolChoice::Auto, None),
        (ToolChoice::None, Some("none")),
        (ToolChoice::Required, Some("required")),
    ] {
        let request = Request { tool_choice, tools: vec![weather_tool()], ..hello() };
        let body = sent(Wire::responses(), request.clone()).await;
        assert_eq!(body.get("tool_choice").and_then(Value::as_str), word);
        let body = sent(Wire::responses(), Request { tools: Vec::new(), ..request }).await;
        assert_eq!(body.get("tool_choice"), None);
    }
}

#[tokio::test]
async fn reasoning_is_sent_back_once_as_the_encrypted_item_before_what_it_led_to() {
    let looked = vec![
        thinking("Hm."),
        encrypted("reasoning", SEALED),
        text("I look."),
        call("call_1", "get_weather", r#"{"city": "Paris"}"#),
        call("call_2", "get_weather", "{}"),
    ];
    let history = vec![
        requested("hi"),
        answer(looked, "completed").into(),
        result("call_2", "get_weather", vec![InputBlock::text("rain")]),
        result("call_1", "get_weather", vec![InputBlock::text("sun"), InputBlock::text("22°")]),
        answer(vec![text("Sun.")], "completed").into(),
        requested("thanks"),
    ];
    let expected = json!([
        user_item("hi"),
        serde_json::from_str::<Value>(SEALED).unwrap(),
        answered("I look."),
        wire_call("call_1", r#"{"city": "Paris"}"#),
        wire_call("call_2", "{}"),
        wire_result("call_1", "sun\n22°"),
        wire_result("call_2", "rain"),
        answered("Sun."),
        user_item("thanks"),
    ]);
    assert_eq!(items(history).await, expected);
}

#[tokio::test]
async fn the_encrypted_item_is_sent_back_byte_for_byte() {
    let odd = r#"{"id":"rs_1", "type":"reasoning","n":1.0,"n":12345678901234567890123}"#;
    let history = vec![answer(vec![encrypted("reasoning", odd), text("Sun.")], "completed").into()];
    let request = conversation(history);
    let (_, requests) = ask(Wire::responses(), Reply::events(""), request).await;
    let body = String::from_utf8(requests.first().unwrap().body.clone()).unwrap();
    assert!(body.contains(odd), "{body}");
}

#[tokio::test]
async fn reasoning_that_led_to_nothing_is_omitted() {
    let orphan = vec![encrypted("reasoning", SEALED), call("call_9", "get_weather", "{}")];
    let unfinished = vec![text("Sun."), encrypted("reasoning", SEALED), thinking("Hm."), text(" ")];
    let search = r#"{"id":"ws_1","type":"web_search_call"}"#;
    let searched = vec![encrypted("reasoning", SEALED), encrypted("web_search_call", search)];
    let history = vec![
        requested("hi"),
        answer(orphan, "completed").into(),
        requested("again"),
        answer(unfinished, "max_output_tokens").into(),
        answer(searched, "completed").into(),
    ];
    let expected = json!([
        user_item("hi"),
        user_item("again"),
        answered("Sun."),
        serde_json::from_str::<Value>(SEALED).unwrap(),
        serde_json::from_str::<Value>(search).unwrap(),
    ]);
    assert_eq!(items(history).await, expected);
}

#[tokio::test]
async fn the_reasoning_of_another_model_is_not_sent() {
    let content = vec![thinking("Hm."), encrypted("reasoning", SEALED), text("Sun.")];
    let foreign =
        AssistantMessage { model: Some(model("openai/other")), ..answer(content, "completed") };
    let expected = json!([user_item("hi"), answered("Sun.")]);
    assert_eq!(items(vec![requested("hi"), foreign.into()]).await, expected);
}

#[tokio::test]
async fn images_are_data_urls_also_in_results() {
    let content = vec![InputBlock::text("look"), picture()];
    let history = vec![
        UserMessage { content, timestamp: AT }.into(),
        answer(vec![call("call_1", "get_weather", "{}")], "completed").into(),
        result("call_1", "get_weather", vec![InputBlock::text("a map"), picture()]),
    ];
    let image = json!({"type": "input_image", "image_url": PICTURE_URL, "detail": "auto"});
    let expected = json!([
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "look"}, image]},
        wire_call("call_1", "{}"),
        {"type": "function_call_output", "call_id": "call_1", "output": [
            {"type": "input_text", "text": "a map"}, image]},
    ]);
    assert_eq!(items(history).await, expected);
}

#[tokio::test]
async fn unsupported_blocks_are_omitted() {
    let broken = |stop_reason| {
        Message::Assistant(AssistantMessage { stop_reason, ..answer(vec![text("On")], "") })
    };
    let orphan = answer(vec![call("call_9", "get_weather", "{}")], "completed");
    let history = vec![
        requested("hi"),
        broken(StopReason::Aborted),
        broken(StopReason::Error),
        orphan.into(),
        requested("  "),
        result("call_0", "get_weather", vec![InputBlock::text("whose?")]),
        answer(vec![malformed_call("call_1", "get_weather", r#"{"ci"#)], "").into(),
        result("call_1", "get_weather", Vec::new()),
    ];
    let expected =
        json!([user_item("hi"), wire_call("call_1", "{}"), wire_result("call_1", "(no output)")]);
    assert_eq!(items(history).await, expected);
}

#[tokio::test]
async fn ids_the_server_would_refuse_are_replaced_in_call_and_result() {
    let long = "x".repeat(41);
    let calls = vec![call(&long, "get_weather", "{}"), call("a:b", "get_weather", "{}")];
    let history = vec![
        requested("hi"),
        answer(calls, "completed").into(),
        result(&long, "get_weather", vec![InputBlock::text("sun")]),
        result("a:b", "get_weather", vec![InputBlock::text("rain")]),
    ];
    let expected = json!([
        user_item("hi"),
        wire_call("call_0", "{}"),
        wire_call("call_1", "{}"),
        wire_result("call_0", "sun"),
        wire_result("call_1", "rain"),
    ]);
    assert_eq!(items(history).await, expected);
}
