//! Canonical messages, read and written.
//!
//! Their content is plain text, so `metadata` carries tool calls: `tool_calls` of an assistant message is the
//! JSON of the calls in OpenAI's form, and a user message with `tool_call_id` is the result of a call.

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    CanonicalMessage, ChatCompletionResponse, InputBlock, Role, TokenUsage, ToolCallBlock, Usage,
};
use serde_json::value::RawValue;

use crate::chat_error::ChatError;
use crate::completion_json::calls_json;
use crate::conversation::{Conversation, ConversationBuilder};
use crate::openai_messages;

const TOOL_CALLS: &str = "tool_calls";

const TOOL_CALL_ID: &str = "tool_call_id";

/// The conversation of these messages.
pub(crate) fn read(messages: &[Box<RawValue>]) -> Result<Conversation, ChatError> {
    let now = SystemClock.now();
    let mut builder = ConversationBuilder::default();
    for (index, raw) in messages.iter().enumerate() {
        let field = format!("messages[{index}]");
        let message: CanonicalMessage =
            serde_json::from_str(raw.get()).map_err(|error| ChatError::field(&field, error))?;
        let CanonicalMessage { role, content, timestamp, mut metadata, .. } = message.clone();
        let (calls, result) = (metadata.remove(TOOL_CALLS), metadata.remove(TOOL_CALL_ID));
        let called = role == Role::Assistant && calls.is_some();
        // A message with tool calls and the result of a tool may be empty.
        if !(called || role == Role::User && result.is_some()) {
            let invalid = |error| ChatError::message(format!("{field}: {error}"));
            message.validate_at(now).map_err(invalid)?;
        }
        match (role, result) {
            (Role::System, _) => builder.system(content),
            (Role::User, None) => {
                builder.user(&field, vec![InputBlock::text(content)], timestamp)?;
            }
            (Role::User, Some(id)) => {
                builder.result(&field, &id, vec![InputBlock::text(content)], timestamp)?;
            }
            (Role::Assistant, _) => {
                let wires =
                    calls.map_or_else(|| Ok(Vec::new()), |json| serde_json::from_str(&json));
                let calls_field = format!("{field}.metadata.{TOOL_CALLS}");
                let wires = wires.map_err(|error| ChatError::field(calls_field, error))?;
                let calls = openai_messages::calls(&format!("{field}.metadata"), wires)?;
                builder.assistant(&field, &content, calls, timestamp)?;
            }
        }
    }
    builder.end()
}

/// The completion.
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
