//! Parses the answer.
//!
//! Each event is a response with more `parts` of the one candidate; the last has a `finishReason`.
//! Blocks are not numbered, so adjacent parts of one kind are one block. No event closes the
//! answer: it is complete when the body ends after a `finishReason`, and interrupted when it ends
//! without one. Parts of unknown kinds are kept, never refused, because the wire format grows.
//!
//! A `thoughtSignature` must be sent back with its part. On a call and on thinking it is the
//! signature of the block. Text cannot have a signature, so it becomes an opaque block after the
//! text, `{"text":"","thoughtSignature":"…"}`: the form that the wire itself uses for a text that
//! was streamed before.

use std::collections::BTreeMap;

use antiphon_core::port::StopSignal;
use antiphon_core::{ModelRef, Piece, ProviderError, RawJson, StopReason, Usage};
use antiphon_model_transport::{Dialect, HttpFailure, malformed_event};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::failure::{self, ErrorIn};

/// Name of the wire's field and of the opaque block made of it.
const SIGNATURE: &str = "thoughtSignature";

pub(crate) struct GenerateDialect {
    model: ModelRef,
    started: bool,
    finished: bool,
    usage: UsageIn,
    /// The block that the next part of the same kind continues.
    open: Option<Open>,
    blocks: u32,
}

