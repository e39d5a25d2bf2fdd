//! Assembles pieces into blocks.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};

use super::StreamEvent;
use crate::port::{Piece, ProviderError, StopSignal};
use crate::{
    AssistantBlock, AssistantMessage, ModelRef, OpaqueBlock, Signature, StopReason, TextBlock,
    ThinkingBlock, ToolArguments, ToolCallBlock, ToolCallId, Usage,
};

/// Most blocks in one answer. More is a fault of the provider.
pub const BLOCKS_MAX: usize = 1024;

/// Most bytes in one answer. More is a fault of the provider.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

pub(super) struct Assembly {
    /// Blocks in the order they were opened, which is their order in the message.
    blocks: Vec<Block>,
    bytes: usize,
    model: Option<ModelRef>,
    usage: Usage,
    stop: Option<StopSignal>,
    at: DateTime<Utc>,
    /// Part of every generated id.
    stamp: usize,
}

struct Block {
    number: u32,
    ended: bool,
    body: Body,
}

enum Body {
    Text(String),
    Thinking { text: String, signature: String },
    ToolCall(Call),
    Opaque(OpaqueBlock),
}

#[derive(Default)]
struct Call {
    wire_id: Option<String>,
    /// Set once the name is known; the reader has seen the start of the call then.
    begun: Option<(ToolCallId, String)>,
    arguments: String,
    signature: String,
    /// The answer reached its token limit within this call, before any arguments.
    cut_off: bool,
}

impl Assembly {
    pub(super) fn new(at: DateTime<Utc>, stamp: usize) -> Self {
        Self {
            blocks: Vec::new(),
            bytes: 0,
            model: None,
            usage: Usage::default(),
            stop: None,
            at,
            stamp,
        }
    }

