//! The pieces of one answer without what looks like a key, also where a key is cut into several
//! deltas.

use std::collections::BTreeMap;

use antiphon_core::port::StopSignal;
use antiphon_core::stream::BLOCKS_MAX;
use antiphon_core::{ModelRef, Piece, RawJson};

use crate::redactor::{Redactor, redacted};

/// Reads the deltas of every open block.
#[derive(Debug, Default)]
pub(super) struct Redaction {
    open: BTreeMap<(u32, Channel), Redactor>,
}

/// Which text of a block grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Channel {
    Text,
    Thinking,
    Arguments,
    Signature,
}

impl Redaction {
    /// The pieces to write for one that came. An answer with more open blocks than any reader
    /// takes is refused.
    pub(super) fn take(&mut self, piece: Piece) -> Result<Vec<Piece>, String> {
        Ok(match piece {
            Piece::Text { block, delta } => vec![self.grow(block, Channel::Text, &delta)?],
            Piece::Thinking { block, delta } => {
                vec![self.grow(block, Channel::Thinking, &delta)?]
            }
            Piece::Signature { block, delta } => {
                vec![self.grow(block, Channel::Signature, &delta)?]
            }
            Piece::ToolCall { block, id, name, arguments } => {
                let arguments = self.feed(block, Channel::Arguments, &arguments)?;
                let (id, name) = (id.as_deref().map(redacted), name.as_deref().map(redacted));
                vec![Piece::ToolCall { block, id, name, arguments }]
            }
            Piece::BlockEnd { block } => {
                let first = (block, Channel::Text);
                let last = (block, Channel::Signature);
                let ended: Vec<_> = self.open.range(first..=last).map(|(key, _)| *key).collect();
                let mut pieces: Vec<Piece> =
                    ended.into_iter().filter_map(|key| self.close(key)).collect();
                pieces.push(piece);
                pieces
            }
            Piece::Opaque { block, kind, value } => {
                let text = redacted(value.as_str());
                let value = RawJson::parse(&text).unwrap_or_else(|_| RawJson::string(&text));
                vec![Piece::Opaque { block, kind: redacted(&kind), value }]
            }
            Piece::Stop(StopSignal { reason, raw }) => {
                vec![Piece::Stop(StopSignal { reason, raw: redacted(&raw) })]
            }
            Piece::Model(model) => {
                let name = redacted(&model.to_string());
                vec![Piece::Model(ModelRef::parse(&name).unwrap_or(model))]
            }
            Piece::Usage(_) | Piece::Alive | Piece::Done => vec![piece],
        })
    }

    /// What is left to write when nothing more comes.
    pub(super) fn finish(&mut self) -> Vec<Piece> {
        let open: Vec<_> = self.open.keys().copied().collect();
        open.into_iter().filter_map(|key| self.close(key)).collect()
    }

    fn grow(&mut self, block: u32, channel: Channel, delta: &str) -> Result<Piece, String> {
        Ok(channel.piece(block, self.feed(block, channel, delta)?))
    }

    fn feed(&mut self, block: u32, channel: Channel, delta: &str) -> Result<String, String> {
        let full = self.open.len() >= BLOCKS_MAX;
        match self.open.get_mut(&(block, channel)) {
            Some(redactor) => Ok(redactor.feed(delta)),
            None if full => Err(format!("more than {BLOCKS_MAX} blocks of an answer are open")),
            None => Ok(self.open.entry((block, channel)).or_default().feed(delta)),
        }
    }

    fn close(&mut self, (block, channel): (u32, Channel)) -> Option<Piece> {
        let held = self.open.remove(&(block, channel))?.finish();
        (!held.is_empty()).then(|| channel.piece(block, held))
    }
}

impl Channel {
    fn piece(self, block: u32, delta: String) -> Piece {
        match self {
            Self::Text => Piece::Text { block, delta },
            Self::Thinking => Piece::Thinking { block, delta },
            Self::Signature => Piece::Signature { block, delta },
            Self::Arguments => Piece::ToolCall { block, id: None, name: None, arguments: delta },
        }
    }
}
