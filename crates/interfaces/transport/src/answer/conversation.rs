//! A conversation, built message by message: every tool call has its result before the next message, and the
//! last message is not the assistant's.

use std::sync::Arc;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    AssistantBlock, AssistantMessage, CanonicalHeader, InputBlock, Message, ModelRef, StopReason,
    ToolCallBlock, ToolCallId, ToolResultMessage, Usage, UserMessage,
};
use chrono::{DateTime, Utc};
use serde_json::json;

use super::answer_error::AnswerError;
use super::carried_thought::CarriedThought;

/// A conversation that the model has to continue.
#[derive(Debug)]
pub struct Conversation {
    /// The system prompt; may be empty.
    pub system: String,
    /// The messages.
    pub messages: Vec<Arc<Message>>,
    /// The canonical messages it was read from; empty for other shapes.
    pub canonical: Vec<CanonicalHeader>,
}

/// A part of an answer that a client sends back.
#[derive(Debug, Clone, PartialEq)]
pub enum AssistantPart {
    /// Text.
    Text(String),
    /// A tool call.
    Call(ToolCallBlock),
    /// Thinking.
    Thought(CarriedThought),
}

/// Calls that wait for a result when a conversation begins.
pub type OpenCalls = Vec<ToolCallBlock>;

/// Builds a conversation. Errors name `field`: the list of the messages.
pub struct ConversationBuilder {
    field: &'static str,
    system: Vec<String>,
    messages: Vec<Arc<Message>>,
    /// Tool calls without a result.
    open: OpenCalls,
    canonical: Vec<CanonicalHeader>,
}

impl ConversationBuilder {
    /// A conversation that continues another one, of which these calls have no result.
    pub fn new(field: &'static str, open: OpenCalls) -> Self {
        Self { field, system: Vec::new(), messages: Vec::new(), open, canonical: Vec::new() }
    }

    /// Adds the header of a canonical message.
    pub fn canonical(&mut self, header: CanonicalHeader) {
        self.canonical.push(header);
    }

    /// Adds a system message.
    pub fn system(&mut self, text: String) {
        self.system.push(text);
    }

    /// Adds a message of the user.
    pub fn user(
        &mut self,
        field: &str,
        content: Vec<InputBlock>,
        timestamp: DateTime<Utc>,
    ) -> Result<(), AnswerError> {
        self.check_results(field)?;
        let blank = |block: &InputBlock| match block {
            InputBlock::Text(text) => text.text.trim().is_empty(),
            InputBlock::Image(_) => false,
        };
        if content.iter().all(blank) {
            return Err(AnswerError::field(field, "the message is empty"));
        }
        self.messages.push(UserMessage { content, timestamp }.into());
        Ok(())
    }

    /// Adds a message of the assistant. An empty one is left out.
    pub fn assistant(
        &mut self,
        field: &str,
        parts: Vec<AssistantPart>,
        timestamp: DateTime<Utc>,
    ) -> Result<(), AnswerError> {
        self.check_results(field)?;
        let (model, content) = blocks(parts);
        let calls: Vec<ToolCallBlock> = content
            .iter()
            .filter_map(|block| match block {
                AssistantBlock::ToolCall(call) => Some(call.clone()),
                AssistantBlock::Text(_)
                | AssistantBlock::Thinking(_)
                | AssistantBlock::Opaque(_) => None,
            })
            .collect();
        if content.is_empty() {
            return Ok(());
        }
        for (index, call) in calls.iter().enumerate() {
            if calls[..index].iter().any(|other| other.id == call.id) {
                return Err(AnswerError::field(field, "two calls have the same id"));
            }
        }
        let stop_reason = if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        self.open = calls;
        let answer = AssistantMessage {
            content,
            stop_reason,
            raw_stop_reason: String::new(),
            usage: Usage::default(),
            model,
            timestamp,
        };
        self.messages.push(answer.into());
        Ok(())
    }

