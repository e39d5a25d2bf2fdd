//! Pieces to compare with.

use antiphon_core::port::StopSignal;
use antiphon_core::{ModelRef, Piece, StopReason, Usage};

pub(crate) fn model(name: &str) -> ModelRef {
    ModelRef::parse(&format!("scripted/{name}")).expect("a model")
}

pub(crate) fn delta(block: u32, delta: &str) -> Piece {
    Piece::Text { block, delta: delta.to_owned() }
}

pub(crate) fn arguments(block: u32, delta: &str) -> Piece {
    Piece::ToolCall { block, id: None, name: None, arguments: delta.to_owned() }
}

pub(crate) fn opening(block: u32, id: &str, name: &str) -> Piece {
    Piece::ToolCall {
        block,
        id: Some(id.to_owned()),
        name: Some(name.to_owned()),
        arguments: String::new(),
    }
}

pub(crate) fn stop(reason: StopReason, raw: &str) -> Piece {
    Piece::Stop(StopSignal { reason, raw: raw.to_owned() })
}

pub(crate) fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, cache_read_tokens: None, cache_write_tokens: None }
}
