//! The request on the wire.

use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_core::{
    Cancel, ImageBlock, InputBlock, MessageStream, ProviderError, RawJson, Request, StreamError,
    Temperature, Tool, ToolChoice, UserMessage,
};
use antiphon_model_server::Reply;
use serde_json::{Value, json};

use crate::world::{AT, config, provider, request, sent, server, user, whole};

fn tool(name: &str) -> Arc<Tool> {
    Arc::new(Tool {
        name: name.to_owned(),
        description: format!("To {name}."),
        parameters: RawJson::parse(r#"{"type":"object","properties":{"n":{"minimum":1.0}}}"#)
            .expect("a schema"),
    })
}

fn hi() -> Value {
    json!([{"role": "user", "content": [{"type": "text", "text": "hi"}]}])
}

/// The error of a request that is not sent.
async fn refusal(request: Request) -> StreamError {
    let server = server(Reply::events(whole(&[]))).await;
    let provider = provider(config(&server, None));
    let stream = MessageStream::open(&provider, request, Cancel::never(), AT);
    let error = stream.complete().await.expect_err("a refusal");
    assert_eq!(server.connections(), 0);
    error
}

#[tokio::test]
async fn a_plain_request_has_all_required_fields() {
    let expected =
        json!({"model": "claude", "max_tokens": 16384, "stream": true, "messages": hi()});
    assert_eq!(sent(request(vec![user("hi")]), None).await, expected);
}

#[tokio::test]
async fn all_settings_of_a_request_are_sent() {
    let request = Request {
        system_prompt: "Be brief.".to_owned(),
        tools: vec![tool("look"), tool("go")],
        tool_choice: ToolChoice::Required,
        max_tokens: NonZeroU32::new(100),
        temperature: Some(Temperature::new(0.5).expect("a temperature")),
        ..request(vec![user("hi")])
    };
    let schema = json!({"type": "object", "properties": {"n": {"minimum": 1.0}}});
    let expected = json!({
        "model": "claude",
        "max_tokens": 100,
        "stream": true,
        "temperature": 0.5,
        "tools": [
            {"name": "look", "description": "To look.", "input_schema": schema},
            {"name": "go", "description": "To go.", "input_schema": schema},
        ],
        "tool_choice": {"type": "any"},
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": hi(),
    });
    assert_eq!(sent(request, None).await, expected);
}

#[tokio::test]
async fn options_that_the_wire_knows_are_sent() {
    let options = json!({"top_p": 0.25, "stop": ["END"], "seed": 7, "presence_penalty": -0.5,
        "frequency_penalty": 0.5, "reasoning_effort": "xhigh", "parallel_tool_calls": false});
    let sampling = serde_json::from_value(options).unwrap();
    let request = Request { tools: vec![tool("look")], sampling, ..request(vec![user("hi")]) };
    let mut sent = sent(request, None).await;
    let body = sent.as_object_mut().unwrap();
    for name in ["model", "max_tokens", "stream", "tools", "messages"] {
        body.remove(name).unwrap();
    }
    let choice = json!({"type": "auto", "disable_parallel_tool_use": true});
    assert_eq!(sent, json!({"top_p": 0.25, "stop_sequences": ["END"], "tool_choice": choice}));
}

#[tokio::test]
async fn each_tool_choice_has_its_form() {
    let cases = [
        (ToolChoice::Auto, None),
        (ToolChoice::None, Some(json!({"type": "none"}))),
        (ToolChoice::Required, Some(json!({"type": "any"}))),
        (ToolChoice::Named("look".to_owned()), Some(json!({"type": "tool", "name": "look"}))),
    ];
    for (tool_choice, expected) in cases {
        let request =
            Request { tools: vec![tool("look")], tool_choice, ..request(vec![user("hi")]) };
        assert_eq!(sent(request, None).await.get("tool_choice"), expected.as_ref());
    }
}

#[tokio::test]
async fn a_tool_choice_without_tools_is_not_sent() {
    let named = ToolChoice::Named("look".to_owned());
    for tool_choice in [ToolChoice::None, ToolChoice::Required, named] {
        let request = Request { tool_choice, ..request(vec![user("hi")]) };
        assert_eq!(sent(request, None).await.get("tool_choice"), None);
    }
}

#[tokio::test]
async fn a_thinking_budget_leaves_tokens_for_the_answer() {
    let cases = [(None, 30_000 + 16_384), (NonZeroU32::new(40_000), 40_000)];
    for (max_tokens, sent_max_tokens) in cases {
        let request = Request {
            thinking_tokens: NonZeroU32::new(30_000),
            max_tokens,
            ..request(vec![user("hi")])
        };
        let expected = json!({
            "model": "claude",
            "max_tokens": sent_max_tokens,
            "stream": true,
            "thinking": {"type": "enabled", "budget_tokens": 30_000},
            "messages": hi(),
        });
        assert_eq!(sent(request, None).await, expected);
    }
}

#[tokio::test]
async fn a_thinking_budget_is_below_the_limit_of_the_answer() {
    let cases = [
        (3000, 3001, json!({"type": "enabled", "budget_tokens": 3000})),
        (3000, 3000, json!({"type": "enabled", "budget_tokens": 1500})),
        (30_000, 2048, json!({"type": "enabled", "budget_tokens": 1024})),
        // The wire's minimum is 1024.
        (30_000, 2047, Value::Null),
        (1024, 3000, json!({"type": "enabled", "budget_tokens": 1024})),
        (1023, 3000, Value::Null),
    ];
    for (thinking_tokens, max_tokens, expected) in cases {
        let request = Request {
            thinking_tokens: NonZeroU32::new(thinking_tokens),
            max_tokens: NonZeroU32::new(max_tokens),
            ..request(vec![user("hi")])
        };
        let body = sent(request, None).await;
        assert_eq!(body["max_tokens"], json!(max_tokens));
        assert_eq!(body["thinking"], expected, "{thinking_tokens} of {max_tokens}");
    }
}

#[tokio::test]
async fn no_temperature_is_sent_with_thinking() {
    let warm = |thinking_tokens| Request {
        temperature: Some(Temperature::new(0.5).expect("a temperature")),
        thinking_tokens: NonZeroU32::new(thinking_tokens),
        ..request(vec![user("hi")])
    };
    assert_eq!(sent(warm(2000), None).await.get("temperature"), None);
    // Below the minimum thinking budget.
    assert_eq!(sent(warm(1), None).await["temperature"], json!(0.5));
}

#[tokio::test]
async fn a_temperature_above_the_limit_is_refused_before_it_is_sent() {
    let warm = |value| Request {
        temperature: Some(Temperature::new(value).expect("a temperature")),
        ..request(vec![user("hi")])
    };
    let message = "temperature must be from 0 to 1 here, not 1.5".to_owned();
    assert_eq!(
        refusal(warm(1.5)).await,
        StreamError::Provider(ProviderError::InvalidRequest { message })
    );
    assert_eq!(sent(warm(1.0), None).await["temperature"], json!(1.0));
}

#[tokio::test]
async fn a_request_without_a_model_is_refused_before_it_is_sent() {
    let message = "`anthropic/` names no model: \
        write PROVIDER/MODEL, for instance `scripted/hello`"
        .to_owned();
    assert_eq!(
        refusal(Request { model: String::new(), ..request(vec![user("hi")]) }).await,
        StreamError::Provider(ProviderError::InvalidRequest { message })
    );
}

#[tokio::test]
async fn images_are_sent_as_base64() {
    let image = ImageBlock::new("image/png", *b"png!").expect("an image");
    let content = vec![InputBlock::text("what is this?"), InputBlock::Image(image)];
    let sent = sent(request(vec![UserMessage { content, timestamp: AT }.into()]), None).await;
    let source = json!({"type": "base64", "media_type": "image/png", "data": "cG5nIQ=="});
    assert_eq!(
        sent["messages"],
        json!([{"role": "user", "content": [
            {"type": "text", "text": "what is this?"},
            {"type": "image", "source": source},
        ]}])
    );
}

#[tokio::test]
async fn blank_text_is_omitted() {
    let request = Request {
        system_prompt: " \n".to_owned(),
        ..request(vec![user("  "), user("hi"), user("\n")])
    };
    let expected =
        json!({"model": "claude", "max_tokens": 16384, "stream": true, "messages": hi()});
    assert_eq!(sent(request, None).await, expected);
}
