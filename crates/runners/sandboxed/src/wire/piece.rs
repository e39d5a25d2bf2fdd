//! A [`Piece`] as it travels, each under its name.

use antiphon_core::port::StopSignal;
use antiphon_core::{ModelRef, Piece, RawJson, StopReason, Usage};
use serde::{Deserialize, Serialize};

// Named from outside: JSON that is kept byte for byte cannot be read behind a tag.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum PieceWire {
    Model(ModelRef),
    Text { block: u32, delta: String },
    Thinking { block: u32, delta: String },
    ToolCall { block: u32, id: Option<String>, name: Option<String>, arguments: String },
    Signature { block: u32, delta: String },
    Opaque { block: u32, kind: String, value: RawJson },
    BlockEnd { block: u32 },
    Usage(Usage),
    Stop { reason: StopReason, raw: String },
    Alive {},
    Done {},
}

impl From<Piece> for PieceWire {
    fn from(piece: Piece) -> Self {
        match piece {
            Piece::Model(model) => Self::Model(model),
            Piece::Text { block, delta } => Self::Text { block, delta },
            Piece::Thinking { block, delta } => Self::Thinking { block, delta },
            Piece::ToolCall { block, id, name, arguments } => {
                Self::ToolCall { block, id, name, arguments }
            }
            Piece::Signature { block, delta } => Self::Signature { block, delta },
            Piece::Opaque { block, kind, value } => Self::Opaque { block, kind, value },
            Piece::BlockEnd { block } => Self::BlockEnd { block },
            Piece::Usage(usage) => Self::Usage(usage),
            Piece::Stop(StopSignal { reason, raw }) => Self::Stop { reason, raw },
            Piece::Alive => Self::Alive {},
            Piece::Done => Self::Done {},
        }
    }
}

impl From<PieceWire> for Piece {
    fn from(wire: PieceWire) -> Self {
        match wire {
            PieceWire::Model(model) => Self::Model(model),
            PieceWire::Text { block, delta } => Self::Text { block, delta },
            PieceWire::Thinking { block, delta } => Self::Thinking { block, delta },
            PieceWire::ToolCall { block, id, name, arguments } => {
                Self::ToolCall { block, id, name, arguments }
            }
            PieceWire::Signature { block, delta } => Self::Signature { block, delta },
            PieceWire::Opaque { block, kind, value } => Self::Opaque { block, kind, value },
            PieceWire::BlockEnd { block } => Self::BlockEnd { block },
            PieceWire::Usage(usage) => Self::Usage(usage),
            PieceWire::Stop { reason, raw } => Self::Stop(StopSignal { reason, raw }),
            PieceWire::Alive {} => Self::Alive,
            PieceWire::Done {} => Self::Done,
        }
    }
}
