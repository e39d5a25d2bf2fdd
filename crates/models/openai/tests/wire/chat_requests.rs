//! Chat Completions: requests.

use std::num::NonZeroU32;

use antiphon_core::{
    AssistantMessage, IdRule, InputBlock, Message, Request, StopReason, Temperature, ToolChoice,
    UserMessage,
};
use antiphon_model_server::Reply;
use antiphon_model_transport::Endpoint;
use antiphon_openai::{ChatQuirks, EmptyContent, MaxTokensField};
use serde_json::{Value, json};

use crate::world::{
    AT, PICTURE_URL, Wire, answer, ask, call, conversation, encrypted, hello, malformed_call,
    model, picture, requested, result, sent, text, thinking, weather_tool,
};

/// The `messages` of a conversation; the rest of the body is checked here.
async fn messages(history: Vec<Message>) -> Value {
    messages_with(ChatQuirks::default(), history).await
}

async fn messages_with(quirks: ChatQuirks, history: Vec<Message>) -> Value {
    let mut body = sent(Wire::Chat(quirks), conversation(history)).await;
    let messages = body["messages"].take();
    let rest = json!({"model": "m", "messages": null, "stream": true,
        "stream_options": {"include_usage": true}});
    assert_eq!(body, rest);
    messages
}

/// The wire form of a call and of its result.
fn wire_call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function",
        "function": {"name": "get_weather", "arguments": arguments}})
}

fn wire_result(id: &str, content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": content})
}

fn hi() -> Value {
    json!({"role": "user", "content": "hi"})
}

