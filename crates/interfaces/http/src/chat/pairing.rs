//! A conversation as it is read, message by message: every call has its result before anybody speaks
//! again, and the last word is not the model's.

use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, AssistantMessage, InputBlock, Message, StopReason, ToolCallBlock, ToolCallId,
    ToolResultMessage, Usage, UserMessage,
};
use chrono::{DateTime, Utc};

use super::asked::Said;
use super::refusal::Refusal;

/// A conversation as it is read.
#[derive(Default)]
pub(crate) struct Pairing {
    system: Vec<String>,
    messages: Vec<Arc<Message>>,
    /// Calls without a result.
    open: Vec<ToolCallBlock>,
}

impl Pairing {
    pub(crate) fn system(&mut self, text: String) {
        self.system.push(text);
    }

    pub(crate) fn user(
        &mut self,
        place: &str,
        content: Vec<InputBlock>,
        timestamp: DateTime<Utc>,
    ) -> Result<(), Refusal> {
        self.closed(place)?;
        let blank = |block: &InputBlock| match block {
            InputBlock::Text(text) => text.text.trim().is_empty(),
            InputBlock::Image(_) => false,
        };
        if content.iter().all(blank) {
            return Err(Refusal::field(place, "there is nothing in it"));
        }
        self.messages.push(UserMessage { content, timestamp }.into());
        Ok(())
    }

    /// What the model said. Nothing at all is left out.
    pub(crate) fn assistant(
        &mut self,
        place: &str,
        text: &str,
        calls: Vec<ToolCallBlock>,
        timestamp: DateTime<Utc>,
    ) -> Result<(), Refusal> {
        self.closed(place)?;
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
        place: &str,
        tool_call_id: &str,
        content: Vec<InputBlock>,
        timestamp: DateTime<Utc>,
    ) -> Result<(), Refusal> {
        let Some(index) = self.open.iter().position(|call| call.id.as_str() == tool_call_id) else {
            let message = format!("no call `{tool_call_id}` waits for a result here");
            return Err(Refusal::field(place, message));
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

    pub(crate) fn end(self) -> Result<Said, Refusal> {
        self.closed("messages")?;
        match self.messages.last().map(|last| &**last) {
            Some(Message::User(_) | Message::ToolResult(_)) => {}
            Some(Message::Assistant(_)) | None => {
                let message = "the last one has to be a user's, or the result of a call";
                return Err(Refusal::field("messages", message));
            }
        }
        Ok(Said { system: self.system.join("\n\n"), messages: self.messages })
    }

    fn closed(&self, place: &str) -> Result<(), Refusal> {
        match self.open.first() {
            None => Ok(()),
            Some(call) => {
                Err(Refusal::field(place, format!("the call `{}` before has no result", call.id)))
            }
        }
    }
}

pub(crate) fn call_id(place: &str, id: &str) -> Result<ToolCallId, Refusal> {
    ToolCallId::parse(id).map_err(|error| Refusal::field(place, error))
}