#[derive(Clone, Copy)]
struct Open {
    block: u32,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventIn<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<CandidateIn<'a>>>,
    prompt_feedback: Option<PromptFeedbackIn>,
    usage_metadata: Option<UsageIn>,
    error: Option<ErrorIn>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CandidateIn<'a> {
    #[serde(borrow)]
    content: Option<ContentIn<'a>>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ContentIn<'a> {
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartIn<'a> {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    thought_signature: Option<String>,
    #[serde(borrow)]
    function_call: Option<CallIn<'a>>,
}

#[derive(Deserialize)]
struct CallIn<'a> {
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedbackIn {
    block_reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names are the wire's")]
struct UsageIn {
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

/// What remains of a signed text after the text itself was sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SignatureOut {
    text: &'static str,
    thought_signature: String,
}

impl GenerateDialect {
    pub(crate) fn new(model: ModelRef) -> Self {
        Self {
            model,
            started: false,
            finished: false,
            usage: UsageIn::default(),
            open: None,
            blocks: 0,
        }
    }

    fn part(&mut self, raw: &RawValue, pieces: &mut Vec<Piece>) -> Result<(), ProviderError> {
        let part: PartIn<'_> = serde_json::from_str(raw.get()).map_err(malformed_event)?;
        let signature = part.thought_signature.filter(|signature| !signature.is_empty());
        match (part.function_call, part.text) {
            (Some(call), _) => self.call(call, signature, pieces),
            (None, Some(text)) if part.thought => self.thinking(text, signature, pieces),
            (None, Some(text)) => self.text(text, signature, pieces)?,
            (None, None) => self.unknown(raw, pieces)?,
        }
        Ok(())
    }

    /// A call arrives complete.
    fn call(&mut self, call: CallIn<'_>, signature: Option<String>, pieces: &mut Vec<Piece>) {
        let block = self.next_block(pieces);
        pieces.push(Piece::ToolCall {
            block,
            id: call.id,
            name: call.name,
            arguments: call.args.map(|args| args.get().to_owned()).unwrap_or_default(),
        });
        if let Some(delta) = signature {
            pieces.push(Piece::Signature { block, delta });
        }
        pieces.push(Piece::BlockEnd { block });
    }

    fn thinking(&mut self, text: String, signature: Option<String>, pieces: &mut Vec<Piece>) {
        if text.is_empty() && signature.is_none() {
            return;
        }
        let block = self.block(Kind::Thinking, pieces);
        pieces.push(Piece::Thinking { block, delta: text });
        if let Some(delta) = signature {
            pieces.push(Piece::Signature { block, delta });
            // A part after a signature is not covered by it.
            self.close(pieces);
        }
    }

    fn text(
        &mut self,
        text: String,
        signature: Option<String>,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError> {
        if !text.is_empty() {
            let block = self.block(Kind::Text, pieces);
            pieces.push(Piece::Text { block, delta: text });
        }
        let Some(thought_signature) = signature else {
            return Ok(());
        };
        let value = RawJson::of(&SignatureOut { text: "", thought_signature }).map_err(refused)?;
        let block = self.next_block(pieces);
        pieces.push(Piece::Opaque { block, kind: SIGNATURE.to_owned(), value });
        Ok(())
    }

    /// The kind of a part is its one field that is not common to all parts.
    fn unknown(&mut self, raw: &RawValue, pieces: &mut Vec<Piece>) -> Result<(), ProviderError> {
        let fields: BTreeMap<String, &RawValue> =
            serde_json::from_str(raw.get()).map_err(malformed_event)?;
        let signed = fields.contains_key(SIGNATURE).then(|| SIGNATURE.to_owned());
        let named = fields.into_keys().find(|field| field != "thought" && field != SIGNATURE);
        if let Some(kind) = named.or(signed) {
            let value = RawJson::parse(raw.get()).map_err(refused)?;
            let block = self.next_block(pieces);
            pieces.push(Piece::Opaque { block, kind, value });
        }
        Ok(())
    }

    /// The block for more content of `kind`.
    fn block(&mut self, kind: Kind, pieces: &mut Vec<Piece>) -> u32 {
        match self.open {
            Some(open) if open.kind == kind => open.block,
            Some(_) | None => {
                let block = self.next_block(pieces);
                self.open = Some(Open { block, kind });
                block
            }
        }
    }

    fn next_block(&mut self, pieces: &mut Vec<Piece>) -> u32 {
        self.close(pieces);
        let block = self.blocks;
        self.blocks += 1;
        block
    }

    fn close(&mut self, pieces: &mut Vec<Piece>) {
        if let Some(open) = self.open.take() {
            pieces.push(Piece::BlockEnd { block: open.block });
        }
    }

    /// Counts are cumulative; an absent count keeps its value.
    fn count(&mut self, usage: &UsageIn, pieces: &mut Vec<Piece>) {
        let known = &mut self.usage;
        let newer = |new: Option<u64>, old: &mut Option<u64>| {
            *old = new.or(*old);
            old.unwrap_or_default()
        };
        let prompt = newer(usage.prompt_token_count, &mut known.prompt_token_count);
        let cached = newer(usage.cached_content_token_count, &mut known.cached_content_token_count);
        let spoken = newer(usage.candidates_token_count, &mut known.candidates_token_count);
        let thought = newer(usage.thoughts_token_count, &mut known.thoughts_token_count);
        pieces.push(Piece::Usage(Usage {
            input_tokens: prompt.saturating_sub(cached),
            output_tokens: spoken.saturating_add(thought),
            cache_read_tokens: known.cached_content_token_count,
            cache_write_tokens: None,
        }));
    }
}

impl Dialect for GenerateDialect {
    fn event(
        &mut self,
        _name: &str,
        data: &str,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ProviderError> {
        let event: EventIn<'_> = serde_json::from_str(data).map_err(malformed_event)?;
        if let Some(error) = event.error {
            return Err(failure::in_mid_stream(&error));
        }
        if let Some(reason) = event.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            return Err(blocked(&reason));
        }
        if !self.started {
            self.started = true;
            pieces.push(Piece::Model(self.model.clone()));
        }
        if let Some(usage) = event.usage_metadata {
            self.count(&usage, pieces);
        }
        // One candidate is requested, so there is one.
        let Some(candidate) = event.candidates.into_iter().flatten().next() else {
            return Ok(());
        };
        for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
            self.part(part, pieces)?;
        }
        if let Some(raw) = candidate.finish_reason {
            self.finished = true;
            pieces.push(Piece::Stop(StopSignal { reason: stop_reason(&raw), raw }));
        }
        Ok(())
    }

    fn end(&mut self, pieces: &mut Vec<Piece>) -> Result<(), ProviderError> {
        if self.finished {
            pieces.push(Piece::Done);
        }
        Ok(())
    }

    fn failure(&self, failure: &HttpFailure) -> ProviderError {
        failure::in_place_of_an_answer(failure)
    }
}

/// The wire also reports `STOP` for calls; the presence of calls decides.
fn stop_reason(raw: &str) -> StopReason {
    match raw {
        "STOP" => StopReason::EndTurn,
        "MAX_TOKENS" => StopReason::Length,
        // A filter removed the rest, or the model wrote an unreadable call. The partial answer must
        // neither be executed nor sent again.
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MALFORMED_FUNCTION_CALL"
        | "MALFORMED_RESPONSE"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MISSING_THOUGHT_SIGNATURE" => StopReason::Error,
        _ => StopReason::Unknown,
    }
}

/// Nothing was generated, and a retry would not help.
fn blocked(reason: &str) -> ProviderError {
    ProviderError::InvalidRequest { message: format!("the prompt was blocked ({reason})") }
}

fn refused(error: antiphon_core::RawJsonError) -> ProviderError {
    ProviderError::Protocol { message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ordeal::{mangled, survives};

    const RECORDED: [&str; 4] = [
        include_str!("../tests/fixtures/call_without_id.sse"),
        include_str!("../tests/fixtures/code_execution.sse"),
        include_str!("../tests/fixtures/text.sse"),
        include_str!("../tests/fixtures/thinking_and_calls.sse"),
    ];

    proptest! {
        #[test]
        fn any_input_is_parsed_without_a_panic_and_only_complete_calls_are_kept(
            stream in mangled(&RECORDED),
        ) {
            let model = ModelRef::parse("provider/model").expect("a model");
            survives(GenerateDialect::new(model), &stream)?;
        }
    }
}
