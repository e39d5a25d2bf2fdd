//! One conversation, several models.
//!
//! Only the model that wrote a signature can check it, and only that model may read its thinking
//! again. A provider refuses ids of another provider. [`for_model`] converts the history of a session
//! into one that a given model accepts; the session itself does not change.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::{
    AssistantBlock, AssistantMessage, Message, ModelRef, ToolCallBlock, ToolCallId,
    ToolResultMessage, sendable,
};

/// Longest name of a tool, in characters.
const TOOL_NAME_CHARS_MAX: usize = 64;

/// Which tool-call ids a provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdRule {
    /// Any id.
    Any,
    /// Letters, digits, `_` and `-`, up to a length.
    Plain {
        /// Most characters; at least 16.
        bytes_max: usize,
    },
    /// Letters and digits, an exact number of them.
    Exactly {
        /// Number of characters; at least 8.
        bytes: usize,
    },
}

impl IdRule {
    fn accepts(self, id: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Plain { bytes_max } => {
                // Generated ids must fit too.
                id.len() <= bytes_max.max(16)
                    && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
            }
            Self::Exactly { bytes } => {
                id.len() == bytes.max(8) && id.bytes().all(|b| b.is_ascii_alphanumeric())
            }
        }
    }

    /// An id that fits, different for every number.
    fn made(self, number: usize) -> String {
        match self {
            Self::Any | Self::Plain { .. } => format!("call_{number}"),
            Self::Exactly { bytes } => format!("c{number:0width$}", width = bytes.max(8) - 1),
        }
    }
}

/// The part of a history to send to `model`: what is [`sendable`], without the thinking, signatures
/// and opaque blocks of other models, with call ids that are unique and fit `ids`, and with tool
/// names of letters, digits, `_` and `-`.
pub fn for_model(messages: &[Arc<Message>], model: &ModelRef, ids: IdRule) -> Vec<Arc<Message>> {
    HistoryConverter::new(model.clone(), ids).convert(messages)
}

/// Does what [`for_model`] does, part by part: a part of [`steps`] at a time, in order. The parts
/// together are the same as the whole.
#[derive(Debug)]
pub struct HistoryConverter {
    model: ModelRef,
    renamer: Renamer,
}

impl HistoryConverter {
    /// Begins a history for `model`.
    pub fn new(model: ModelRef, ids: IdRule) -> Self {
        Self { model, renamer: Renamer::new(ids) }
    }

    /// The model that the history is for.
    pub fn model(&self) -> &ModelRef {
        &self.model
    }

    /// The part of the next messages to send: one or several whole [`steps`].
    pub fn convert(&mut self, messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
        let Self { model, renamer } = self;
        let mut sent = sendable(messages);
        sent.retain_mut(|message| {
            let changed = match &**message {
                Message::User(_) => return true,
                Message::Assistant(answer) => renamer.answer(answer, model),
                Message::ToolResult(result) => renamer.result(result),
            };
            match changed {
                SentForm::Same => true,
                SentForm::Changed(changed) => {
                    *message = Arc::new(changed);
                    true
                }
                SentForm::Gone => false,
            }
        });
        sent
    }

    /// Where the history is now, for [`HistoryConverter::rewind`].
    pub fn mark(&self) -> HistoryMark {
        HistoryMark(self.renamer.order.len())
    }

    /// Goes back to a mark, as if what was converted since had not been.
    pub fn rewind(&mut self, mark: HistoryMark) {
        for id in self.renamer.order.drain(mark.0..) {
            self.renamer.used.remove(&id);
        }
    }
}

/// A place between two parts of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryMark(usize);

/// The messages in steps: each begins with an answer, and ends before the next; only the first may begin
/// otherwise. What is sent of a step does not depend on messages outside of it, but for the ids of its calls.
pub fn steps(messages: &[Arc<Message>]) -> impl Iterator<Item = &[Arc<Message>]> {
    let is_answer = |message: &Arc<Message>| matches!(&**message, Message::Assistant(_));
    messages.chunk_by(move |_, next| !is_answer(next))
}

/// How a message is sent to a model.
enum SentForm {
    /// Unchanged.
    Same,
    /// In this form.
    Changed(Message),
    /// Not at all: nothing of it is left.
    Gone,
}

/// A tool's name in a form that every provider accepts. A model may call a tool that does not exist
/// by an invalid name; providers would refuse that name with every later request.
fn plain_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().take(TOOL_NAME_CHARS_MAX).map(plain).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= TOOL_NAME_CHARS_MAX
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

#[derive(Debug)]
struct Renamer {
    ids: IdRule,
    used: HashSet<ToolCallId>,
    /// The same ids, in the order in which they were used.
    order: Vec<ToolCallId>,
    /// New ids of the calls of the current answer; its results follow directly.
    new_ids: HashMap<ToolCallId, ToolCallId>,
}

impl Renamer {
    fn new(ids: IdRule) -> Self {
        Self { ids, used: HashSet::new(), order: Vec::new(), new_ids: HashMap::new() }
    }

    fn answer(&mut self, answer: &AssistantMessage, model: &ModelRef) -> SentForm {
        let own = answer.model.as_ref() == Some(model);
        self.new_ids.clear();
        let mut same = true;
        for call in answer.tool_calls() {
            let name = self.rename(&call.id);
            same &= name == call.id && is_plain(&call.name) && (own || call.signature.is_none());
            self.new_ids.insert(call.id.clone(), name);
        }
        same &= own || answer.content.iter().all(|block| !is_private(block));
        if same {
            return SentForm::Same;
        }
        let keep = |block: &&AssistantBlock| own || !is_private(block);
        let content: Vec<AssistantBlock> =
            answer.content.iter().filter(keep).map(|block| self.block(block, own)).collect();
        if content.is_empty() {
            return SentForm::Gone;
        }
        SentForm::Changed(AssistantMessage { content, ..answer.clone() }.into())
    }

    fn block(&self, block: &AssistantBlock, own: bool) -> AssistantBlock {
        match block {
            AssistantBlock::Text(_) | AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_) => {
                block.clone()
            }
            AssistantBlock::ToolCall(call) => AssistantBlock::ToolCall(ToolCallBlock {
                id: self.new_ids.get(&call.id).unwrap_or(&call.id).clone(),
                name: plain_name(&call.name),
                signature: call.signature.clone().filter(|_| own),
                arguments: call.arguments.clone(),
            }),
        }
    }

    fn result(&self, result: &ToolResultMessage) -> SentForm {
        let tool_call_id = self.new_ids.get(&result.tool_call_id).unwrap_or(&result.tool_call_id);
        if *tool_call_id == result.tool_call_id && is_plain(&result.tool_name) {
            return SentForm::Same;
        }
        let (tool_call_id, tool_name) = (tool_call_id.clone(), plain_name(&result.tool_name));
        SentForm::Changed(ToolResultMessage { tool_call_id, tool_name, ..result.clone() }.into())
    }

    fn rename(&mut self, id: &ToolCallId) -> ToolCallId {
        let mut name = id.clone();
        let mut number = self.used.len();
        while !self.ids.accepts(name.as_str()) || self.used.contains(&name) {
            name = ToolCallId::parse(&self.ids.made(number)).unwrap_or(name);
            number += 1;
        }
        self.used.insert(name.clone());
        self.order.push(name.clone());
        name
    }
}

/// Whether only the model that wrote the block may read it again.
fn is_private(block: &AssistantBlock) -> bool {
    match block {
        AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_) => true,
        AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) => false,
    }
}