#[tokio::test]
async fn it_posts_json_with_the_key_to_the_right_address() {
    let (_, requests) = ask(Wire::chat(), Reply::events(""), hello()).await;
    let [request] = requests.as_slice() else { unreachable!("one request is sent") };
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(request.header("authorization"), Some("Bearer sk-test"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("accept"), Some("text/event-stream"));
}

#[tokio::test]
async fn a_plain_question_is_one_message() {
    assert_eq!(messages(vec![requested("hi")]).await, json!([hi()]));
}

#[tokio::test]
async fn all_settings_of_a_request_are_sent() {
    let request = Request {
        system_prompt: "Be brief.".to_owned(),
        tools: vec![weather_tool()],
        tool_choice: ToolChoice::Named("get_weather".to_owned()),
        max_tokens: NonZeroU32::new(50),
        thinking_tokens: NonZeroU32::new(5_000),
        temperature: Some(Temperature::new(0.5).unwrap()),
        ..conversation(vec![requested("hi")])
    };
    let mut expected = json!({
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, hi()],
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_completion_tokens": 50,
        "temperature": 0.5,
        "tools": [{"type": "function", "function": {
            "name": "get_weather",
            "description": "The weather in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        }}],
        "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
    });
    assert_eq!(sent(Wire::chat(), request.clone()).await, expected);

    let quirks = ChatQuirks {
        max_tokens_field: MaxTokensField::MaxTokens,
        stream_usage: false,
        reasoning_effort: true,
        ..ChatQuirks::default()
    };
    let fields = expected.as_object_mut().unwrap();
    fields.remove("max_completion_tokens");
    fields.remove("stream_options");
    fields.insert("max_tokens".to_owned(), json!(50));
    fields.insert("reasoning_effort".to_owned(), json!("medium"));
    assert_eq!(sent(Wire::Chat(quirks), request).await, expected);
}

#[tokio::test]
async fn options_that_the_wire_knows_are_sent() {
    let options = json!({"top_p": 0.25, "stop": ["END"], "seed": 7, "presence_penalty": -0.5,
        "frequency_penalty": 0.5, "reasoning_effort": "xhigh", "parallel_tool_calls": false});
    let sampling = serde_json::from_value(options.clone()).unwrap();
    let request = Request { sampling, tools: vec![weather_tool()], ..hello() };
    let sent = sent(Wire::chat(), request).await;
    for (name, value) in options.as_object().unwrap() {
        assert_eq!(sent[name], *value, "{name}");
    }
}

/// The wire takes metadata of stored answers alone.
#[tokio::test]
async fn metadata_is_sent_with_the_order_to_store() {
    let sampling = serde_json::from_value(json!({ "metadata": { "ticket": "42" } })).unwrap();
    let with = sent(Wire::chat(), Request { sampling, ..hello() }).await;
    assert_eq!((&with["metadata"], &with["store"]), (&json!({ "ticket": "42" }), &json!(true)));
    let without = sent(Wire::chat(), hello()).await;
    assert_eq!((without.get("metadata"), without.get("store")), (None, None));
}

#[tokio::test]
async fn a_tool_choice_is_one_word_and_absent_without_tools() {
    for (tool_choice, word) in [
        (ToolChoice::Auto, None),
        (ToolChoice::None, Some("none")),
        (ToolChoice::Required, Some("required")),
    ] {
        let request = Request { tool_choice, tools: vec![weather_tool()], ..hello() };
        let body = sent(Wire::chat(), request.clone()).await;
        assert_eq!(body.get("tool_choice").and_then(Value::as_str), word);
        let body = sent(Wire::chat(), Request { tools: Vec::new(), ..request }).await;
        assert_eq!(body.get("tool_choice"), None);
    }
}

#[tokio::test]
async fn a_thinking_budget_becomes_a_word() {
    let quirks = ChatQuirks { reasoning_effort: true, ..ChatQuirks::compatible() };
    for (tokens, word) in
        [(1, "low"), (4_095, "low"), (4_096, "medium"), (16_383, "medium"), (16_384, "high")]
    {
        let request = Request { thinking_tokens: NonZeroU32::new(tokens), ..hello() };
        assert_eq!(sent(Wire::Chat(quirks), request).await["reasoning_effort"], word);
    }
}

#[tokio::test]
async fn a_conversation_with_tools_is_sent_in_order() {
    let looked = vec![
        text("I look."),
        call("call_1", "get_weather", r#"{"city": "Paris"}"#),
        call("call_2", "get_weather", "{}"),
    ];
    let history = vec![
        requested("hi"),
        answer(looked, "tool_calls").into(),
        result("call_2", "get_weather", vec![InputBlock::text("rain")]),
        result("call_1", "get_weather", vec![InputBlock::text("sun"), InputBlock::text("22°")]),
        answer(vec![text("Sun.")], "stop").into(),
        requested("thanks"),
    ];
    let expected = json!([
        hi(),
        {"role": "assistant", "content": "I look.", "tool_calls": [
            wire_call("call_1", r#"{"city": "Paris"}"#), wire_call("call_2", "{}")]},
        wire_result("call_1", "sun\n22°"),
        wire_result("call_2", "rain"),
        {"role": "assistant", "content": "Sun."},
        {"role": "user", "content": "thanks"},
    ]);
    assert_eq!(messages(history).await, expected);
}

#[tokio::test]
async fn mistral_gets_ids_of_nine_letters_and_digits() {
    let mistral = Endpoint::parse("https://api.mistral.ai/v1").unwrap();
    let calls = ["D681PevKs", "call_1", "123456789"];
    let mut history = vec![requested("hi")];
    let content = calls.iter().map(|id| call(id, "get_weather", "{}")).collect();
    history.push(answer(content, "tool_calls").into());
    for id in calls {
        history.push(result(id, "get_weather", vec![InputBlock::text("rain")]));
    }
    let sent = ["D681PevKs", "c00000001", "123456789"];
    let expected = json!([
        hi(),
        {"role": "assistant", "tool_calls": sent.map(|id| wire_call(id, "{}"))},
        wire_result(sent[0], "rain"),
        wire_result(sent[1], "rain"),
        wire_result(sent[2], "rain"),
    ]);
    assert_eq!(messages_with(ChatQuirks::at(&mistral), history).await, expected);
}

#[test]
fn a_server_is_recognized_by_its_full_host_name() {
    let compatible = ChatQuirks::compatible();
    let at = |url: &str| ChatQuirks::at(&Endpoint::parse(url).unwrap());
    let mistral = ChatQuirks { ids: IdRule::Exactly { bytes: 9 }, ..compatible };
    for (url, quirks) in [
        ("https://api.openai.com/v1", ChatQuirks::default()),
        ("https://API.openai.com/v1/", ChatQuirks::default()),
        ("https://api.mistral.ai/v1", mistral),
        ("https://api.deepseek.com", ChatQuirks { echo_reasoning: true, ..compatible }),
        ("https://api.openai.com.example.com/v1", compatible),
        ("http://127.0.0.1:8080/api.mistral.ai", compatible),
    ] {
        assert_eq!(at(url), quirks, "{url}");
    }
}

#[tokio::test]
async fn an_answer_of_calls_alone_never_has_null_content() {
    let history = || {
        vec![
            requested("hi"),
            answer(vec![call("call_1", "get_weather", "{}")], "tool_calls").into(),
            result("call_1", "get_weather", Vec::new()),
        ]
    };
    let mut expected = json!([
        hi(),
        {"role": "assistant", "tool_calls": [wire_call("call_1", "{}")]},
        wire_result("call_1", "(no output)"),
    ]);
    assert_eq!(messages(history()).await, expected);
    let quirks = ChatQuirks { empty_content: EmptyContent::EmptyText, ..ChatQuirks::default() };
    expected[1]["content"] = json!("");
    assert_eq!(messages_with(quirks, history()).await, expected);
}

#[tokio::test]
async fn images_are_data_urls_and_those_of_results_follow_the_last_result() {
    let content = vec![InputBlock::text("look"), picture()];
    let calls = vec![call("call_1", "get_weather", "{}"), call("call_2", "get_weather", "{}")];
    let history = vec![
        UserMessage { content, timestamp: AT }.into(),
        answer(calls, "tool_calls").into(),
        result("call_1", "get_weather", vec![picture(), InputBlock::text("a map")]),
        result("call_2", "get_weather", vec![picture()]),
        requested("and?"),
    ];
    let image = json!({"type": "image_url", "image_url": {"url": PICTURE_URL}});
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
        {"role": "assistant", "tool_calls": [wire_call("call_1", "{}"), wire_call("call_2", "{}")]},
        wire_result("call_1", "a map"),
        wire_result("call_2", "The images follow."),
        {"role": "user", "content": [
            {"type": "text", "text": "Images of get_weather (call_1):"}, image,
            {"type": "text", "text": "Images of get_weather (call_2):"}, image,
            {"type": "text", "text": "and?"},
        ]},
    ]);
    assert_eq!(messages(history).await, expected);
}

#[tokio::test]
async fn thinking_is_omitted_unless_the_server_requires_it() {
    let thought = |id: &str| vec![thinking("Hm."), call(id, "get_weather", "{}")];
    let foreign = AssistantMessage {
        model: Some(model("anthropic/claude")),
        ..answer(thought("call_2"), "tool_use")
    };
    let history = || {
        vec![
            requested("hi"),
            answer(thought("call_1"), "tool_calls").into(),
            result("call_1", "get_weather", vec![InputBlock::text("sun")]),
            foreign.clone().into(),
            result("call_2", "get_weather", vec![InputBlock::text("sun")]),
            answer(vec![thinking("Hm."), encrypted("reasoning", "{}")], "stop").into(),
            answer(vec![thinking("Hm."), text("Sun.")], "stop").into(),
        ]
    };
    let mut expected = json!([
        hi(),
        {"role": "assistant", "tool_calls": [wire_call("call_1", "{}")]},
        wire_result("call_1", "sun"),
        {"role": "assistant", "tool_calls": [wire_call("call_2", "{}")]},
        wire_result("call_2", "sun"),
        {"role": "assistant", "content": "Sun."},
    ]);
    assert_eq!(messages(history()).await, expected);
    let quirks = ChatQuirks { echo_reasoning: true, ..ChatQuirks::default() };
    expected[1]["reasoning_content"] = json!("Hm.");
    expected[3]["reasoning_content"] = json!("");
    assert_eq!(messages_with(quirks, history()).await, expected);
}

#[tokio::test]
async fn unsupported_blocks_are_omitted_and_adjacent_messages_merged() {
    let broken = |stop_reason| {
        Message::Assistant(AssistantMessage { stop_reason, ..answer(vec![text("On")], "") })
    };
    let orphan = answer(vec![call("call_9", "get_weather", "{}")], "tool_calls");
    let half = vec![text("I look."), call("call_8", "get_weather", "{}")];
    let history = vec![
        requested("hi"),
        broken(StopReason::Aborted),
        broken(StopReason::Error),
        requested("again"),
        orphan.into(),
        requested("  "),
        requested("still there?"),
        answer(half, "tool_calls").into(),
        result("call_0", "get_weather", vec![InputBlock::text("whose?")]),
    ];
    let expected = json!([
        {"role": "user", "content": "hi\n\nagain\n\nstill there?"},
        {"role": "assistant", "content": "I look."},
    ]);
    assert_eq!(messages(history).await, expected);
}

#[tokio::test]
async fn invalid_arguments_are_sent_as_an_empty_object() {
    let history = vec![
        requested("hi"),
        answer(vec![malformed_call("call_1", "get_weather", r#"{"ci"#)], "length").into(),
        result("call_1", "get_weather", vec![InputBlock::text("no JSON")]),
    ];
    let expected = json!([
        hi(),
        {"role": "assistant", "tool_calls": [wire_call("call_1", "{}")]},
        wire_result("call_1", "no JSON"),
    ]);
    assert_eq!(messages(history).await, expected);
}

#[tokio::test]
async fn ids_the_server_would_refuse_are_replaced_in_call_and_result() {
    let long = "x".repeat(41);
    let history = vec![
        requested("hi"),
        answer(vec![call(&long, "get_weather", "{}"), call("a:b", "get_weather", "{}")], "").into(),
        result(&long, "get_weather", vec![InputBlock::text("sun")]),
        result("a:b", "get_weather", vec![InputBlock::text("rain")]),
    ];
    let expected = json!([
        hi(),
        {"role": "assistant", "tool_calls": [wire_call("call_0", "{}"), wire_call("call_1", "{}")]},
        wire_result("call_0", "sun"),
        wire_result("call_1", "rain"),
    ]);
    assert_eq!(messages(history).await, expected);
}

#[tokio::test]
async fn a_model_without_a_name_is_refused_before_anything_is_sent() {
    let request = Request { model: String::new(), ..hello() };
    let (outcome, requests) = ask(Wire::chat(), Reply::events(""), request).await;
    let refusal = "the provider refused the request: `openai/` names no model: \
        write PROVIDER/MODEL, for instance `scripted/hello`";
    assert_eq!(outcome.error.map(|error| error.to_string()), Some(refusal.to_owned()));
    assert_eq!(requests, []);
}
