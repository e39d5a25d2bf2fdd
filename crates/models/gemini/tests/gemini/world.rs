//! A server that replies as it is told, a provider that asks it, and the words of the wire.

use std::sync::{Arc, LazyLock};

use antiphon_core::{
    AssistantBlock, AssistantMessage, Cancel, Message, MessageStream, ModelRef, OpaqueBlock,
    ProviderError, RawJson, Request, Signature, StopReason, StreamError, ThinkingBlock,
    ToolArguments, ToolCallBlock, ToolCallId, Usage, UserMessage,
};
use antiphon_gemini::{Config, Gemini};
use antiphon_model_server::{ModelServer, Reply};
use antiphon_model_transport::{Endpoint, Transport, TransportConfig};
use chrono::{DateTime, Utc};
use serde_json::Value;

/// One for all: reading the certificates of the system takes longer than a test.
static TRANSPORT: LazyLock<Transport> =
    LazyLock::new(|| Transport::new(&TransportConfig::default()).expect("a transport"));

/// When everything here happens.
pub(crate) const AT: DateTime<Utc> = DateTime::UNIX_EPOCH;

pub(crate) fn config(server: &ModelServer) -> Config {
    Config {
        name: "gemini".to_owned(),
        base_url: Endpoint::parse(&server.url()).expect("an address"),
        api_key: Some("s3cret".into()),
    }
}

pub(crate) fn provider(config: Config) -> Gemini {
    Gemini::new(config, TRANSPORT.clone())
}

pub(crate) async fn server(reply: Reply) -> ModelServer {
    ModelServer::start(move |_, _| reply.clone()).await.expect("a server")
}

/// Asks `gemini-3` one thing.
pub(crate) fn request(messages: Vec<Message>) -> Request {
    let messages = messages.into_iter().map(Arc::new).collect();
    Request { model: "gemini-3".to_owned(), messages, ..Request::default() }
}

pub(crate) fn user(text: &str) -> Message {
    UserMessage::text(text, AT).into()
}

/// What was answered, and why no more.
pub(crate) type Answer = (AssistantMessage, Option<ProviderError>);

/// What `reply` says to its end.
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
                unreachable!("nobody did that: {error}")
            }
        }
    };
    (stream.message().expect("a message"), failure)
}

/// The JSON that is sent for `request`.
pub(crate) async fn sent(request: Request) -> Value {
    let server = server(Reply::events(end("STOP"))).await;
    let provider = provider(config(&server));
    let stream = MessageStream::open(&provider, request, Cancel::never(), AT);
    stream.complete().await.expect("an answer");
    server.requests()[0].json()
}

/// An event with more parts of an answer that has cost 10 tokens to ask.
pub(crate) fn parts(parts: &[&str]) -> String {
    let parts = parts.join(",");
    event(&format!(
        r#"{{"candidates":[{{"content":{{"parts":[{parts}],"role":"model"}},"index":0}}],"usageMetadata":{{"promptTokenCount":10,"totalTokenCount":10}},"modelVersion":"gemini-3","responseId":"r1"}}"#
    ))
}

/// The last event of an answer that has cost 5 tokens to write.
pub(crate) fn end(finish_reason: &str) -> String {
    event(&format!(
        r#"{{"candidates":[{{"content":{{"parts":[{{"text":""}}],"role":"model"}},"finishReason":"{finish_reason}","index":0}}],"usageMetadata":{{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":15}},"modelVersion":"gemini-3","responseId":"r1"}}"#
    ))
}

/// An answer that ends its turn, one event for each list of parts.
pub(crate) fn whole(events: &[&[&str]]) -> String {
    let events: String = events.iter().map(|list| parts(list)).collect();
    events + &end("STOP")
}

pub(crate) fn event(data: &str) -> String {
    format!("data: {data}\r\n\r\n")
}

/// The message that [`parts`] and [`end`] make.
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

/// The message of an answer that broke off before its end.
pub(crate) fn broken(content: Vec<AssistantBlock>) -> AssistantMessage {
    AssistantMessage { usage: usage(10, 0), ..message(content, StopReason::Error, "") }
}

/// The message of a reply that was no answer.
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

/// The id that a call without one gets in the answer to one message, by the number of its block.
pub(crate) fn made_id(block: u32) -> String {
    format!("00000000-0000-0001-0000-{block:012x}")
}
