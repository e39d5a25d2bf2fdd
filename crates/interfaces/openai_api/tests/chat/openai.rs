//! Whole answers to OpenAI's clients.

use std::sync::Arc;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    AssistantBlock, InputBlock, Message, RawJson, ReasoningEffort, Request, Sampling, StopReason,
    TaskStatus, Temperature, Tool, ToolChoice,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Reply, ask, begin, rest};
use crate::world::TestServer;

pub(crate) fn body(text: &str) -> Value {
    json!({ "model": "scripted/test", "messages": [{ "role": "user", "content": text }] })
}

pub(crate) fn with(text: &str, more: &Value) -> Value {
    let mut body = body(text);
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

pub(crate) fn weather() -> Value {
    let parameters = json!({ "type": "object", "properties": { "in": { "type": "string" } } });
    let function = json!({ "name": "weather", "description": "Tells.", "parameters": parameters });
    json!([{ "type": "function", "function": function }])
}

/// The answer without what is new each time, which is looked at.
pub(crate) fn settled(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{reply:?}");
    let mut answer = reply.json();
    assert_eq!(answer["id"], format!("chatcmpl-{}", reply.task()));
    let age = SystemClock.now().timestamp() - answer["created"].as_i64().unwrap();
    assert!((0..60).contains(&age), "{answer}");
    answer["id"].take();
    answer["created"].take();
    answer
}

#[tokio::test]
async fn a_plain_model_answers_and_the_journal_has_it() {
    let server = TestServer::new().await;
    let reply = ask(&server, &body("hello")).await;
    assert_eq!(
        settled(&reply),
        json!({
            "id": null, "object": "chat.completion", "created": null, "model": "scripted/test",
            "choices": [{
                "index": 0,
                "message": { "role": "assistant", "content": "You said hello", "refusal": null },
                "logprobs": null,
                "finish_reason": "stop",
            }],
            "usage": {
                "prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6,
                "prompt_tokens_details": { "cached_tokens": 0 },
            },
        })
    );
    let state = server.orchestrator.task(&reply.task()).await.unwrap();
    assert_eq!(
        (state.status, state.detail),
        (TaskStatus::Completed, Some(json!("You said hello")))
    );
    server.ended().await;
}

#[tokio::test]
async fn every_field_of_a_request_reaches_the_model() {
    let server = TestServer::new().await;
    let png = "data:image/png;base64,iVBORw0KGgo=";
    let messages = json!([
        { "role": "system", "content": "Be brief." },
        { "role": "developer", "content": [{ "type": "text", "text": "Be kind." }] },
        { "role": "user", "content": "one", "name": "ann" },
        { "role": "assistant", "content": "two" },
        { "role": "user", "content": [
            { "type": "text", "text": "three" },
            { "type": "image_url", "image_url": { "url": png } },
        ]},
    ]);
    let more = json!({
        "messages": messages, "temperature": 0.5, "max_completion_tokens": 77, "n": 1,
        "tools": weather(), "tool_choice": { "type": "function", "function": { "name": "weather" } },
        "top_p": 0.5, "stop": "END", "seed": 7, "presence_penalty": 1, "frequency_penalty": -1.5,
        "reasoning_effort": "low", "parallel_tool_calls": false, "logit_bias": null, "user": "ann", "metadata": { "a": "b" }, "store": true, "what_is_this": 1,
    });
    let reply = ask(&server, &with("", &more)).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let requested = server.requested().remove(0);
    let text_of: Vec<String> = requested.messages.iter().map(text_of).collect();
    assert_eq!(text_of, ["user: one", "assistant: two", "user: three(image/png)"]);
    let parameters = weather()[0]["function"]["parameters"].to_string();
    let expected = Request {
        model: "test".to_owned(),
        system_prompt: "Be brief.\n\nBe kind.".to_owned(),
        messages: requested.messages.clone(),
        tools: vec![Arc::new(Tool {
            name: "weather".to_owned(),
            description: "Tells.".to_owned(),
            parameters: RawJson::parse(&parameters).unwrap(),
        })],
        tool_choice: ToolChoice::Named("weather".to_owned()),
        max_tokens: 77.try_into().ok(),
        temperature: Temperature::new(0.5).ok(),
        sampling: Sampling {
            top_p: 0.5.try_into().ok(),
            stop: vec!["END".to_owned()],
            seed: Some(7),
            presence_penalty: 1.0.try_into().ok(),
            frequency_penalty: (-1.5).try_into().ok(),
            reasoning_effort: Some(ReasoningEffort::Low),
            parallel_tool_calls: Some(false),
            metadata: [("a".to_owned(), "b".to_owned())].into(),
        },
        ..Request::default()
    };
    assert_eq!(requested, expected);
    server.ended().await;
}

pub(crate) fn text_of(message: &Arc<Message>) -> String {
    let input = |block: &InputBlock| match block {
        InputBlock::Text(text) => text.text.clone(),
        InputBlock::Image(image) => format!("({})", image.mime_type()),
    };
    match &**message {
        Message::User(user) => {
            format!("user: {}", user.content.iter().map(input).collect::<String>())
        }
        Message::ToolResult(result) => {
            let text: String = result.content.iter().map(input).collect();
            format!("{} {}: {text}", result.tool_name, result.tool_call_id)
        }
        Message::Assistant(answer) => {
            let block = |block: &AssistantBlock| match block {
                AssistantBlock::Text(text) => text.text.clone(),
                AssistantBlock::ToolCall(call) => format!("[{} {}]", call.name, call.id),
                AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_) => String::new(),
            };
            assert_ne!(answer.stop_reason, StopReason::Error);
            format!("assistant: {}", answer.content.iter().map(block).collect::<String>())
        }
    }
}

