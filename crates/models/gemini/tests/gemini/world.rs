//! A model server with scripted replies, a provider, and wire fragments.

use std::sync::{Arc, LazyLock};

use antiphon_core::{
    AssistantBlock, AssistantMessage, Cancel, Message, MessageStream, ModelRef, OpaqueBlock,
    ProviderError, RawJson, Request, Signature, StopReason, StreamError, ThinkingBlock,
    ToolArguments, ToolCallBlock, ToolCallId, Usage, UserMessage,
};
use antiphon_gemini::{Gemini, GeminiConfig};
use antiphon_model_server::{ModelServer, Reply};
use antiphon_model_transport::{Endpoint, Transport, TransportConfig};
use chrono::{DateTime, Utc};
use serde_json::Value;

/// Shared: loading the system's certificates takes longer than a test.
static TRANSPORT: LazyLock<Transport> =
    LazyLock::new(|| Transport::new(&TransportConfig::default()).expect("a transport"));

/// The time of all messages.
pub(crate) const AT: DateTime<Utc> = DateTime::UNIX_EPOCH;

pub(crate) fn config(server: &ModelServer) -> GeminiConfig {
    GeminiConfig {
        name: "gemini".to_owned(),
        base_url: Endpoint::parse(&server.url()).expect("an address"),
        api_key: Some("s3cret".into()),
    }
}

pub(crate) fn provider(config: GeminiConfig) -> Gemini {
    Gemini::new(config, TRANSPORT.clone())
}

pub(crate) async fn server(reply: Reply) -> ModelServer {
    ModelServer::start(move |_, _| reply.clone()).await.expect("a server")
}

/// A request to `gemini-3`.
pub(crate) fn request(messages: Vec<Message>) -> Request {
    let messages = messages.into_iter().map(Arc::new).collect();
    Request { model: "gemini-3".to_owned(), messages, ..Request::default() }
}

pub(crate) fn user(text: &str) -> Message {
    UserMessage::text(text, AT).into()
}

/// The message and the error.
pub(crate) type Answer = (AssistantMessage, Option<ProviderError>);

/// The answer to one request.
pub(crate) async fn answer(reply: Reply) -> Answer {
    let server = server(reply).await;
    let provider = provider(config(&server));
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
pub(crate) async fn sent(request: Request) -> Value {
    let server = server(Reply::events(end("STOP"))).await;
    let provider = provider(config(&server));
    let stream = MessageStream::open(&provider, request, Cancel::never(), AT);
    stream.complete().await.expect("an answer");
    server.requests()[0].json()
}

/// An event with parts of an answer with 10 input tokens.
pub(crate) fn parts(parts: &[&str]) -> String {
    let parts = parts.join(",");
    event(&format!(
        r#"{{"candidates":[{{"content":{{"parts":[{parts}],"role":"model"}},"index":0}}],"usageMetadata":{{"promptTokenCount":10,"totalTokenCount":10}},"modelVersion":"gemini-3","responseId":"r1"}}"#
    ))
}

/// The last event of an answer with 5 output tokens.
pub(crate) fn end(finish_reason: &str) -> String {
    event(&format!(
        r#"{{"candidates":[{{"content":{{"parts":[{{"text":""}}],"role":"model"}},"finishReason":"{finish_reason}","index":0}}],"usageMetadata":{{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}},"modelVersion":"gemini-3","responseId":"r1"}}"#
    ))
}

/// A complete answer, one event for each list of parts.
pub(crate) fn whole(events: &[&[&str]]) -> String {
    let events: String = events.iter().map(|list| parts(list)).collect();
    events + &end("STOP")
}

pub(crate) fn event(data: &str) -> String {
    format!("data: {data}\r\n\r\n")
}

/// The message of [`parts`] and [`end`].
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
        model: Some(ModelRef::parse("gemini/gemini-3").expect("a model")),
        timestamp: AT,
    }
}

/// The message of an interrupted answer.
pub(crate) fn broken(content: Vec<AssistantBlock>) -> AssistantMessage {
    AssistantMessage { usage: usage(10, 0), ..message(content, StopReason::Error, "") }
}

/// A message without content.
pub(crate) fn silent() -> AssistantMessage {
    AssistantMessage { model: None, usage: usage(0, 0), ..broken(vec![]) }
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

/// A call of `look`.
pub(crate) fn call(id: &str, arguments: &str, signature: Option<&str>) -> AssistantBlock {
    AssistantBlock::ToolCall(ToolCallBlock {
        id: ToolCallId::parse(id).expect("an id"),
        name: "look".to_owned(),
        arguments: ToolArguments::from_model(arguments.to_owned()),
        signature: signature.map(|text| Signature(text.to_owned())),
    })
}

pub(crate) fn opaque(kind: &str, value: &str) -> AssistantBlock {
    AssistantBlock::Opaque(OpaqueBlock {
        kind: kind.to_owned(),
        value: RawJson::parse(value).expect("JSON"),
    })
}

/// The block that keeps the signature of a text.
pub(crate) fn signature(signature: &str) -> AssistantBlock {
    let value = format!(r#"{{"text":"","thoughtSignature":"{signature}"}}"#);
    opaque("thoughtSignature", &value)
}

/// The generated id of a call without one, by its block number.
pub(crate) fn made_id(block: u32) -> String {
    format!("00000000-0000-0001-0000-{block:012x}")
}
