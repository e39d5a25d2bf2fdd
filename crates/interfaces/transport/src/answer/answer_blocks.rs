//! The blocks of an answer, as they begin, grow and end.
//!
//! A block ends when the journal has the answer that it is in: only then the signature of its thinking is known. Several
//! blocks of one answer can be open at a time. Numbers follow the order in which blocks began.

use antiphon_core::ToolCallBlock;

use super::answer_part::{AnswerPart, FinishedStep, StepPart};
use super::carried_thought::CarriedThought;

/// A block of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerBlock {
    /// Text.
    Text(String),
    /// Thinking.
    Thought {
        /// Its text; may be empty.
        text: String,
        /// What the client sends back with its next request.
        carried: Option<String>,
    },
    /// A tool call for the client.
    Call(ToolCallBlock),
}

/// The kind of a block that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// Text.
    Text,
    /// Thinking.
    Thought,
}

/// What happens to a block.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockEvent {
    /// A block begins. Calls do not begin: they come whole.
    Begin(usize, BlockKind),
    /// A block grows.
    Grow(usize, BlockKind, String),
    /// A block is whole.
    End(usize, AnswerBlock),
}

struct Growing {
    kind: BlockKind,
    text: String,
    /// How often it has grown.
    grown: usize,
    whole: Option<AnswerBlock>,
}

/// The blocks of an answer.
#[derive(Default)]
pub struct AnswerBlocks {
    blocks: Vec<Growing>,
}

impl AnswerBlocks {
    /// What a part of the answer does to the blocks.
    pub fn add(&mut self, part: &AnswerPart) -> Vec<BlockEvent> {
        let mut events = Vec::new();
        match part {
            AnswerPart::Text(text) => self.grow(BlockKind::Text, text, &mut events),
            AnswerPart::Thinking(text) => self.grow(BlockKind::Thought, text, &mut events),
            AnswerPart::Step(step) => self.finish(step, &mut events),
            AnswerPart::Away(away) if away.superseded => self.end_all(&mut events),
            AnswerPart::Away(_) | AnswerPart::Approval(_) => {}
            AnswerPart::End(end) => {
                self.end_all(&mut events);
                for call in &end.calls {
                    let call = AnswerBlock::Call(call.clone());
                    events.push(BlockEvent::End(self.blocks.len(), call.clone()));
                    let (kind, text) = (BlockKind::Text, String::new());
                    self.blocks.push(Growing { kind, text, grown: 0, whole: Some(call) });
                }
            }
        }
        events
    }

    /// Takes a part of an answer that is not streamed. Blocks that are not whole are forgotten when their answer is
    /// superseded: no client has seen them.
    pub fn collect(&mut self, part: &AnswerPart) {
        match part {
            AnswerPart::Away(away) if away.superseded => {
                self.blocks.retain(|block| block.whole.is_some());
            }
            AnswerPart::Away(_) => {}
            AnswerPart::Text(_)
            | AnswerPart::Thinking(_)
            | AnswerPart::Step(_)
            | AnswerPart::Approval(_)
            | AnswerPart::End(_) => drop(self.add(part)),
        }
    }

    /// Whether a block has grown once only.
    pub fn is_new(&self, index: usize) -> bool {
        self.blocks.get(index).is_some_and(|block| block.grown == 1)
    }

    /// The whole blocks, in order.
    pub fn blocks(&self) -> impl Iterator<Item = &AnswerBlock> {
        self.blocks.iter().filter_map(|block| block.whole.as_ref())
    }

    fn grow(&mut self, kind: BlockKind, text: &str, events: &mut Vec<BlockEvent>) {
        let is_open = |last: &Growing| last.kind == kind && last.whole.is_none();
        if !self.blocks.last().is_some_and(is_open) {
            events.push(BlockEvent::Begin(self.blocks.len(), kind));
            self.blocks.push(Growing { kind, text: String::new(), grown: 0, whole: None });
        }
        if let Some(last) = self.blocks.last_mut() {
            last.text.push_str(text);
            last.grown += 1;
        }
        events.push(BlockEvent::Grow(self.blocks.len() - 1, kind, text.to_owned()));
    }

    /// Ends the blocks of an answer, in its order.
    fn finish(&mut self, step: &FinishedStep, events: &mut Vec<BlockEvent>) {
        for part in &step.parts {
            let kind = match part {
                StepPart::Text(_) => BlockKind::Text,
                StepPart::Thought { .. } => BlockKind::Thought,
            };
            let carried = match part {
                StepPart::Thought { blocks, followed_by, .. } if step.is_whole_for_client => {
                    let (model, blocks) = (step.model.clone(), blocks.clone());
                    CarriedThought { model, followed_by: *followed_by, blocks }.to_field()
                }
                StepPart::Thought { .. } | StepPart::Text(_) => None,
            };
            let open = |block: &Growing| block.kind == kind && block.whole.is_none();
            let index = match self.blocks.iter().position(open) {
                Some(index) => index,
                // Thinking without a text that the client has to send back.
                None if carried.is_some() => {
                    events.push(BlockEvent::Begin(self.blocks.len(), kind));
                    self.blocks.push(Growing { kind, text: String::new(), grown: 0, whole: None });
                    self.blocks.len() - 1
                }
                None => continue,
            };
            self.end(index, carried, events);
        }
        self.end_all(events);
    }

    fn end(&mut self, index: usize, carried: Option<String>, events: &mut Vec<BlockEvent>) {
        let Some(block) = self.blocks.get_mut(index) else { return };
        let text = block.text.clone();
        let whole = match block.kind {
            BlockKind::Text => AnswerBlock::Text(text),
            BlockKind::Thought => AnswerBlock::Thought { text, carried },
        };
        block.whole = Some(whole.clone());
        events.push(BlockEvent::End(index, whole));
    }

    fn end_all(&mut self, events: &mut Vec<BlockEvent>) {
        for index in 0..self.blocks.len() {
            if self.blocks[index].whole.is_none() {
                self.end(index, None, events);
            }
        }
    }
}
