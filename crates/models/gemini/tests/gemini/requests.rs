//! The request on the wire.

use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_core::{
    Cancel, ImageBlock, InputBlock, MessageStream, ProviderError, RawJson, Request, StreamError,
    Temperature, Tool, ToolChoice, UserMessage,
};
use antiphon_model_server::Reply;
use serde_json::{Value, json};

use crate::world::{AT, config, end, provider, request, sent, server, user};

fn tool(name: &str) -> Arc<Tool> {
    Arc::new(Tool {
        name: name.to_owned(),
        description: format!("To {name}."),
        parameters: RawJson::parse(r#"{"type":"object","additionalProperties":false}"#)
            .expect("a schema"),
    })
}

fn hi() -> Value {
    json!([{"role": "user", "parts": [{"text": "hi"}]}])
}

#[tokio::test]
async fn a_plain_request_has_all_required_fields() {
    assert_eq!(sent(request(vec![user("hi")])).await, json!({"contents": hi()}));
}

#[tokio::test]
async fn all_settings_of_a_request_are_sent() {
    let request = Request {
        system_prompt: "Be brief.".to_owned(),
        tools: vec![tool("look"), tool("go")],
        tool_choice: ToolChoice::Required,
        max_tokens: NonZeroU32::new(100),
        thinking_tokens: NonZeroU32::new(2048),
        temperature: Some(Temperature::new(1.5).expect("a temperature")),
        ..request(vec![user("hi")])
    };
    let schema = json!({"type": "object", "additionalProperties": false});
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": hi(),
        "tools": [{"functionDeclarations": [
            {"name": "look", "description": "To look.", "parametersJsonSchema": schema},
            {"name": "go", "description": "To go.", "parametersJsonSchema": schema},
        ]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        "generationConfig": {
            "maxOutputTokens": 100,
            "temperature": 1.5,
            "thinkingConfig": {"thinkingBudget": 2048, "includeThoughts": true},
        },
    });
    assert_eq!(sent(request).await, expected);
}

#[tokio::test]
async fn options_that_the_wire_knows_are_sent() {
    let options = json!({"top_p": 0.25, "stop": ["END"], "seed": 7, "presence_penalty": -0.5,
        "frequency_penalty": 0.5, "reasoning_effort": "xhigh", "parallel_tool_calls": false});
    let sampling = serde_json::from_value(options).unwrap();
    let sent = sent(Request { sampling, ..request(vec![user("hi")]) }).await;
    let expected = json!({"topP": 0.25, "stopSequences": ["END"], "seed": 7, "presencePenalty": -0.5,
        "frequencyPenalty": 0.5});
    assert_eq!(sent, json!({"contents": hi(), "generationConfig": expected}));
}

#[tokio::test]
async fn each_tool_choice_has_its_form() {
    let config = |config| Some(json!({"functionCallingConfig": config}));
    let look = || "look".to_owned();
    let cases = [
        (ToolChoice::Auto, None),
        (ToolChoice::None, config(json!({"mode": "NONE"}))),
        (ToolChoice::Required, config(json!({"mode": "ANY"}))),
        (
            ToolChoice::Named(look()),
            config(json!({"mode": "ANY", "allowedFunctionNames": ["look"]})),
        ),
    ];
    for (tool_choice, expected) in cases {
        let request =
            Request { tools: vec![tool("look")], tool_choice, ..request(vec![user("hi")]) };
        assert_eq!(sent(request).await.get("toolConfig"), expected.as_ref());
    }
}

#[tokio::test]
async fn a_tool_choice_without_tools_is_not_sent() {
    let named = ToolChoice::Named("look".to_owned());
    for tool_choice in [ToolChoice::None, ToolChoice::Required, named] {
        let request = Request { tool_choice, ..request(vec![user("hi")]) };
        assert_eq!(sent(request).await, json!({"contents": hi()}));
    }
}

#[tokio::test]
async fn a_model_name_that_would_change_the_path_is_refused_before_it_is_sent() {
    let no_model = "`gemini/` names no model: write PROVIDER/MODEL, for instance `scripted/hello`";
    let cases = [
        ("", no_model),
        ("../files", "`../files` cannot be the name of a model here"),
        ("x:generateContent", "`x:generateContent` cannot be the name of a model here"),
        ("x?key=1", "`x?key=1` cannot be the name of a model here"),
        ("%2e%2e%2f", "`%2e%2e%2f` cannot be the name of a model here"),
    ];
    for (model, message) in cases {
        let server = server(Reply::events(end("STOP"))).await;
        let provider = provider(config(&server));
        let request = Request { model: model.to_owned(), ..request(vec![user("hi")]) };
        let stream = MessageStream::open(&provider, request, Cancel::never(), AT);
        let error = ProviderError::InvalidRequest { message: message.to_owned() };
        assert_eq!(stream.complete().await, Err(StreamError::Provider(error)));
        assert_eq!(server.connections(), 0);
    }
}

#[tokio::test]
async fn images_are_sent_as_base64() {
    let image = ImageBlock::new("image/png", *b"png!").expect("an image");
    let content = vec![InputBlock::text("what is this?"), InputBlock::Image(image)];
    let sent = sent(request(vec![UserMessage { content, timestamp: AT }.into()])).await;
    let expected = json!({"contents": [{"role": "user", "parts": [
        {"text": "what is this?"},
        {"inlineData": {"mimeType": "image/png", "data": "cG5nIQ=="}},
    ]}]});
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn blank_text_is_omitted() {
    let request = Request {
        system_prompt: " \n".to_owned(),
        ..request(vec![user("  "), user("hi"), user("\n")])
    };
    assert_eq!(sent(request).await, json!({"contents": hi()}));
}
