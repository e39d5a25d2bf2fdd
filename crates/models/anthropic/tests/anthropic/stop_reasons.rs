//! Stop reasons.

use antiphon_core::StopReason;
use antiphon_model_server::Reply;

use crate::world::{answer, begin, block, call, end, message};

#[tokio::test]
async fn each_stop_reason_is_mapped_and_keeps_its_raw_text() {
    let cases = [
        ("end_turn", StopReason::EndTurn),
        ("stop_sequence", StopReason::EndTurn),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        // Without a call.
        ("tool_use", StopReason::EndTurn),
        ("pause_turn", StopReason::Unknown),
        ("refusal", StopReason::Error),
        ("something_new", StopReason::Unknown),
    ];
    for (raw, reason) in cases {
        let reply = Reply::events(begin() + &end(raw));
        assert_eq!(answer(reply).await, (message(vec![], reason, raw), None), "{raw}");
    }
}

#[tokio::test]
async fn an_answer_with_calls_stops_for_them_with_any_reason() {
    let start = r#"{"type":"tool_use","id":"toolu_1","name":"look","input":{}}"#;
    let reply = Reply::events(begin() + &block(0, start, &[]) + &end("end_turn"));
    let content = vec![call("toolu_1", "look", "{}")];
    assert_eq!(answer(reply).await, (message(content, StopReason::ToolUse, "end_turn"), None));
}
