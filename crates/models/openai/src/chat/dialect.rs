//! Parses the answer.
//!
//! Chunks with a `delta` each, one with a `finish_reason`, mostly one with `usage`, then `[DONE]`.
//! Servers differ in all of it: fields are `null`, absent or of another type, ids and names come
//! once or each time, indices are missing or shared. Everything understandable is accepted; unknown
//! fields are skipped.

use antiphon_core::port::StopSignal;
use antiphon_core::{ModelRef, Piece, ProviderError, StopReason, Usage};
use antiphon_model_transport::{Dialect, HttpFailure, malformed_event};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failure;

// The wire numbers only calls: an answer has one text and one thinking block.
const TEXT: u32 = 0;
const THINKING: u32 = 1;
const CALLS: u32 = 2;

pub(super) struct ChatDialect {
    /// Until the first chunk, which reports it.
    model: Option<ModelRef>,
    /// In the order of their starts; call n is block `CALLS + n`.
    calls: Vec<Call>,
    /// Whether a stop reason was received. Some servers send nothing after it.
    stopped: bool,
    /// Whether a part of the answer was received.
    began: bool,
}

struct Call {
    index: i64,
    id: Option<String>,
}

#[derive(Deserialize)]
struct ChunkIn<'a> {
    #[serde(default)]
    object: Option<String>,
    #[serde(borrow)]
    choices: Option<Vec<ChoiceIn<'a>>>,
    usage: Option<UsageIn>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ChoiceIn<'a> {
    #[serde(borrow)]
    delta: Option<DeltaIn<'a>>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct DeltaIn<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    refusal: Option<String>,
    /// Thinking in llama.cpp, `DeepSeek` and older vLLM.
    reasoning_content: Option<String>,
    /// Thinking in `OpenRouter`, Ollama, Groq and newer vLLM. Some send both.
    reasoning: Option<String>,
    #[serde(borrow)]
    tool_calls: Option<Vec<CallIn<'a>>>,
}

/// Mistral's reasoning models send their content in parts.
#[derive(Deserialize)]
struct PartIn {
    text: Option<String>,
    thinking: Option<Vec<PartIn>>,
}

#[derive(Deserialize)]
struct CallIn<'a> {
    index: Option<i64>,
    id: Option<String>,
    #[serde(borrow)]
    function: Option<FunctionIn<'a>>,
}

#[derive(Deserialize)]
struct FunctionIn<'a> {
    name: Option<String>,
    /// A string, but an object on some servers.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct UsageIn {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptIn>,
    /// `DeepSeek`'s name for cached tokens.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct PromptIn {
    cached_tokens: Option<u64>,
    /// Reported by OpenRouter, and by OpenAI for models that charge for it.
    cache_write_tokens: Option<u64>,
}

impl ChatDialect {
    pub(super) fn new(model: ModelRef) -> Self {
        Self { model: Some(model), calls: Vec::new(), stopped: false, began: false }
    }

    fn choice(
        &mut self,
        choice: ChoiceIn<'_>,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError> {
        if let Some(delta) = choice.delta {
            let thought = [delta.reasoning_content, delta.reasoning];
            if let Some(thought) = thought.into_iter().flatten().find(|text| !text.is_empty()) {
                push_thinking(thought, pieces);
            }
            if let Some(content) = delta.content {
                push_content(content, pieces)?;
            }
            push_text(delta.refusal.unwrap_or_default(), pieces);
            for (position, call) in delta.tool_calls.into_iter().flatten().enumerate() {
                self.call(position, call, pieces)?;
            }
        }
        if let Some(raw) = choice.finish_reason.filter(|raw| !raw.is_empty()) {
            self.stopped = true;
            pieces.push(Piece::Stop(StopSignal { reason: stop_reason(&raw), raw }));
        }
        Ok(())
    }

    fn call(
        &mut self,
        position: usize,
        call: CallIn<'_>,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError> {
        let index = call.index.or_else(|| i64::try_from(position).ok()).unwrap_or_default();
        let id = call.id.filter(|id| !id.is_empty());
        let (name, arguments) = match call.function {
            Some(function) => (function.name, arguments(function.arguments)?),
            None => (None, String::new()),
        };
        let number = self.number(index, id.as_deref(), name.as_deref());
        let block = u32::try_from(number).unwrap_or(u32::MAX).saturating_add(CALLS);
        pieces.push(Piece::ToolCall { block, id, name, arguments });
        Ok(())
    }

    /// The call that a delta belongs to. Ollama and Google's servers give all calls one index, so a
    /// new id together with a name starts a call; a new id alone does not, because some servers
    /// generate one for each delta.
    fn number(&mut self, index: i64, id: Option<&str>, name: Option<&str>) -> usize {
        let named = name.is_some_and(|name| !name.is_empty());
        let same_id = |call: &Call| call.index == index && id.is_some() && call.id.as_deref() == id;
        let goes_on =
            |call: &Call| call.index == index && (id.is_none() || call.id.is_none() || !named);
        let known = self.calls.iter().position(same_id);
        if let Some(number) = known.or_else(|| self.calls.iter().rposition(goes_on)) {
            let call = &mut self.calls[number];
            call.id = call.id.take().or(id.map(str::to_owned));
            return number;
        }
        self.calls.push(Call { index, id: id.map(str::to_owned) });
        self.calls.len() - 1
    }
}