    /// Applies one piece and appends the events for the reader.
    pub(super) fn apply(
        &mut self,
        piece: Piece,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ProviderError> {
        match piece {
            Piece::Alive => {}
            Piece::Model(model) => self.model = Some(model),
            Piece::Usage(usage) => self.usage = usage,
            Piece::Stop(stop) => self.stop = Some(stop),
            Piece::Text { block, delta } => self.text(block, delta, events)?,
            Piece::Thinking { block, delta } => self.thinking(block, delta, events)?,
            Piece::Signature { block, delta } => self.signature(block, &delta)?,
            Piece::ToolCall { block, id, name, arguments } => {
                self.tool_call(block, id, name, arguments, events)?;
            }
            Piece::Opaque { block, kind, value } => {
                self.count(kind.len() + value.as_str().len())?;
                if self.find(block).is_some_and(|index| !self.blocks[index].ended) {
                    return Err(unexpected(block, "is not opaque"));
                }
                let index = self.open(block, || Body::Opaque(OpaqueBlock { kind, value }))?;
                self.blocks[index].ended = true;
            }
            Piece::BlockEnd { block } => {
                let index = self.find(block).ok_or_else(|| unexpected(block, "ends unopened"))?;
                self.end(index, events)?;
            }
            Piece::Done => {
                for index in 0..self.blocks.len() {
                    self.end(index, events)?;
                }
            }
        }
        Ok(())
    }

    /// The finished message.
    pub(super) fn whole(&self) -> AssistantMessage {
        let calls = self.blocks.iter().any(|block| matches!(block.body, Body::ToolCall(_)));
        let reason = match (self.stop.as_ref().map(|stop| stop.reason), calls) {
            // Some servers report `stop` although they wait for the results of their calls.
            (None | Some(StopReason::EndTurn | StopReason::Unknown), true) => StopReason::ToolUse,
            // Other servers report tool use without a call.
            (Some(StopReason::ToolUse), false) => StopReason::EndTurn,
            (Some(reason), _) => reason,
            (None, false) => StopReason::Unknown,
        };
        self.message(reason)
    }

    /// The message so far, without unfinished calls.
    pub(super) fn partial(&self, reason: StopReason) -> AssistantMessage {
        self.message(reason)
    }

    fn message(&self, stop_reason: StopReason) -> AssistantMessage {
        AssistantMessage {
            content: self.blocks.iter().filter_map(Block::assembled).collect(),
            stop_reason,
            raw_stop_reason: self.stop.as_ref().map(|stop| stop.raw.clone()).unwrap_or_default(),
            usage: self.usage,
            model: self.model.clone(),
            timestamp: self.at,
        }
    }

    fn text(
        &mut self,
        block: u32,
        delta: String,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ProviderError> {
        self.count(delta.len())?;
        let index = self.open(block, || Body::Text(String::new()))?;
        let Body::Text(text) = &mut self.blocks[index].body else {
            return Err(unexpected(block, "is not text"));
        };
        text.push_str(&delta);
        if !delta.is_empty() {
            events.push_back(StreamEvent::TextDelta { delta });
        }
        Ok(())
    }

    fn thinking(
        &mut self,
        block: u32,
        delta: String,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ProviderError> {
        self.count(delta.len())?;
        let index =
            self.open(block, || Body::Thinking { text: String::new(), signature: String::new() })?;
        let Body::Thinking { text, .. } = &mut self.blocks[index].body else {
            return Err(unexpected(block, "is not thinking"));
        };
        text.push_str(&delta);
        if !delta.is_empty() {
            events.push_back(StreamEvent::ThinkingDelta { delta });
        }
        Ok(())
    }

    fn signature(&mut self, block: u32, delta: &str) -> Result<(), ProviderError> {
        self.count(delta.len())?;
        let index =
            self.open(block, || Body::Thinking { text: String::new(), signature: String::new() })?;
        match &mut self.blocks[index].body {
            Body::Thinking { signature, .. } | Body::ToolCall(Call { signature, .. }) => {
                signature.push_str(delta);
                Ok(())
            }
            Body::Text(_) | Body::Opaque(_) => Err(unexpected(block, "cannot be signed")),
        }
    }

    fn tool_call(
        &mut self,
        block: u32,
        id: Option<String>,
        name: Option<String>,
        arguments: String,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ProviderError> {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.count(arguments.len() + length(&id) + length(&name))?;
        let index = self.open(block, || Body::ToolCall(Call::default()))?;
        let Body::ToolCall(call) = &mut self.blocks[index].body else {
            return Err(unexpected(block, "is not a tool call"));
        };
        call.wire_id = call.wire_id.take().or(id.filter(|id| !id.is_empty()));
        call.arguments.push_str(&arguments);
        match (&call.begun, name.filter(|name| !name.is_empty())) {
            (Some((id, _)), _) => {
                if !arguments.is_empty() {
                    events
                        .push_back(StreamEvent::ToolCallDelta { id: id.clone(), delta: arguments });
                }
            }
            (None, Some(name)) => self.begin(index, name, events),
            (None, None) => {}
        }
        Ok(())
    }

    /// Gives a call its id and reports it, with the arguments so far.
    fn begin(&mut self, index: usize, name: String, events: &mut VecDeque<StreamEvent>) {
        let wire_id = match &self.blocks[index].body {
            Body::ToolCall(call) => call.wire_id.clone(),
            Body::Text(_) | Body::Thinking { .. } | Body::Opaque(_) => None,
        };
        let id = self.unique_id(wire_id, self.blocks[index].number);
        if let Body::ToolCall(call) = &mut self.blocks[index].body {
            events.push_back(StreamEvent::ToolCallBegin { id: id.clone(), name: name.clone() });
            if !call.arguments.is_empty() {
                let delta = call.arguments.clone();
                events.push_back(StreamEvent::ToolCallDelta { id: id.clone(), delta });
            }
            call.begun = Some((id, name));
        }
    }

    /// The id of the wire if it is valid and unique in this answer, else one made from the stamp and the
    /// block, which a replay makes again.
    fn unique_id(&self, wire_id: Option<String>, number: u32) -> ToolCallId {
        let taken = |id: &ToolCallId| {
            self.blocks.iter().any(|block| match &block.body {
                Body::ToolCall(Call { begun: Some((other, _)), .. }) => other == id,
                Body::ToolCall(_) | Body::Text(_) | Body::Thinking { .. } | Body::Opaque(_) => {
                    false
                }
            })
        };
        let stamp = (self.stamp as u128) << 64;
        let mut id = wire_id.and_then(|id| ToolCallId::parse(&id).ok());
        let mut made = u128::from(number);
        loop {
            match id {
                Some(id) if !taken(&id) => return id,
                Some(_) | None => id = Some(uuid::Uuid::from_u128(stamp | made).into()),
            }
            made += 1 << 32;
        }
    }

    fn end(
        &mut self,
        index: usize,
        events: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ProviderError> {
        let is_last = index + 1 == self.blocks.len();
        let limited = self.stop.as_ref().is_some_and(|stop| stop.reason == StopReason::Length);
        let block = &mut self.blocks[index];
        if block.ended {
            return Ok(());
        }
        block.ended = true;
        if let Body::ToolCall(call) = &mut block.body {
            call.cut_off = is_last && limited;
            let number = block.number;
            let call = call.assembled().ok_or_else(|| unexpected(number, "calls no tool"))?;
            events.push_back(StreamEvent::ToolCallEnd { call });
        }
        Ok(())
    }

    /// The open block with this number, created by `body` if there is none.
    fn open(&mut self, number: u32, body: impl FnOnce() -> Body) -> Result<usize, ProviderError> {
        match self.find(number) {
            Some(index) if self.blocks[index].ended => {
                Err(unexpected(number, "goes on after its end"))
            }
            Some(index) => Ok(index),
            None if self.blocks.len() == BLOCKS_MAX => Err(ProviderError::Protocol {
                message: format!("more than {BLOCKS_MAX} blocks in one answer"),
            }),
            None => {
                self.blocks.push(Block { number, ended: false, body: body() });
                Ok(self.blocks.len() - 1)
            }
        }
    }

    /// From the back: most pieces belong to the newest block.
    fn find(&self, number: u32) -> Option<usize> {
        self.blocks.iter().rposition(|block| block.number == number)
    }

    fn count(&mut self, bytes: usize) -> Result<(), ProviderError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MESSAGE_BYTES_MAX {
            return Err(ProviderError::Protocol {
                message: format!("more than {MESSAGE_BYTES_MAX} bytes in one answer"),
            });
        }
        Ok(())
    }
}

impl Block {
    /// The block of the message; `None` when it is empty.
    fn assembled(&self) -> Option<AssistantBlock> {
        match &self.body {
            Body::Text(text) if text.is_empty() => None,
            Body::Text(text) => Some(AssistantBlock::Text(TextBlock { text: text.clone() })),
            Body::Thinking { text, signature } => {
                // Half a signature is not valid.
                let signature = Some(signature).filter(|text| self.ended && !text.is_empty());
                (!text.is_empty() || signature.is_some()).then(|| {
                    AssistantBlock::Thinking(ThinkingBlock {
                        thinking: text.clone(),
                        signature: signature.cloned().map(Signature),
                    })
                })
            }
            Body::ToolCall(call) if self.ended => call.assembled().map(AssistantBlock::ToolCall),
            Body::ToolCall(_) => None,
            Body::Opaque(opaque) => Some(AssistantBlock::Opaque(opaque.clone())),
        }
    }
}

impl Call {
    fn assembled(&self) -> Option<ToolCallBlock> {
        let (id, name) = self.begun.clone()?;
        let arguments = if self.cut_off && self.arguments.is_empty() {
            ToolArguments::Malformed(String::new())
        } else {
            ToolArguments::from_model(self.arguments.clone())
        };
        Some(ToolCallBlock {
            id,
            name,
            arguments,
            signature: Some(self.signature.clone()).filter(|text| !text.is_empty()).map(Signature),
        })
    }
}

fn unexpected(block: u32, what: &str) -> ProviderError {
    ProviderError::Protocol { message: format!("block {block} {what}") }
}
