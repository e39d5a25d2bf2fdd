//! Canonical messages, read and written.
//!
//! Their content is plain text, so `metadata` carries tool calls: `tool_calls` of an assistant message is the
//! JSON of the calls in OpenAI's form, and a user message with `tool_call_id` is the result of a call.

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    CanonicalHeader, CanonicalMessage, ChatCompletionResponse, InputBlock, MessageId, Role, TaskId,
    TokenUsage, Usage,
};
use antiphon_interface_transport::answer::{
    AnswerEnd, AnswerError, AssistantPart, Conversation, ConversationBuilder,
};
use serde_json::value::RawValue;
use uuid::{Builder, Uuid};

use crate::chat::completion_json::{CompletionHeader, calls_json};
use crate::chat::openai_messages;

const TOOL_CALLS: &str = "tool_calls";

const TOOL_CALL_ID: &str = "tool_call_id";

/// The conversation of these messages.
pub(crate) fn read(messages: &[Box<RawValue>]) -> Result<Conversation, AnswerError> {
    let now = SystemClock.now();
    let mut builder = ConversationBuilder::new("messages", Vec::new());
    for (index, raw) in messages.iter().enumerate() {
        let field = format!("messages[{index}]");
        let message = message(&field, raw)?;
        builder.canonical(CanonicalHeader::from(&message));
        let CanonicalMessage { role, content, timestamp, mut metadata, .. } = message.clone();
        let (calls, result) = (metadata.remove(TOOL_CALLS), metadata.remove(TOOL_CALL_ID));
        let called = role == Role::Assistant && calls.is_some();
        // A message with tool calls and the result of a tool may be empty.
        if !(called || role == Role::User && result.is_some()) {
            message.validate_at(now).map_err(|error| AnswerError::message(&field, &error))?;
        }
        match (role, result) {
            (Role::System, _) => builder.system(content),
            (Role::User, None) => {
                builder.user(&field, vec![InputBlock::text(content)], timestamp)?;
            }
            (Role::User, Some(id)) => {
                builder.result(&field, &id, vec![InputBlock::text(content)], false, timestamp)?;
            }
            (Role::Assistant, _) => {
                let wires =
                    calls.map_or_else(|| Ok(Vec::new()), |json| serde_json::from_str(&json));
                let calls_field = format!("{field}.metadata.{TOOL_CALLS}");
                let wires = wires.map_err(|error| AnswerError::field(calls_field, error))?;
                let calls = openai_messages::calls(&format!("{field}.metadata"), wires)?;
                let said = [AssistantPart::Text(content)];
                let parts = said.into_iter().chain(calls).collect();
                builder.assistant(&field, parts, timestamp)?;
            }
        }
    }
    builder.end()
}

fn message(field: &str, raw: &RawValue) -> Result<CanonicalMessage, AnswerError> {
    let mut json = serde_json::Deserializer::from_str(raw.get());
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = match error.path().to_string().as_str() {
            "." => field.to_owned(),
            path => format!("{field}.{path}"),
        };
        AnswerError::field(field, error.into_inner())
    })
}

/// The completion. Its id follows from the task, so that a repeated request gets the same one.
pub(crate) fn response(
    header: &CompletionHeader,
    text: &str,
    end: &AnswerEnd,
) -> ChatCompletionResponse {
    let AnswerEnd { calls, usage, at, .. } = end;
    let usage = *usage;
    let message = CanonicalMessage::with_timestamp(Role::Assistant, text.to_owned(), *at);
    let mut message = CanonicalMessage { id: answer_id(&header.task_id), ..message };
    if !calls.is_empty() {
        message.metadata.insert(TOOL_CALLS.to_owned(), calls_json(calls).to_string());
    }
    ChatCompletionResponse {
        message,
        model: header.model.clone(),
        usage: (usage != Usage::default()).then(|| TokenUsage::from(usage)),
    }
}

/// The id of the answer of a task: a UUID of version 4 with the bits of the task's id.
fn answer_id(task_id: &TaskId) -> MessageId {
    let bytes = Uuid::parse_str(task_id.as_str())
        .unwrap_or_else(|_| Uuid::new_v5(&Uuid::NAMESPACE_OID, task_id.as_str().as_bytes()))
        .into_bytes();
    MessageId::from(Builder::from_random_bytes(bytes).into_uuid())
}
