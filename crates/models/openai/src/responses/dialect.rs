//! Parses the answer.
//!
//! `response.created`, then per item `output_item.added`, deltas, `output_item.done`, then one of
//! `response.completed`, `incomplete` or `failed`; `error` at any time. A reasoning item becomes
//! two blocks: its summary, which is shown, and the encrypted item, which is kept for the next
//! request. Items of unknown kinds are kept, events of unknown kinds skipped.

use std::borrow::Cow;

use antiphon_core::port::StopSignal;
use antiphon_core::{ModelRef, Piece, ProviderError, RawJson, StopReason, Usage};
use antiphon_model_transport::{Dialect, HttpFailure, malformed_event, missing_field};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::items::{ItemIds, Items, Part};
use crate::failure;

/// The kind of a reasoning item.
pub(super) const REASONING: &str = "reasoning";

pub(super) struct ResponsesDialect {
    /// Until the first event, which reports it.
    model: Option<ModelRef>,
    items: Items,
}

#[derive(Deserialize)]
struct EventIn<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    output_index: Option<u64>,
    item_id: Option<String>,
    content_index: Option<u32>,
    summary_index: Option<u32>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ItemIn<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
    encrypted_content: Option<String>,
}

#[derive(Deserialize)]
struct PartIn {
    text: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct ResponseIn {
    status: Option<String>,
    incomplete_details: Option<IncompleteIn>,
    usage: Option<UsageIn>,
}

#[derive(Deserialize)]
struct IncompleteIn {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct UsageIn {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    input_tokens_details: Option<InputIn>,
}

#[derive(Deserialize)]
struct InputIn {
    cached_tokens: Option<u64>,
    /// Reported for models that charge for it.
    cache_write_tokens: Option<u64>,
}

impl ItemIn<'_> {
    fn ids_of(&self, index: Option<u64>) -> ItemIds {
        ItemIds { index, id: self.id.clone(), call_id: self.call_id.clone() }
    }
}

impl ResponsesDialect {
    pub(super) fn new(model: ModelRef) -> Self {
        Self { model: Some(model), items: Items::default() }
    }

    fn item_of(&mut self, event: &EventIn<'_>) -> usize {
        self.items.of_delta(event.output_index, event.item_id.as_deref())
    }

    fn text(&mut self, item: usize, index: u32, delta: String, pieces: &mut Vec<Piece>) {
        let block = self.items.block(item, Part::Text(index));
        pieces.push(Piece::Text { block, delta });
    }

    fn thinking(&mut self, item: usize, part: Part, delta: String, pieces: &mut Vec<Piece>) {
        let block = self.items.block(item, part);
        pieces.push(Piece::Thinking { block, delta });
    }

    fn arguments(&mut self, item: usize, arguments: String, pieces: &mut Vec<Piece>) {
        self.items.add_arguments(item, &arguments);
        let block = self.items.block(item, Part::Call);
        pieces.push(Piece::ToolCall { block, id: None, name: None, arguments });
    }

    fn item_added(
        &mut self,
        event: &EventIn<'_>,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError> {
        let raw = event.item.ok_or_else(|| missing_field("item"))?;
        let item: ItemIn<'_> = serde_json::from_str(raw.get()).map_err(malformed_event)?;
        let index = self.items.opened(item.ids_of(event.output_index));
        if item.kind == "function_call" {
            self.call(index, item, pieces);
        }
        Ok(())
    }

    /// Content of a finished item that was not streamed.
    fn item_done(
        &mut self,
        event: &EventIn<'_>,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError> {
        let raw = event.item.ok_or_else(|| missing_field("item"))?;
        let item: ItemIn<'_> = serde_json::from_str(raw.get()).map_err(malformed_event)?;
        let index = self.items.closed(item.ids_of(event.output_index));
        match item.kind.as_str() {
            "message" => self.message(index, item.content, pieces)?,
            "function_call" => {
                let block = self.call(index, item, pieces);
                pieces.push(Piece::BlockEnd { block });
            }
            REASONING => self.reasoning(index, item, raw, pieces)?,
            _ => self.keep(index, item.kind, raw, pieces)?,
        }
        Ok(())
    }

