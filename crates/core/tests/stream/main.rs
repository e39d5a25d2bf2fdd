//! One answer of a model: the states of its stream, and how pieces become a message.
//!
//! A test writes down what a provider's wire says and compares everything a reader gets to
//! see of it: the events, how they end, and the message.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod assembly;
mod call;
mod cancellation;
mod fault;
mod state;

use antiphon_core::port::StopSignal;
use antiphon_core::{
    AssistantBlock, AssistantMessage, Cancel, MessageStream, Piece, PieceSource, ProviderError,
    RawJson, Signature, StopReason, StreamError, StreamEvent, ThinkingBlock, ToolArguments,
    ToolCallBlock, ToolCallId, Usage,
};
use chrono::{DateTime, Utc};
use futures_executor::block_on;
use futures_util::StreamExt;
use futures_util::stream::{iter, pending};

/// When every answer here begins: one second after the epoch.
fn at() -> DateTime<Utc> {
    DateTime::from_timestamp(1, 0).unwrap()
}

/// All a reader gets to see of an answer.
#[derive(Debug, PartialEq)]
struct Seen {
    events: Vec<StreamEvent>,
    end: Result<(), StreamError>,
    message: AssistantMessage,
}

/// Reads an answer to its end.
fn seen(pieces: impl IntoIterator<Item = Piece>) -> Seen {
    read(&mut answer(pieces.into_iter().map(Ok)))
}

fn read(stream: &mut MessageStream) -> Seen {
    let mut events = Vec::new();
    let end = loop {
        match block_on(stream.next()) {
            Ok(Some(event)) => events.push(event),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let message = stream.message().unwrap();
    Seen { events, end, message }
}

/// An answer of which the wire says this, and then ends.
fn answer(wire: impl IntoIterator<Item = Result<Piece, ProviderError>>) -> MessageStream {
    let wire: Vec<_> = wire.into_iter().collect();
    MessageStream::new(Box::pin(iter(wire)), Cancel::never(), at())
}

/// A wire that says this and then stays silent.
fn silent_after(pieces: Vec<Piece>) -> PieceSource {
    Box::pin(iter(pieces).map(Ok).chain(pending()))
}

/// A message of these blocks.
fn message(stop_reason: StopReason, content: Vec<AssistantBlock>) -> AssistantMessage {
    AssistantMessage {
        content,
        stop_reason,
        raw_stop_reason: String::new(),
        usage: Usage::default(),
        model: None,
        timestamp: at(),
    }
}

fn protocol(message: &str) -> StreamError {
    ProviderError::Protocol { message: message.to_owned() }.into()
}

fn text(block: u32, delta: &str) -> Piece {
    Piece::Text { block, delta: delta.to_owned() }
}

fn thinking(block: u32, delta: &str) -> Piece {
    Piece::Thinking { block, delta: delta.to_owned() }
}

fn signature(block: u32, delta: &str) -> Piece {
    Piece::Signature { block, delta: delta.to_owned() }
}

/// A piece of a call; what is empty the wire does not say.
fn call(block: u32, id: &str, name: &str, arguments: &str) -> Piece {
    let said = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Piece::ToolCall { block, id: said(id), name: said(name), arguments: arguments.to_owned() }
}

fn opaque(block: u32, value: &str) -> Piece {
    let value = RawJson::parse(value).unwrap();
    Piece::Opaque { block, kind: "redacted_thinking".to_owned(), value }
}

fn end(block: u32) -> Piece {
    Piece::BlockEnd { block }
}

fn stop(reason: StopReason, raw: &str) -> Piece {
    Piece::Stop(StopSignal { reason, raw: raw.to_owned() })
}

fn id(text: &str) -> ToolCallId {
    ToolCallId::parse(text).unwrap()
}

fn object(json: &str) -> ToolArguments {
    ToolArguments::Object(RawJson::parse(json).unwrap())
}

fn malformed(text: &str) -> ToolArguments {
    ToolArguments::Malformed(text.to_owned())
}

fn whole_call(call_id: &str, name: &str, arguments: ToolArguments) -> ToolCallBlock {
    ToolCallBlock { id: id(call_id), name: name.to_owned(), arguments, signature: None }
}

fn thought(text: &str, signature: Option<&str>) -> AssistantBlock {
    AssistantBlock::Thinking(ThinkingBlock {
        thinking: text.to_owned(),
        signature: signature.map(|text| Signature(text.to_owned())),
    })
}

fn text_delta(delta: &str) -> StreamEvent {
    StreamEvent::TextDelta { delta: delta.to_owned() }
}

fn thinking_delta(delta: &str) -> StreamEvent {
    StreamEvent::ThinkingDelta { delta: delta.to_owned() }
}

fn begin(call_id: &str, name: &str) -> StreamEvent {
    StreamEvent::ToolCallBegin { id: id(call_id), name: name.to_owned() }
}

fn delta(call_id: &str, delta: &str) -> StreamEvent {
    StreamEvent::ToolCallDelta { id: id(call_id), delta: delta.to_owned() }
}

fn ended(call: ToolCallBlock) -> StreamEvent {
    StreamEvent::ToolCallEnd { call }
}