#[tokio::test]
async fn the_client_gets_calls_and_its_next_request_has_their_results() {
    let server = TestServer::new().await;
    let first = ask(&server, &with("weather", &json!({ "tools": weather() }))).await;
    let answer = settled(&first);
    let call = |id: &str, place: &str| {
        let arguments = format!(r#"{{"in":"{place}"}}"#);
        let function = json!({ "name": "weather", "arguments": arguments });
        json!({ "id": id, "type": "function", "function": function })
    };
    let message = json!({
        "role": "assistant", "content": null, "refusal": null,
        "tool_calls": [call("c1", "Rome"), call("c2", "Oslo")],
    });
    assert_eq!(
        answer["choices"],
        json!([{
            "index": 0, "message": message, "logprobs": null, "finish_reason": "tool_calls",
        }])
    );
    assert_eq!(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 3);
    let state = server.orchestrator.task(&first.task()).await.unwrap();
    let calls = json!({ "tool_calls": [
        { "id": "c1", "name": "weather", "arguments": { "in": "Rome" } },
        { "id": "c2", "name": "weather", "arguments": { "in": "Oslo" } },
    ]});
    assert_eq!((state.status, state.detail), (TaskStatus::Completed, Some(calls)));
    let messages = json!([
        { "role": "user", "content": "weather" },
        message,
        { "role": "tool", "tool_call_id": "c2", "content": "snow" },
        { "role": "tool", "tool_call_id": "c1", "content": [{ "type": "text", "text": "sun" }] },
    ]);
    let more = json!({ "messages": messages, "tools": weather() });
    let second = settled(&ask(&server, &with("", &more)).await);
    assert_eq!(second["choices"][0]["message"]["content"], "Then: sun");
    let text_of: Vec<String> = server.requested()[1].messages.iter().map(text_of).collect();
    let expected = [
        "user: weather",
        "assistant: [weather c1][weather c2]",
        "weather c2: snow",
        "weather c1: sun",
    ];
    assert_eq!(text_of, expected);
    server.ended().await;
}

#[tokio::test]
async fn a_client_may_use_the_names_of_our_tools_with_a_plain_model() {
    let server = TestServer::new().await;
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let tools = json!({ "tools": [tool("look"), tool("call_agent")] });
    let answer = settled(&ask(&server, &with("look", &tools)).await);
    let message = &answer["choices"][0]["message"];
    assert_eq!(message["content"], "Looking.");
    assert_eq!(message["tool_calls"][0]["function"], json!({ "name": "look", "arguments": "{}" }));
    let offered: Vec<String> = server.requested()[0].tools.iter().map(|t| t.name.clone()).collect();
    assert_eq!(offered, ["look", "call_agent"]);
    server.ended().await;
}

#[tokio::test]
async fn a_completion_has_its_finish_reason() {
    let server = TestServer::new().await;
    for (text, content, reason) in
        [("too much", "And so", "length"), ("filtered", "I ", "content_filter")]
    {
        let answer = settled(&ask(&server, &body(text)).await);
        let choice = &answer["choices"][0];
        assert_eq!(choice["message"]["content"], content);
        assert_eq!(choice["finish_reason"], reason);
    }
    server.ended().await;
}

#[tokio::test]
async fn a_completion_has_the_requested_format() {
    let server = TestServer::new().await;
    let schema = json!({ "type": "object", "required": ["a"] });
    let named = json!({ "name": "answer", "strict": true, "schema": schema });
    for (text, format, content) in [
        ("deliver", json!({ "type": "json_schema", "json_schema": named }), r#"{"a":1}"#),
        ("json", json!({ "type": "json_object" }), r#"{"a":2}"#),
        ("json", json!({ "type": "text" }), "```json\n{\"a\": 2}\n```"),
    ] {
        let format = json!({ "response_format": format });
        let answer = settled(&ask(&server, &with(text, &format)).await);
        assert_eq!(answer["choices"][0]["message"]["content"], content);
        let mut format = format;
        format["stream"] = json!(true);
        let streamed = ask(&server, &with(text, &format)).await;
        assert_eq!(crate::streams::content(&streamed.chunks()), content);
    }
    server.ended().await;
}

#[tokio::test]
async fn sixty_four_concurrent_requests_get_their_own_completions() {
    let server = Arc::new(TestServer::new().await);
    let mut asking = JoinSet::new();
    for number in 0..64 {
        let server = Arc::clone(&server);
        asking.spawn(async move {
            let stream = number % 2 == 0;
            let more = json!({ "stream": stream });
            let socket = begin(&server, "", &with(&format!("hello {number}"), &more)).await;
            let reply = rest(socket).await;
            let content = if stream {
                crate::streams::content(&reply.chunks())
            } else {
                reply.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
            };
            assert_eq!(content, format!("You said hello {number}"));
        });
    }
    let mut answered = 0;
    while let Some(ended) = asking.join_next().await {
        ended.unwrap();
        answered += 1;
    }
    assert_eq!(answered, 64);
    Arc::into_inner(server).unwrap().ended().await;
}