    /// Adds the result of a call.
    pub fn result(
        &mut self,
        field: &str,
        tool_call_id: &str,
        content: Vec<InputBlock>,
        is_error: bool,
        timestamp: DateTime<Utc>,
    ) -> Result<(), AnswerError> {
        let Some(index) = self.open.iter().position(|call| call.id.as_str() == tool_call_id) else {
            let message = format!("no tool call `{tool_call_id}` waits for a result here");
            return Err(AnswerError::field(field, message));
        };
        let call = self.open.remove(index);
        let result = ToolResultMessage {
            tool_call_id: call.id,
            tool_name: call.name,
            content,
            is_error,
            timestamp,
        };
        self.messages.push(result.into());
        Ok(())
    }

    /// The conversation.
    pub fn end(self) -> Result<Conversation, AnswerError> {
        self.check_results(self.field)?;
        match self.messages.last().map(|last| &**last) {
            Some(Message::User(_) | Message::ToolResult(_)) => {}
            Some(Message::Assistant(_)) | None => {
                let message = "the last message must be a user's, or the result of a tool call";
                return Err(AnswerError::field(self.field, message));
            }
        }
        let system = self.system.join("\n\n");
        Ok(Conversation { system, messages: self.messages, canonical: self.canonical })
    }

    fn check_results(&self, field: &str) -> Result<(), AnswerError> {
        match self.open.first() {
            None => Ok(()),
            Some(call) => Err(AnswerError::field(
                field,
                format!("the tool call `{}` before it has no result", call.id),
            )),
        }
    }
}

/// The blocks of an answer, each thought where it was. An answer has one model: thoughts of others are left out.
fn blocks(parts: Vec<AssistantPart>) -> (Option<ModelRef>, Vec<AssistantBlock>) {
    let mut said: Vec<AssistantBlock> = Vec::new();
    let mut thoughts: Vec<(usize, CarriedThought)> = Vec::new();
    for part in parts {
        match part {
            AssistantPart::Text(text) if text.trim().is_empty() => {}
            AssistantPart::Text(text) => said.push(AssistantBlock::text(text)),
            AssistantPart::Call(call) => said.push(AssistantBlock::ToolCall(call)),
            AssistantPart::Thought(thought) => thoughts.push((said.len(), thought)),
        }
    }
    let model = thoughts.iter().rev().find_map(|(_, thought)| thought.model.clone());
    thoughts.retain(|(_, thought)| thought.model == model);
    let count = said.len();
    let place = |(found_at, thought): &(usize, CarriedThought)| match thought.model {
        Some(_) => count.saturating_sub(thought.followed_by),
        None => *found_at,
    };
    let mut content: Vec<AssistantBlock> = Vec::new();
    for (index, block) in said.into_iter().map(Some).chain([None]).enumerate() {
        for thought in thoughts.iter().filter(|thought| place(thought) == index) {
            content.extend(thought.1.blocks.iter().cloned());
        }
        content.extend(block);
    }
    (model, content)
}

impl AssistantPart {
    /// A call, with an id that is checked.
    pub fn call(
        field: &str,
        id: &str,
        name: String,
        arguments: antiphon_core::ToolArguments,
    ) -> Result<Self, AnswerError> {
        let id = ToolCallId::parse(id).map_err(|error| AnswerError::field(field, error))?;
        Ok(Self::Call(ToolCallBlock { id, name, arguments, signature: None }))
    }
}

/// An image in the request itself, in base64.
pub fn image(field: &str, mime_type: &str, data: &str) -> Result<InputBlock, AnswerError> {
    let block = json!({ "type": "image", "mime_type": mime_type, "data": data });
    let message = json!({ "content": [block], "timestamp": SystemClock.now() });
    let read: Result<UserMessage, _> = serde_json::from_value(message);
    let read = read.map_err(|error| AnswerError::field(field, error))?;
    read.content.into_iter().next().ok_or_else(|| AnswerError::field(field, "the image is empty"))
}