impl Dialect for ChatDialect {
    fn event(
        &mut self,
        name: &str,
        data: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError> {
        if data.trim() == "[DONE]" {
            // Nothing was answered: a proxy ended the stream of a server that broke off.
            if !self.stopped && !self.began {
                return Err(ProviderError::Cut);
            }
            pieces.push(Piece::Done);
            return Ok(());
        }
        let chunk: ChunkIn<'_> = serde_json::from_str(data).map_err(malformed_event)?;
        let failed = chunk.error.is_some() || chunk.object.as_deref() == Some("error");
        if failed || name == "error" {
            return Err(failure::in_stream(&serde_json::from_str(data).map_err(malformed_event)?));
        }
        pieces.extend(self.model.take().map(Piece::Model));
        // One choice is requested, so there is one.
        if let Some(choice) = chunk.choices.into_iter().flatten().next() {
            self.choice(choice, pieces)?;
            self.began |= pieces.iter().any(Piece::is_output);
        }
        pieces.extend(chunk.usage.as_ref().and_then(counted).map(Piece::Usage));
        Ok(())
    }

    /// Some servers omit `[DONE]`.
    fn end(&mut self, pieces: &mut Vec<Piece>) -> Result<(), ProviderError> {
        if self.stopped {
            pieces.push(Piece::Done);
        }
        Ok(())
    }

    fn failure(&self, failure: &HttpFailure) -> ProviderError {
        failure::of_response(failure)
    }
}

fn push_content(content: &RawValue, pieces: &mut Vec<Piece>) -> Result<(), ProviderError> {
    if !content.get().starts_with('[') {
        push_text(serde_json::from_str(content.get()).map_err(malformed_event)?, pieces);
        return Ok(());
    }
    let parts: Vec<PartIn> = serde_json::from_str(content.get()).map_err(malformed_event)?;
    for part in parts {
        for thought in part.thinking.into_iter().flatten() {
            push_thinking(thought.text.unwrap_or_default(), pieces);
        }
        push_text(part.text.unwrap_or_default(), pieces);
    }
    Ok(())
}

/// Many chunks contain an empty text without meaning.
fn push_text(delta: String, pieces: &mut Vec<Piece>) {
    if !delta.is_empty() {
        pieces.push(Piece::Text { block: TEXT, delta });
    }
}

fn push_thinking(delta: String, pieces: &mut Vec<Piece>) {
    if !delta.is_empty() {
        pieces.push(Piece::Thinking { block: THINKING, delta });
    }
}

fn arguments(raw: Option<&RawValue>) -> Result<String, ProviderError> {
    match raw.map(RawValue::get) {
        None => Ok(String::new()),
        Some(text) if text.starts_with('"') => serde_json::from_str(text).map_err(malformed_event),
        Some(json) => Ok(json.to_owned()),
    }
}

fn stop_reason(raw: &str) -> StopReason {
    match raw {
        "stop" => StopReason::EndTurn,
        // `model_length` is Mistral's, for the end of the context window.
        "length" | "model_length" => StopReason::Length,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        // The partial answer, calls included, must not be used.
        "content_filter" => StopReason::Error,
        _ => StopReason::Unknown,
    }
}

fn counted(usage: &UsageIn) -> Option<Usage> {
    if usage.prompt_tokens.is_none() && usage.completion_tokens.is_none() {
        return None;
    }
    let details = usage.prompt_tokens_details.as_ref();
    let read = details.and_then(|prompt| prompt.cached_tokens).or(usage.prompt_cache_hit_tokens);
    let written = details.and_then(|prompt| prompt.cache_write_tokens);
    // Both are part of the prompt.
    let cached = read.unwrap_or_default().saturating_add(written.unwrap_or_default());
    Some(Usage {
        input_tokens: usage.prompt_tokens.unwrap_or_default().saturating_sub(cached),
        output_tokens: usage.completion_tokens.unwrap_or_default(),
        cache_read_tokens: read,
        cache_write_tokens: written,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ordeal::{mangled, survives};

    const RECORDED: [&str; 7] = [
        include_str!("../../tests/fixtures/chat/deepseek_thinking_call.sse"),
        include_str!("../../tests/fixtures/chat/llama_cpp_text.sse"),
        include_str!("../../tests/fixtures/chat/mistral_thinking.sse"),
        include_str!("../../tests/fixtures/chat/ollama_calls_sharing_an_index.sse"),
        include_str!("../../tests/fixtures/chat/openai_parallel_calls.sse"),
        include_str!("../../tests/fixtures/chat/openai_text.sse"),
        include_str!("../../tests/fixtures/chat/openrouter_error.sse"),
    ];

    proptest! {
        #[test]
        fn any_input_is_parsed_without_a_panic_and_only_complete_calls_are_kept(
            stream in mangled(&RECORDED),
        ) {
            let model = ModelRef::parse("provider/model").expect("a model");
            survives(ChatDialect::new(model), &stream)?;
        }
    }
}
