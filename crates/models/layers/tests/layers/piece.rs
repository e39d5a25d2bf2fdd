//! Pieces to send and to compare with.

use antiphon_core::port::StopSignal;
use antiphon_core::{ModelRef, Piece, RawJson, StopReason, Usage};

pub(crate) fn model(name: &str) -> Piece {
    Piece::Model(ModelRef::parse(name).expect("a model"))
}

pub(crate) fn text(block: u32, delta: &str) -> Piece {
    Piece::Text { block, delta: delta.to_owned() }
}

pub(crate) fn thinking(block: u32, delta: &str) -> Piece {
    Piece::Thinking { block, delta: delta.to_owned() }
}

pub(crate) fn signature(block: u32, delta: &str) -> Piece {
    Piece::Signature { block, delta: delta.to_owned() }
}

/// A call without an id on the wire.
pub(crate) fn call(block: u32, name: &str, arguments: &str) -> Piece {
    let name = Some(name.to_owned());
    Piece::ToolCall { block, id: None, name, arguments: arguments.to_owned() }
}

pub(crate) fn opaque(block: u32) -> Piece {
    Piece::Opaque { block, kind: "sealed".to_owned(), value: RawJson::empty_object() }
}

pub(crate) fn end(block: u32) -> Piece {
    Piece::BlockEnd { block }
}

pub(crate) fn usage(output_tokens: u64) -> Piece {
    Piece::Usage(Usage { output_tokens, ..Usage::default() })
}

pub(crate) fn stop(reason: StopReason, raw: &str) -> Piece {
    Piece::Stop(StopSignal { reason, raw: raw.to_owned() })
}

/// A complete answer of one word.
pub(crate) fn answer(word: &str) -> Vec<Piece> {
    vec![model("hand/made"), text(0, word), end(0), Piece::Done]
}

/// One of each piece after which an answer cannot be restarted.
pub(crate) fn outputs() -> Vec<Piece> {
    vec![
        text(0, "a"),
        text(0, ""),
        thinking(0, "a"),
        call(0, "a", ""),
        signature(0, "a"),
        opaque(0),
        end(0),
    ]
}

/// One of each piece that shows nothing of the answer.
pub(crate) fn asides() -> Vec<Piece> {
    vec![model("hand/made"), usage(1), stop(StopReason::EndTurn, "end"), Piece::Alive]
}
