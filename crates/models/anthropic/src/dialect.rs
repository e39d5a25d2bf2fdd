//! Parses the answer.
//!
//! `message_start`, then per block `content_block_start`, deltas, `content_block_stop`, then
//! `message_delta` and `message_stop`; `ping` and `error` at any time. Unknown events, deltas and
//! blocks are skipped or kept, never refused, because the wire format grows.

use std::collections::HashMap;

use antiphon_core::port::StopSignal;
use antiphon_core::stream::{BLOCKS_MAX, MESSAGE_BYTES_MAX};
use antiphon_core::{ModelRef, Piece, ProviderError, RawJson, StopReason, Usage};
use antiphon_model_transport::{Dialect, HttpFailure, malformed_event, missing_field};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub(crate) struct MessagesDialect {
    model: ModelRef,
    usage: Usage,
    /// Blocks of unknown kinds, until they are complete.
    opaque: HashMap<u32, Opaque>,
}

struct Opaque {
    block: Map<String, Value>,
    input_json: String,
}

/// The meaning of a field depends on the kind, and an unknown kind may put anything there.
#[derive(Deserialize)]
struct EventIn<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(default)]
    index: u32,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageIn {
    usage: Option<UsageIn>,
}

#[derive(Deserialize)]
struct BlockIn {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    signature: String,
    id: Option<String>,
    name: Option<String>,
    input: Option<RawJson>,
}

#[derive(Default, Deserialize)]
struct DeltaIn {
    text: Option<String>,
    partial_json: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names are the wire's")]
struct UsageIn {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorIn,
}

#[derive(Deserialize)]
struct ErrorIn {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    message: String,
}

impl MessagesDialect {
    pub(crate) fn new(model: ModelRef) -> Self {
        Self { model, usage: Usage::default(), opaque: HashMap::new() }
    }

