//! The parts of an answer, in the order in which a watcher yields them.

use std::collections::HashSet;

use antiphon_core::{AssistantBlock, AssistantMessage, ModelRef, ToolCallBlock, Usage};
use chrono::{DateTime, Utc};

use super::answer_error::AnswerError;

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerPart {
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// The journal has a whole answer of the model. Its texts and thinking were yielded.
    Step(FinishedStep),
    /// The model is away, and the task waits for it.
    Away(ModelAway),
    /// A person has to decide about a call before the task continues.
    Approval(AnswerError),
    /// The answer is complete.
    End(AnswerEnd),
}

/// An outage of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAway {
    /// The failure.
    pub error: AnswerError,
    /// The last so many bytes of text are superseded: another answer follows.
    pub superseded_bytes: usize,
    /// The answer broke off, and what was shown of it does not count.
    pub superseded: bool,
    /// Whether the task has called tools. Then a second request would call them again.
    pub has_acted: bool,
}

/// A whole answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedStep {
    /// What was said and thought, in order; calls are not in it.
    pub parts: Vec<StepPart>,
    /// The model that wrote it.
    pub model: Option<ModelRef>,
    /// Whether the client sees all of the answer, so that it may send its thinking back. Calls of the agent's own tools
    /// are hidden.
    pub is_whole_for_client: bool,
}

/// Consecutive blocks of an answer of one kind.
#[derive(Debug, Clone, PartialEq)]
pub enum StepPart {
    /// Text.
    Text(String),
    /// Thinking, with opaque blocks.
    Thought {
        /// The text of the thinking; may be empty.
        text: String,
        /// The blocks.
        blocks: Vec<AssistantBlock>,
        /// How many texts and calls follow in the answer.
        followed_by: usize,
    },
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerEnd {
    /// Why it ended.
    pub reason: FinishReason,
    /// Tool calls for the client.
    pub calls: Vec<ToolCallBlock>,
    /// Tokens of all steps.
    pub usage: Usage,
    /// Time of the end.
    pub at: DateTime<Utc>,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    /// The answer is complete.
    Stop,
    /// The limit of tokens was reached.
    Length,
    /// The client has to run tools.
    ToolCalls,
    /// The model stopped without an answer.
    ContentFilter,
}

impl FinishedStep {
    /// The step of an answer. `clients` are the names of the client's tools.
    pub(super) fn of(answer: &AssistantMessage, clients: &HashSet<String>) -> Self {
        let is_clients = |call: &ToolCallBlock| clients.contains(&call.name);
        let mut parts: Vec<StepPart> = Vec::new();
        let mut followed_by = 0;
        for block in answer.content.iter().rev() {
            match (block, parts.last_mut()) {
                (AssistantBlock::ToolCall(_), _) => followed_by += 1,
                (AssistantBlock::Text(text), Some(StepPart::Text(after))) => {
                    after.insert_str(0, &text.text);
                }
                (AssistantBlock::Text(text), _) => {
                    followed_by += usize::from(!text.text.trim().is_empty());
                    parts.push(StepPart::Text(text.text.clone()));
                }
                (
                    block @ (AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_)),
                    Some(StepPart::Thought { text, blocks, followed_by: after }),
                ) if *after == followed_by => {
                    text.insert_str(0, thinking(block));
                    blocks.insert(0, block.clone());
                }
                (block @ (AssistantBlock::Thinking(_) | AssistantBlock::Opaque(_)), _) => {
                    let (text, blocks) = (thinking(block).to_owned(), vec![block.clone()]);
                    parts.push(StepPart::Thought { text, blocks, followed_by });
                }
            }
        }
        parts.reverse();
        Self {
            parts,
            model: answer.model.clone(),
            is_whole_for_client: answer.tool_calls().all(is_clients),
        }
    }
}

/// The text of a thinking block; empty for other blocks.
fn thinking(block: &AssistantBlock) -> &str {
    match block {
        AssistantBlock::Thinking(thinking) => &thinking.thinking,
        AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) | AssistantBlock::Opaque(_) => "",
    }
}
