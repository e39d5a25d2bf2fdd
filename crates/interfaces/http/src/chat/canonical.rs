//! Canonical messages, in and out.
//!
//! Their content is plain text, so calls travel in `metadata`: an assistant's `tool_calls` is the JSON
//! of the calls in OpenAI's form, and a user's message with a `tool_call_id` is the result of one.

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    CanonicalMessage, ChatCompletionResponse, InputBlock, Role, TokenUsage, ToolCallBlock, Usage,
};
use serde_json::value::RawValue;

use super::answer::calls_json;
use super::asked::Said;
use super::openai;
use super::pairing::Pairing;
use super::refusal::Refusal;

const TOOL_CALLS: &str = "tool_calls";

const TOOL_CALL_ID: &str = "tool_call_id";

/// The conversation in these messages.
pub(crate) fn read(messages: &[Box<RawValue>]) -> Result<Said, Refusal> {
    let now = SystemClock.now();
    let mut pairing = Pairing::default();
    for (index, raw) in messages.iter().enumerate() {
        let place = format!("messages[{index}]");
        let message: CanonicalMessage =
            serde_json::from_str(raw.get()).map_err(|error| Refusal::field(&place, error))?;
        let CanonicalMessage { role, content, timestamp, mut metadata, .. } = message.clone();
        let (calls, result) = (metadata.remove(TOOL_CALLS), metadata.remove(TOOL_CALL_ID));
        let called = role == Role::Assistant && calls.is_some();
        // Who only calls, says nothing; and a tool may have nothing to say.
        if !(called || role == Role::User && result.is_some()) {
            let wrong = |error| Refusal::message(format!("{place}: {error}"));
            message.validate_at(now).map_err(wrong)?;
        }
        match (role, result) {
            (Role::System, _) => pairing.system(content),
            (Role::User, None) => {
                pairing.user(&place, vec![InputBlock::text(content)], timestamp)?;
            }
            (Role::User, Some(id)) => {
                pairing.result(&place, &id, vec![InputBlock::text(content)], timestamp)?;
            }
            (Role::Assistant, _) => {
                let wires =
                    calls.map_or_else(|| Ok(Vec::new()), |json| serde_json::from_str(&json));
                let place_of = format!("{place}.metadata.{TOOL_CALLS}");
                let wires = wires.map_err(|error| Refusal::field(place_of, error))?;
                let calls = openai::calls(&format!("{place}.metadata"), wires)?;
                pairing.assistant(&place, &content, calls, timestamp)?;
            }
        }
    }
    pairing.end()
}

/// The answer.
pub(crate) fn response(
    model: &str,
    text: &str,
    calls: &[ToolCallBlock],
    usage: Usage,
) -> ChatCompletionResponse {
    let mut message =
        CanonicalMessage::with_timestamp(Role::Assistant, text.to_owned(), SystemClock.now());
    if !calls.is_empty() {
        message.metadata.insert(TOOL_CALLS.to_owned(), calls_json(calls).to_string());
    }
    ChatCompletionResponse {
        message,
        model: model.to_owned(),
        usage: (usage != Usage::default()).then(|| TokenUsage::from(usage)),
    }
}
