//! Redacts keys from the pieces of one answer, also where a key is split into several deltas. A
//! delta that may contain part of a key waits until that is decided, and so do all later pieces;
//! other pieces pass through unchanged.

use std::collections::{BTreeMap, VecDeque};

use antiphon_core::port::StopSignal;
use antiphon_core::redaction::{KeyRedactor, redact_keys};
use antiphon_core::stream::BLOCKS_MAX;
use antiphon_core::{ModelRef, Piece, RawJson};

/// Most pieces that wait. Above the limit, the first is passed on as it is.
const WAITING_MAX: usize = 1024;

/// Reads the deltas of every open block.
#[derive(Debug, Default)]
pub(super) struct Redaction {
    open: BTreeMap<TextChannel, KeyRedactor<u64>>,
    waiting: VecDeque<WaitingPiece>,
    /// Number of the first waiting piece.
    first: u64,
}

/// A piece that waits.
#[derive(Debug)]
struct WaitingPiece {
    /// Of a delta, with the text that is decided so far.
    piece: Piece,
    growing: Option<TextChannel>,
}

/// A text that grows: block number and channel.
type TextChannel = (u32, Channel);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Channel {
    Text,
    Thinking,
    Arguments,
    Signature,
}

impl Redaction {
    /// Adds a piece and returns those that are decided now. An answer with more open blocks than a
    /// reader accepts is refused.
    pub(super) fn take(&mut self, piece: Piece) -> Result<Vec<Piece>, String> {
        let piece = match piece {
            Piece::Text { block, mut delta } => {
                let text = std::mem::take(&mut delta);
                return self.grow((block, Channel::Text), Piece::Text { block, delta }, &text);
            }
            Piece::Thinking { block, mut delta } => {
                let text = std::mem::take(&mut delta);
                let piece = Piece::Thinking { block, delta };
                return self.grow((block, Channel::Thinking), piece, &text);
            }
            Piece::Signature { block, mut delta } => {
                let text = std::mem::take(&mut delta);
                let piece = Piece::Signature { block, delta };
                return self.grow((block, Channel::Signature), piece, &text);
            }
            Piece::ToolCall { block, id, name, mut arguments } => {
                let text = std::mem::take(&mut arguments);
                let (id, name) = (id.as_deref().map(redact_keys), name.as_deref().map(redact_keys));
                let piece = Piece::ToolCall { block, id, name, arguments };
                return self.grow((block, Channel::Arguments), piece, &text);
            }
            Piece::BlockEnd { block } => {
                let all = (block, Channel::Text)..=(block, Channel::Signature);
                let ended: Vec<TextChannel> = self.open.range(all).map(|(key, _)| *key).collect();
                for growing in ended {
                    self.settle(growing);
                    self.open.remove(&growing);
                }
                piece
            }
            Piece::Opaque { block, kind, value } => {
                let text = redact_keys(value.as_str());
                let value = RawJson::parse(&text).unwrap_or_else(|_| RawJson::string(&text));
                Piece::Opaque { block, kind: redact_keys(&kind), value }
            }
            Piece::Stop(StopSignal { reason, raw }) => {
                Piece::Stop(StopSignal { reason, raw: redact_keys(&raw) })
            }
            Piece::Model(model) => {
                let name = redact_keys(&model.to_string());
                Piece::Model(ModelRef::parse(&name).unwrap_or(model))
            }
            Piece::Usage(_) | Piece::Alive | Piece::Done => piece,
        };
        self.waiting.push_back(WaitingPiece { piece, growing: None });
        Ok(self.certain())
    }

    /// The remaining pieces at the end.
    pub(super) fn finish(&mut self) -> Vec<Piece> {
        let open: Vec<TextChannel> = self.open.keys().copied().collect();
        for growing in open {
            self.settle(growing);
        }
        self.certain()
    }

    /// Adds a delta: `text` extends `piece`.
    fn grow(
        &mut self,
        growing: TextChannel,
        piece: Piece,
        text: &str,
    ) -> Result<Vec<Piece>, String> {
        if self.open.len() >= BLOCKS_MAX && !self.open.contains_key(&growing) {
            return Err(format!("more than {BLOCKS_MAX} blocks of an answer are open"));
        }
        let number = self.first + self.waiting.len() as u64;
        self.waiting.push_back(WaitingPiece { piece, growing: Some(growing) });
        let (first, waiting) = (self.first, &mut self.waiting);
        let redactor = self.open.entry(growing).or_default();
        redactor.feed(text, number, &mut |number, safe| add(waiting, number - first, safe));
        if self.waiting.len() > WAITING_MAX
            && let Some(WaitingPiece { growing: Some(growing), .. }) = self.waiting.front()
        {
            self.settle(*growing);
        }
        Ok(self.certain())
    }

    /// Passes on the held-back part of a text.
    fn settle(&mut self, growing: TextChannel) {
        let (first, waiting) = (self.first, &mut self.waiting);
        if let Some(redactor) = self.open.get_mut(&growing) {
            redactor.finish(&mut |number, safe| add(waiting, number - first, safe));
        }
    }

    /// Removes and returns the pieces that are decided.
    fn certain(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        while let Some(next) = self.waiting.pop_front_if(|next| {
            let redactor = next.growing.and_then(|growing| self.open.get(&growing));
            redactor.and_then(KeyRedactor::first_held).is_none_or(|number| number > self.first)
        }) {
            self.first += 1;
            pieces.push(next.piece);
        }
        pieces
    }
}

/// Extends the text of a waiting piece.
fn add(waiting: &mut VecDeque<WaitingPiece>, index: u64, safe: &str) {
    let piece = usize::try_from(index).ok().and_then(|index| waiting.get_mut(index));
    match piece.map(|waiting| &mut waiting.piece) {
        Some(
            Piece::Text { delta: text, .. }
            | Piece::Thinking { delta: text, .. }
            | Piece::Signature { delta: text, .. }
            | Piece::ToolCall { arguments: text, .. },
        ) => text.push_str(safe),
        Some(
            Piece::Model(_)
            | Piece::Opaque { .. }
            | Piece::BlockEnd { .. }
            | Piece::Usage(_)
            | Piece::Stop(_)
            | Piece::Alive
            | Piece::Done,
        )
        | None => {}
    }
}
