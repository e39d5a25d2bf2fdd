//! The JSON of pieces and of the errors of providers and journals. Recordings on disk hold it.

use std::time::Duration;

use antiphon_core::port::{JournalError, StopSignal, TimeoutPhase};
use antiphon_core::{Piece, Position, ProviderError, RawJson, Seq, StopReason, TaskId, Usage};
use serde_json::json;

use crate::{both_ways, refusal};

#[test]
fn a_piece_is_an_object_with_the_name_of_its_variant() {
    let text = "Hi".to_owned();
    let cases = [
        (Piece::Model("local/m".parse().unwrap()), json!({"model": "local/m"})),
        (
            Piece::Text { block: 0, delta: text.clone() },
            json!({"text": {"block": 0, "delta": "Hi"}}),
        ),
        (
            Piece::Thinking { block: 1, delta: text.clone() },
            json!({"thinking": {"block": 1, "delta": "Hi"}}),
        ),
        (
            Piece::ToolCall {
                block: 2,
                id: Some("c1".to_owned()),
                name: Some("read".to_owned()),
                arguments: "{".to_owned(),
            },
            json!({"tool_call": {"block": 2, "id": "c1", "name": "read", "arguments": "{"}}),
        ),
        (
            Piece::ToolCall { block: 2, id: None, name: None, arguments: "}".to_owned() },
            json!({"tool_call": {"block": 2, "arguments": "}"}}),
        ),
        (
            Piece::Signature { block: 1, delta: text },
            json!({"signature": {"block": 1, "delta": "Hi"}}),
        ),
        (
            Piece::Opaque {
                block: 3,
                kind: "search".to_owned(),
                value: RawJson::parse(r#"{"b":1}"#).unwrap(),
            },
            json!({"opaque": {"block": 3, "kind": "search", "value": {"b": 1}}}),
        ),
        (Piece::BlockEnd { block: 3 }, json!({"block_end": {"block": 3}})),
        (
            Piece::Usage(Usage { input_tokens: 1, ..Usage::default() }),
            json!({"usage": serde_json::to_value(Usage { input_tokens: 1, ..Usage::default() }).unwrap()}),
        ),
        (
            Piece::Stop(StopSignal { reason: StopReason::EndTurn, raw: "stop".to_owned() }),
            json!({"stop": {"reason": "end_turn", "raw": "stop"}}),
        ),
        (Piece::Alive, json!({"alive": {}})),
        (Piece::Done, json!({"done": {}})),
    ];
    for (piece, json) in &cases {
        both_ways(piece, json);
    }
}

#[test]
fn an_error_of_a_provider_is_an_object_with_its_code() {
    let message = || "busy".to_owned();
    let wait = Some(Duration::new(2, 5));
    let cases = [
        ProviderError::InvalidRequest { message: message() },
        ProviderError::ContextOverflow { message: message() },
        ProviderError::Authentication { message: message() },
        ProviderError::Permission { message: message() },
        ProviderError::NotFound { message: message() },
        ProviderError::Connection { message: message() },
        ProviderError::Protocol { message: message() },
    ];
    for error in &cases {
        both_ways(error, &json!({ error.code(): {"message": "busy"} }));
    }
    let later = json!({"message": "busy", "retry_after": {"secs": 2, "nanos": 5}});
    both_ways(
        &ProviderError::RateLimited { message: message(), retry_after: wait },
        &json!({ "rate_limited": later }),
    );
    both_ways(
        &ProviderError::Overloaded { message: message(), retry_after: None },
        &json!({"overloaded": {"message": "busy", "retry_after": null}}),
    );
    both_ways(
        &ProviderError::Server { status: 500, message: message(), retry_after: None },
        &json!({"server": {"status": 500, "message": "busy", "retry_after": null}}),
    );
    both_ways(
        &ProviderError::Timeout { phase: TimeoutPhase::FirstByte },
        &json!({"timeout": {"phase": "first_byte"}}),
    );
    both_ways(&ProviderError::Cut, &json!({"cut": {}}));
}

#[test]
fn an_error_of_a_journal_is_an_object_with_its_name() {
    let task_id = || TaskId::parse("t1").unwrap();
    let reason = || "so".to_owned();
    both_ways(
        &JournalError::Stale { task_id: task_id(), expected: Seq(1), actual: Seq(2) },
        &json!({"stale": {"task_id": "t1", "expected": 1, "actual": 2}}),
    );
    both_ways(&JournalError::Ended { task_id: task_id() }, &json!({"ended": {"task_id": "t1"}}));
    both_ways(
        &JournalError::Invalid { task_id: task_id(), reason: reason() },
        &json!({"invalid": {"task_id": "t1", "reason": "so"}}),
    );
    both_ways(
        &JournalError::Unavailable { reason: reason() },
        &json!({"unavailable": {"reason": "so"}}),
    );
    both_ways(
        &JournalError::Corrupt { position: Position(3), reason: reason() },
        &json!({"corrupt": {"position": 3, "reason": "so"}}),
    );
}

#[test]
fn unknown_fields_are_refused() {
    refusal::<Piece>(json!({"alive": {"more": 1}}));
    refusal::<Piece>(json!({"text": {"block": 0, "delta": "Hi", "more": 1}}));
    refusal::<Piece>(json!("alive"));
    refusal::<ProviderError>(json!({"cut": {"more": 1}}));
    refusal::<ProviderError>(json!({"protocol": {"message": "busy", "more": 1}}));
}
