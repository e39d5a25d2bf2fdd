//! One conversation, several models.
//!
//! What a model signed only that model can check, and what it thought it alone may read again.
//! Ids that one provider makes another refuses. [`for_model`] turns the history of a session
//! into one that a given model accepts, whoever wrote it; the session itself stays as it is.

use std::collections::{HashMap, HashSet};

use crate::{
    AssistantBlock, AssistantMessage, Message, ModelRef, ToolCallBlock, ToolCallId,
    ToolResultMessage, sendable,
};

/// Longest name of a tool.
const TOOL_NAME_CHARS_MAX: usize = 64;

/// Which tool-call ids a provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdRule {
    /// Whatever it made itself.
    Any,
    /// Letters, digits, `_` and `-`, up to a length.
    Plain {
        /// The length; 16 at least.
        bytes_max: usize,
    },
}

impl IdRule {
    fn accepts(self, id: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Plain { bytes_max } => {
                // Room for the names that are made here, or none would ever fit.
                id.len() <= bytes_max.max(16)
                    && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
            }
        }
    }
}

/// What of a history goes to `model`: what is [`sendable`], without the thinking, signatures
/// and sealed blocks of other models, with call ids that are unique and fit `ids`, and with tool
/// names of letters, digits, `_` and `-`.
pub fn for_model(messages: &[Message], model: &ModelRef, ids: IdRule) -> Vec<Message> {
    let mut renamer = Renamer { ids, used: HashSet::new(), lap: HashMap::new() };
    sendable(messages)
        .into_iter()
        .filter_map(|message| match message {
            Message::User(_) => Some(message),
            Message::Assistant(answer) => renamer.answer(answer, model).map(Message::Assistant),
            Message::ToolResult(result) => Some(Message::ToolResult(renamer.result(result))),
        })
        .collect()
}

/// A tool's name as every provider accepts it. A model may call what does not exist, by a name
/// that could not; refused once, such a name would be refused with every later request too.
fn plain_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().take(TOOL_NAME_CHARS_MAX).map(plain).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

struct Renamer {
    ids: IdRule,
    used: HashSet<ToolCallId>,
    /// New names of the calls of the answer at hand; its results follow directly.
    lap: HashMap<ToolCallId, ToolCallId>,
}

impl Renamer {
    /// `None` when nothing is left of it.
    fn answer(&mut self, answer: AssistantMessage, model: &ModelRef) -> Option<AssistantMessage> {
        let own = answer.model.as_ref() == Some(model);
        self.lap.clear();
        let content: Vec<AssistantBlock> = answer
            .content
            .into_iter()
            .filter_map(|block| match block {
                AssistantBlock::Text(_) => Some(block),
                AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_) => own.then_some(block),
                AssistantBlock::ToolCall(call) => Some(AssistantBlock::ToolCall(ToolCallBlock {
                    id: self.rename(&call.id),
                    name: plain_name(&call.name),
                    signature: call.signature.filter(|_| own),
                    ..call
                })),
            })
            .collect();
        (!content.is_empty()).then_some(AssistantMessage { content, ..answer })
    }

    fn result(&self, result: ToolResultMessage) -> ToolResultMessage {
        let tool_call_id = self.lap.get(&result.tool_call_id).cloned();
        ToolResultMessage {
            tool_call_id: tool_call_id.unwrap_or(result.tool_call_id),
            tool_name: plain_name(&result.tool_name),
            ..result
        }
    }

    fn rename(&mut self, id: &ToolCallId) -> ToolCallId {
        let mut name = id.clone();
        let mut number = self.used.len();
        while !self.ids.accepts(name.as_str()) || self.used.contains(&name) {
            name = ToolCallId::parse(&format!("call_{number}")).unwrap_or(name);
            number += 1;
        }
        self.used.insert(name.clone());
        self.lap.insert(id.clone(), name.clone());
        name
    }
}