    fn block_start(
        &mut self,
        block: u32,
        raw: &RawValue,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError> {
        let start: BlockIn = parse(raw)?;
        match start.kind.as_str() {
            "text" => pieces.push(Piece::Text { block, delta: start.text }),
            "thinking" => {
                pieces.push(Piece::Thinking { block, delta: start.thinking });
                if !start.signature.is_empty() {
                    pieces.push(Piece::Signature { block, delta: start.signature });
                }
            }
            "tool_use" => {
                // Nearly always empty here; servers that do not stream arguments send them at once.
                let input = start.input.filter(|input| input.as_str() != "{}");
                pieces.push(Piece::ToolCall {
                    block,
                    id: start.id,
                    name: start.name,
                    arguments: input.map(|input| input.to_string()).unwrap_or_default(),
                });
            }
            _ => {
                if self.opaque.len() == BLOCKS_MAX {
                    return Err(too_much());
                }
                let opaque = Opaque { block: parse(raw)?, input_json: String::new() };
                self.opaque.insert(block, opaque);
            }
        }
        Ok(())
    }

    fn block_delta(
        &mut self,
        block: u32,
        delta: DeltaIn,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError> {
        if let Some(opaque) = self.opaque.get_mut(&block) {
            opaque.input_json.push_str(&delta.partial_json.unwrap_or_default());
            let too_long = opaque.input_json.len() > MESSAGE_BYTES_MAX;
            return if too_long { Err(too_much()) } else { Ok(()) };
        }
        if let Some(delta) = delta.text {
            pieces.push(Piece::Text { block, delta });
        }
        if let Some(delta) = delta.thinking {
            pieces.push(Piece::Thinking { block, delta });
        }
        if let Some(delta) = delta.signature {
            pieces.push(Piece::Signature { block, delta });
        }
        if let Some(arguments) = delta.partial_json {
            pieces.push(Piece::ToolCall { block, id: None, name: None, arguments });
        }
        Ok(())
    }

    fn block_stop(&mut self, block: u32, pieces: &mut Vec<Piece>) -> Result<(), ProviderError> {
        let Some(mut opaque) = self.opaque.remove(&block) else {
            pieces.push(Piece::BlockEnd { block });
            return Ok(());
        };
        if let Ok(input) = serde_json::from_str(&opaque.input_json) {
            opaque.block.insert("input".to_owned(), input);
        }
        let kind = opaque.block.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let value = RawJson::of(&opaque.block)
            .map_err(|error| ProviderError::Protocol { message: error.to_string() })?;
        pieces.push(Piece::Opaque { block, kind, value });
        Ok(())
    }

    /// Counts are cumulative; an absent count keeps its value.
    fn count(&mut self, usage: &UsageIn, pieces: &mut Vec<Piece>) {
        let known = &mut self.usage;
        known.input_tokens = usage.input_tokens.unwrap_or(known.input_tokens);
        known.output_tokens = usage.output_tokens.unwrap_or(known.output_tokens);
        known.cache_read_tokens = usage.cache_read_input_tokens.or(known.cache_read_tokens);
        known.cache_write_tokens = usage.cache_creation_input_tokens.or(known.cache_write_tokens);
        pieces.push(Piece::Usage(*known));
    }
}

impl Dialect for MessagesDialect {
    fn event(
        &mut self,
        _name: &str,
        data: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError> {
        let event: EventIn<'_> = serde_json::from_str(data).map_err(malformed_event)?;
        match event.kind {
            "message_start" => {
                pieces.push(Piece::Model(self.model.clone()));
                let message: Option<MessageIn> = event.message.map(parse).transpose()?;
                if let Some(usage) = message.and_then(|message| message.usage) {
                    self.count(&usage, pieces);
                }
            }
            "content_block_start" => {
                let raw = event.content_block.ok_or_else(|| missing_field("content_block"))?;
                self.block_start(event.index, raw, pieces)?;
            }
            "content_block_delta" => {
                let raw = event.delta.ok_or_else(|| missing_field("delta"))?;
                self.block_delta(event.index, parse(raw)?, pieces)?;
            }
            "content_block_stop" => self.block_stop(event.index, pieces)?,
            "message_delta" => {
                let delta: Option<DeltaIn> = event.delta.map(parse).transpose()?;
                if let Some(raw) = delta.and_then(|delta| delta.stop_reason) {
                    pieces.push(Piece::Stop(StopSignal { reason: stop_reason(&raw), raw }));
                }
                if let Some(raw) = event.usage {
                    self.count(&parse(raw)?, pieces);
                }
            }
            "message_stop" => pieces.push(Piece::Done),
            "error" => {
                let error: ErrorIn = parse(event.error.ok_or_else(|| missing_field("error"))?)?;
                return Err(provider_error(&error, &HttpFailure::mid_stream()));
            }
            _ => {}
        }
        Ok(())
    }

    fn failure(&self, failure: &HttpFailure) -> ProviderError {
        match serde_json::from_str::<ErrorBody>(&failure.body) {
            Ok(body) => provider_error(&body.error, failure),
            Err(_) => failure.by_status(None),
        }
    }
}

fn stop_reason(raw: &str) -> StopReason {
    match raw {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "tool_use" => StopReason::ToolUse,
        // The partial answer, calls included, must not be used.
        "refusal" => StopReason::Error,
        _ => StopReason::Unknown,
    }
}

/// The type of an error is more precise than its status, which is 200 in the middle of a stream.
fn provider_error(error: &ErrorIn, failure: &HttpFailure) -> ProviderError {
    let message = failure.message(Some(&error.message));
    let (status, retry_after) = (failure.status, failure.retry_after);
    match error.kind.as_str() {
        "invalid_request_error" if is_overflow(&message) => {
            ProviderError::ContextOverflow { message }
        }
        "request_too_large" => ProviderError::ContextOverflow { message },
        "invalid_request_error" => ProviderError::InvalidRequest { message },
        "authentication_error" => ProviderError::Authentication { message },
        "billing_error" | "permission_error" => ProviderError::Permission { message },
        "not_found_error" => ProviderError::NotFound { message },
        "rate_limit_error" => ProviderError::RateLimited { message, retry_after },
        "overloaded_error" => ProviderError::Overloaded { message, retry_after },
        "api_error" | "timeout_error" | "conflict_error" => {
            ProviderError::Server { status, message, retry_after }
        }
        _ if status == 200 => ProviderError::Server { status, message, retry_after },
        _ => failure.by_status(Some(&error.message)),
    }
}

fn is_overflow(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("prompt is too long")
        || message.contains("context window")
        || message.contains("exceed context limit")
}

fn parse<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Result<T, ProviderError> {
    serde_json::from_str(raw.get()).map_err(malformed_event)
}

fn too_much() -> ProviderError {
    ProviderError::Protocol { message: "more of unknown kinds than an answer may hold".to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ordeal::{mangled, survives};

    const RECORDED: [&str; 4] = [
        include_str!("../tests/fixtures/sealed_thinking.sse"),
        include_str!("../tests/fixtures/server_tool.sse"),
        include_str!("../tests/fixtures/text.sse"),
        include_str!("../tests/fixtures/thinking_and_calls.sse"),
    ];

    proptest! {
        #[test]
        fn any_input_is_parsed_without_a_panic_and_only_complete_calls_are_kept(
            stream in mangled(&RECORDED),
        ) {
            let model = ModelRef::parse("provider/model").expect("a model");
            survives(MessagesDialect::new(model), &stream)?;
        }
    }
}
