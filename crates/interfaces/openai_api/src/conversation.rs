//! A conversation, built message by message: every tool call has its result before the next message, and the
//! last message is not the assistant's.

use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, AssistantMessage, CanonicalHeader, InputBlock, Message, StopReason,
    ToolCallBlock, ToolCallId, ToolResultMessage, Usage, UserMessage,
};
use chrono::{DateTime, Utc};

use crate::chat_error::ChatError;

/// A conversation that the model has to continue.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// The system prompt; may be empty.
    pub(crate) system: String,
    pub(crate) messages: Vec<Arc<Message>>,
    /// The canonical messages it was read from; empty for OpenAI's.
    pub(crate) canonical: Vec<CanonicalHeader>,
}

/// Builds a conversation.
#[derive(Default)]
pub(crate) struct ConversationBuilder {
    system: Vec<String>,
    messages: Vec<Arc<Message>>,
    /// Tool calls without a result.
    open: Vec<ToolCallBlock>,
    canonical: Vec<CanonicalHeader>,
}

impl ConversationBuilder {
    pub(crate) fn canonical(&mut self, header: CanonicalHeader) {
        self.canonical.push(header);
    }

    pub(crate) fn system(&mut self, text: String) {
        self.system.push(text);
    }

    pub(crate) fn user(
        &mut self,
        field: &str,
        content: Vec<InputBlock>,
        timestamp: DateTime<Utc>,
    ) -> Result<(), ChatError> {
        self.check_results(field)?;
        let blank = |block: &InputBlock| match block {
            InputBlock::Text(text) => text.text.trim().is_empty(),
            InputBlock::Image(_) => false,
        };
        if content.iter().all(blank) {
            return Err(ChatError::field(field, "the message is empty"));
        }
        self.messages.push(UserMessage { content, timestamp }.into());
        Ok(())
    }

    /// Adds a message of the assistant. An empty one is left out.
    pub(crate) fn assistant(
        &mut self,
        field: &str,
        text: &str,
        calls: Vec<ToolCallBlock>,
        timestamp: DateTime<Utc>,
    ) -> Result<(), ChatError> {
        self.check_results(field)?;
        let text = (!text.trim().is_empty()).then(|| AssistantBlock::text(text));
        let blocks = calls.iter().cloned().map(AssistantBlock::ToolCall);
        let content: Vec<AssistantBlock> = text.into_iter().chain(blocks).collect();
        if content.is_empty() {
            return Ok(());
        }
        let stop_reason = if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        self.open = calls;
        let answer = AssistantMessage {
            content,
            stop_reason,
            raw_stop_reason: String::new(),
            usage: Usage::default(),
            model: None,
            timestamp,
        };
        self.messages.push(answer.into());
        Ok(())
    }

    pub(crate) fn result(
        &mut self,
        field: &str,
        tool_call_id: &str,
        content: Vec<InputBlock>,
        timestamp: DateTime<Utc>,
    ) -> Result<(), ChatError> {
        let Some(index) = self.open.iter().position(|call| call.id.as_str() == tool_call_id) else {
            let message = format!("no tool call `{tool_call_id}` waits for a result here");
            return Err(ChatError::field(field, message));
        };
        let call = self.open.remove(index);
        let result = ToolResultMessage {
            tool_call_id: call.id,
            tool_name: call.name,
            content,
            is_error: false,
            timestamp,
        };
        self.messages.push(result.into());
        Ok(())
    }

    pub(crate) fn end(self) -> Result<Conversation, ChatError> {
        self.check_results("messages")?;
        match self.messages.last().map(|last| &**last) {
            Some(Message::User(_) | Message::ToolResult(_)) => {}
            Some(Message::Assistant(_)) | None => {
                let message = "the last message must be a user's, or the result of a tool call";
                return Err(ChatError::field("messages", message));
            }
        }
        let system = self.system.join("\n\n");
        Ok(Conversation { system, messages: self.messages, canonical: self.canonical })
    }

    fn check_results(&self, field: &str) -> Result<(), ChatError> {
        match self.open.first() {
            None => Ok(()),
            Some(call) => Err(ChatError::field(
                field,
                format!("the tool call `{}` before it has no result", call.id),
            )),
        }
    }
}

pub(crate) fn call_id(field: &str, id: &str) -> Result<ToolCallId, ChatError> {
    ToolCallId::parse(id).map_err(|error| ChatError::field(field, error))
}