    fn message(
        &mut self,
        index: usize,
        content: Option<&RawValue>,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError> {
        if !self.items.has(index, |part| matches!(part, Part::Text(_))) {
            for (part, text) in (0..).zip(texts(content)?) {
                self.text(index, part, text, pieces);
            }
        }
        Ok(())
    }

    /// A call item, with its arguments unless they were streamed.
    fn call(&mut self, index: usize, item: ItemIn<'_>, pieces: &mut Vec<Piece>) -> u32 {
        let block = self.items.block(index, Part::Call);
        let has_arguments = self.items.has_arguments(index);
        let arguments = item.arguments.filter(|_| !has_arguments).unwrap_or_default();
        self.items.add_arguments(index, &arguments);
        pieces.push(Piece::ToolCall { block, id: item.call_id, name: item.name, arguments });
        block
    }

    fn reasoning(
        &mut self,
        index: usize,
        item: ItemIn<'_>,
        raw: &RawValue,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError> {
        if !self.items.has(index, |part| matches!(part, Part::Summary(_) | Part::Reasoning(_))) {
            for (part, text) in (0..).zip(texts(item.summary)?) {
                self.thinking(index, Part::Summary(part), text, pieces);
            }
            for (part, text) in (0..).zip(texts(item.content)?) {
                self.thinking(index, Part::Reasoning(part), text, pieces);
            }
        }
        // Without its encrypted content it cannot be sent back: the server has not stored it.
        match item.encrypted_content {
            Some(seal) if !seal.is_empty() => self.keep(index, item.kind, raw, pieces),
            Some(_) | None => Ok(()),
        }
    }

    fn keep(
        &mut self,
        index: usize,
        kind: String,
        raw: &RawValue,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError> {
        let value = RawJson::parse(raw.get())
            .map_err(|error| ProviderError::Protocol { message: error.to_string() })?;
        let block = self.items.block(index, Part::Encrypted);
        pieces.push(Piece::Opaque { block, kind, value });
        Ok(())
    }
}

impl Dialect for ResponsesDialect {
    fn event(
        &mut self,
        name: &str,
        data: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError> {
        // Not part of this wire, but some servers send it.
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let event: EventIn<'_> = serde_json::from_str(data).map_err(malformed_event)?;
        let kind = if event.kind.is_empty() { name } else { event.kind.as_ref() };
        if event.error.is_some() || matches!(kind, "error" | "response.failed") {
            return Err(failed(&serde_json::from_str(data).map_err(malformed_event)?));
        }
        pieces.extend(self.model.take().map(Piece::Model));
        let part = event.content_index.unwrap_or_default();
        match kind {
            "response.output_item.added" => self.item_added(&event, pieces)?,
            "response.output_item.done" => self.item_done(&event, pieces)?,
            "response.output_text.delta" | "response.refusal.delta" => {
                let item = self.item_of(&event);
                self.text(item, part, text_of(event.delta)?, pieces);
            }
            "response.reasoning_summary_text.delta" => {
                let part = Part::Summary(event.summary_index.unwrap_or_default());
                let item = self.item_of(&event);
                self.thinking(item, part, text_of(event.delta)?, pieces);
            }
            "response.reasoning_text.delta" => {
                let item = self.item_of(&event);
                self.thinking(item, Part::Reasoning(part), text_of(event.delta)?, pieces);
            }
            "response.function_call_arguments.delta" => {
                let item = self.item_of(&event);
                self.arguments(item, text_of(event.delta)?, pieces);
            }
            "response.function_call_arguments.done" => {
                let item = self.item_of(&event);
                if !self.items.has_arguments(item) {
                    self.arguments(item, text_of(event.arguments)?, pieces);
                }
            }
            "response.completed" | "response.incomplete" => {
                let raw = event.response.ok_or_else(|| missing_field("response"))?;
                finish(&serde_json::from_str(raw.get()).map_err(malformed_event)?, pieces);
            }
            _ => {}
        }
        Ok(())
    }

    fn failure(&self, failure: &HttpFailure) -> ProviderError {
        failure::of_response(failure)
    }
}

/// The answer is complete, or as complete as it gets. Some servers report `completed` for both and
/// put the difference inside.
fn finish(response: &ResponseIn, pieces: &mut Vec<Piece>) {
    if let Some(usage) = &response.usage {
        let details = usage.input_tokens_details.as_ref();
        let read = details.and_then(|input| input.cached_tokens);
        let written = details.and_then(|input| input.cache_write_tokens);
        // Both are part of the input.
        let cached = read.unwrap_or_default().saturating_add(written.unwrap_or_default());
        pieces.push(Piece::Usage(Usage {
            input_tokens: usage.input_tokens.saturating_sub(cached),
            output_tokens: usage.output_tokens,
            cache_read_tokens: read,
            cache_write_tokens: written,
        }));
    }
    let why = response.incomplete_details.as_ref().and_then(|details| details.reason.as_deref());
    let raw = why.or(response.status.as_deref()).unwrap_or("completed").to_owned();
    let reason = match raw.as_str() {
        "completed" => StopReason::EndTurn,
        "max_output_tokens" => StopReason::Length,
        // The partial answer, calls included, must not be used.
        "content_filter" => StopReason::Error,
        _ => StopReason::Unknown,
    };
    pieces.push(Piece::Stop(StopSignal { reason, raw }));
    pieces.push(Piece::Done);
}

/// The error is in the response, in the event, or is the event.
fn failed(event: &Value) -> ProviderError {
    let inner = event.get("response").and_then(|response| response.get("error"));
    failure::in_stream(inner.filter(|error| !error.is_null()).unwrap_or(event))
}

/// The texts of the parts of an item.
fn texts(raw: Option<&RawValue>) -> Result<Vec<String>, ProviderError> {
    let Some(raw) = raw else {
        return Ok(Vec::new());
    };
    let parts: Vec<PartIn> = serde_json::from_str(raw.get()).map_err(malformed_event)?;
    Ok(parts.into_iter().filter_map(|part| part.text.or(part.refusal)).collect())
}

/// A missing value is an empty text.
fn text_of(raw: Option<&RawValue>) -> Result<String, ProviderError> {
    raw.map_or(Ok(String::new()), |raw| serde_json::from_str(raw.get()).map_err(malformed_event))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ordeal::{mangled, survives};

    const RECORDED: [&str; 6] = [
        include_str!("../../tests/fixtures/responses/llama_cpp_thinking_calls.sse"),
        include_str!("../../tests/fixtures/responses/openai_failed.sse"),
        include_str!("../../tests/fixtures/responses/openai_incomplete.sse"),
        include_str!("../../tests/fixtures/responses/openai_parallel_calls.sse"),
        include_str!("../../tests/fixtures/responses/openai_reasoning_call.sse"),
        include_str!("../../tests/fixtures/responses/openai_text.sse"),
    ];

    proptest! {
        #[test]
        fn any_input_is_parsed_without_a_panic_and_only_complete_calls_are_kept(
            stream in mangled(&RECORDED),
        ) {
            let model = ModelRef::parse("provider/model").expect("a model");
            survives(ResponsesDialect::new(model), &stream)?;
        }
    }
}
