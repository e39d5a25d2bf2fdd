//! A model server with scripted replies, a provider, and wire fragments.

use std::sync::{Arc, LazyLock};

use antiphon_anthropic::{Anthropic, AnthropicConfig, CacheTtl};
use antiphon_core::{
    AssistantBlock, AssistantMessage, Cancel, Message, MessageStream, ModelRef, ProviderError,
    RawJson, Request, Signature, StopReason, StreamError, ThinkingBlock, ToolArguments,
    ToolCallBlock, ToolCallId, Usage, UserMessage,
};
use antiphon_model_server::{ModelServer, Reply};
use antiphon_model_transport::{Endpoint, Transport, TransportConfig};
use chrono::{DateTime, Utc};
use serde_json::Value;

/// Shared: loading the system's certificates takes longer than a test.
static TRANSPORT: LazyLock<Transport> =
    LazyLock::new(|| Transport::new(&TransportConfig::default()).expect("a transport"));

/// The time of all messages.
pub(crate) const AT: DateTime<Utc> = DateTime::UNIX_EPOCH;

pub(crate) fn model(name: &str) -> ModelRef {
    ModelRef::parse(&format!("anthropic/{name}")).expect("a model")
}

pub(crate) fn config(server: &ModelServer, cache: Option<CacheTtl>) -> AnthropicConfig {
    AnthropicConfig {
        name: "anthropic".to_owned(),
        base_url: Endpoint::parse(&server.url()).expect("an address"),
        api_key: Some("s3cret".into()),
        cache,
    }
}

pub(crate) fn provider(config: AnthropicConfig) -> Anthropic {
    Anthropic::new(config, TRANSPORT.clone())
}

pub(crate) async fn server(reply: Reply) -> ModelServer {
    ModelServer::start(move |_, _| reply.clone()).await.expect("a server")
}

/// A request to `claude`.
pub(crate) fn request(messages: Vec<Message>) -> Request {
    let messages = messages.into_iter().map(Arc::new).collect();
    Request { model: "claude".to_owned(), messages, ..Request::default() }
}

pub(crate) fn user(text: &str) -> Message {
    UserMessage::text(text, AT).into()
}

/// The message and the error.
pub(crate) type Answer = (AssistantMessage, Option<ProviderError>);

/// The answer to one request.
pub(crate) async fn answer(reply: Reply) -> Answer {
    let server = server(reply).await;
    let provider = provider(config(&server, None));
    let mut stream = MessageStream::open(&provider, request(vec![user("hi")]), Cancel::never(), AT);
    let failure = loop {
        match stream.next().await {
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(StreamError::Provider(error)) => break Some(error),
            Err(error @ (StreamError::Canceled | StreamError::Closed)) => {
                unreachable!("the test does not do that: {error}")
            }
        }
    };
    (stream.message().expect("a message"), failure)
}

/// The JSON body of `request`.
pub(crate) async fn sent(request: Request, cache: Option<CacheTtl>) -> Value {
    let server = server(Reply::events(whole(&[]))).await;
    let provider = provider(config(&server, cache));
    let stream = MessageStream::open(&provider, request, Cancel::never(), AT);
    stream.complete().await.expect("an answer");
    server.requests()[0].json()
}

/// The start of an answer with 10 input tokens.
pub(crate) fn begin() -> String {
    event(
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-1","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}"#,
    )
}

/// A block from its start to its stop.
pub(crate) fn block(index: u32, start: &str, deltas: &[&str]) -> String {
    let deltas: String = deltas.iter().map(|json| delta(index, json)).collect();
    block_start(index, start) + &deltas + &block_stop(index)
}

pub(crate) fn block_start(index: u32, start: &str) -> String {
    event(&format!(r#"{{"type":"content_block_start","index":{index},"content_block":{start}}}"#))
}

pub(crate) fn delta(index: u32, delta: &str) -> String {
    event(&format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#))
}

pub(crate) fn block_stop(index: u32) -> String {
    event(&format!(r#"{{"type":"content_block_stop","index":{index}}}"#))
}

/// A text block.
pub(crate) fn text(index: u32, text: &str) -> String {
    block(
        index,
        r#"{"type":"text","text":""}"#,
        &[&format!(r#"{{"type":"text_delta","text":"{text}"}}"#)],
    )
}

/// The end of an answer with 5 output tokens.
pub(crate) fn end(stop_reason: &str) -> String {
    let delta = format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{stop_reason}","stop_sequence":null}},"usage":{{"output_tokens":5}}}}"#
    );
    event(&delta) + &event(r#"{"type":"message_stop"}"#)
}

/// A complete answer.
pub(crate) fn whole(blocks: &[String]) -> String {
    begin() + &blocks.concat() + &end("end_turn")
}

/// An event, named after its type.
pub(crate) fn event(data: &str) -> String {
    let json: Value = serde_json::from_str(data).expect("an event");
    format!("event: {}\ndata: {data}\n\n", json["type"].as_str().unwrap_or_default())
}

/// The message of [`begin`] and [`end`].
pub(crate) fn message(
    content: Vec<AssistantBlock>,
    stop_reason: StopReason,
    raw_stop_reason: &str,
) -> AssistantMessage {
    AssistantMessage {
        content,
        stop_reason,
        raw_stop_reason: raw_stop_reason.to_owned(),
        usage: usage(10, 5),
        model: Some(model("claude")),
        timestamp: AT,
    }
}

/// The message of an interrupted answer.
pub(crate) fn broken(content: Vec<AssistantBlock>) -> AssistantMessage {
    AssistantMessage { usage: usage(10, 1), ..message(content, StopReason::Error, "") }
}

pub(crate) fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, cache_read_tokens: None, cache_write_tokens: None }
}

pub(crate) fn thinking(thinking: &str, signature: Option<&str>) -> AssistantBlock {
    AssistantBlock::Thinking(ThinkingBlock {
        thinking: thinking.to_owned(),
        signature: signature.map(|text| Signature(text.to_owned())),
    })
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> AssistantBlock {
    AssistantBlock::ToolCall(ToolCallBlock {
        id: ToolCallId::parse(id).expect("an id"),
        name: name.to_owned(),
        arguments: ToolArguments::from_model(arguments.to_owned()),
        signature: None,
    })
}

pub(crate) fn opaque(kind: &str, value: &str) -> AssistantBlock {
    AssistantBlock::Opaque(antiphon_core::OpaqueBlock {
        kind: kind.to_owned(),
        value: RawJson::parse(value).expect("JSON"),
    })
}
