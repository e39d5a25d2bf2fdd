//! A recorded [`Piece`], each under its name. [`Piece::Done`] is not among them: it is the end of
//! an exchange.

use antiphon_core::port::StopSignal;
use antiphon_core::{ModelRef, Piece, RawJson, StopReason, Usage};
use serde::{Deserialize, Serialize};

// Externally tagged: raw JSON cannot be read after an internal tag.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum PieceWire {
    Model(ModelRef),
    Text {
        block: u32,
        delta: String,
    },
    Thinking {
        block: u32,
        delta: String,
    },
    ToolCall {
        block: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        arguments: String,
    },
    Signature {
        block: u32,
        delta: String,
    },
    Opaque {
        block: u32,
        kind: String,
        value: RawJson,
    },
    BlockEnd {
        block: u32,
    },
    Usage(Usage),
    Stop {
        reason: StopReason,
        raw: String,
    },
    Alive {},
}

impl PieceWire {
    /// `None` for a piece that ends an exchange.
    pub(super) fn of(piece: Piece) -> Option<Self> {
        Some(match piece {
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
            Piece::Done => return None,
        })
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
        }
    }
}
