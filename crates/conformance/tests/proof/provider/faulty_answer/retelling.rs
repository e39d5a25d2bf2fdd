//! Faults between the stream and its reader.

use antiphon_core::{
    AssistantBlock, AssistantMessage, NotStarted, RawJson, StopReason, StreamEvent, ToolArguments,
    ToolCallBlock, Usage,
};
use chrono::DateTime;
use serde_json::Value;

use super::{AnswerFault, FaultyAnswer};

impl FaultyAnswer {
    /// An event as the fault changes it; `None` when it is lost.
    pub(super) fn retold(&mut self, event: StreamEvent) -> Option<StreamEvent> {
        match event {
            StreamEvent::TextDelta { delta } => {
                self.text_seen = true;
                Some(StreamEvent::TextDelta { delta })
            }
            StreamEvent::ThinkingDelta { delta } if self.is(AnswerFault::TellsThinkingAsText) => {
                Some(StreamEvent::TextDelta { delta })
            }
            StreamEvent::ToolCallEnd { call } => {
                let forgets = self.text_seen && self.is(AnswerFault::ForgetsTheEndOfACall);
                (!forgets).then_some(StreamEvent::ToolCallEnd { call })
            }
            event @ (StreamEvent::ThinkingDelta { .. }
            | StreamEvent::ToolCallBegin { .. }
            | StreamEvent::ToolCallDelta { .. }) => Some(event),
        }
    }

    pub(super) fn message_too_early(&self) -> Result<AssistantMessage, NotStarted> {
        if !self.is(AnswerFault::HasAMessageTooEarly) {
            return Err(NotStarted);
        }
        Ok(AssistantMessage {
            content: vec![],
            stop_reason: StopReason::Unknown,
            raw_stop_reason: String::new(),
            usage: Usage::default(),
            model: None,
            timestamp: DateTime::default(),
        })
    }

    /// A message as the fault changes it.
    pub(super) fn rewritten(&self, mut message: AssistantMessage) -> AssistantMessage {
        if self.ends > 0 && self.is(AnswerFault::SplitsTheWhole) {
            message.content = message.content.iter().flat_map(split).collect();
        }
        let mut calls: Vec<&mut ToolCallBlock> =
            message.content.iter_mut().filter_map(as_call).collect();
        for call in &mut calls {
            self.rewrite_arguments(&mut call.arguments);
        }
        if self.is(AnswerFault::RepeatsIds)
            && let [first, second] = &mut calls[..]
            && first.name == second.name
        {
            second.id = first.id.clone();
        }
        if self.is(AnswerFault::SortsCalls) {
            message.content.sort_by_key(|block| match block {
                AssistantBlock::ToolCall(call) => Some(call.id.clone()),
                AssistantBlock::Text(_)
                | AssistantBlock::Thinking(_)
                | AssistantBlock::Opaque(_) => None,
            });
        }
        message
    }

    fn rewrite_arguments(&self, arguments: &mut ToolArguments) {
        match arguments {
            ToolArguments::Object(json) if self.is(AnswerFault::ParsesArguments) => {
                *json = RawJson::of(&json.to::<Value>().unwrap()).unwrap();
            }
            ToolArguments::Malformed(text) if self.is(AnswerFault::MendsArguments) => {
                let mended = RawJson::parse(&format!("{text}\"}}")).unwrap();
                *arguments = ToolArguments::Object(mended);
            }
            ToolArguments::Object(_) | ToolArguments::Malformed(_) => {}
        }
    }
}

/// A text with a space in it becomes two.
fn split(block: &AssistantBlock) -> Vec<AssistantBlock> {
    match block.as_text().and_then(|text| text.split_at_checked(text.find(' ')?)) {
        Some((head, tail)) => vec![AssistantBlock::text(head), AssistantBlock::text(tail)],
        None => vec![block.clone()],
    }
}

fn as_call(block: &mut AssistantBlock) -> Option<&mut ToolCallBlock> {
    match block {
        AssistantBlock::ToolCall(call) => Some(call),
        AssistantBlock::Text(_) | AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_) => None,
    }
}
