//! Stop reasons.

use antiphon_core::{AssistantBlock, StopReason};
use antiphon_model_server::Reply;

use crate::world::{answer, call, end, message, parts};

#[tokio::test]
async fn each_stop_reason_is_mapped_and_keeps_its_raw_text() {
    let cases = [
        ("STOP", StopReason::EndTurn),
        ("MAX_TOKENS", StopReason::Length),
        ("SAFETY", StopReason::Error),
        ("RECITATION", StopReason::Error),
        ("LANGUAGE", StopReason::Error),
        ("BLOCKLIST", StopReason::Error),
        ("PROHIBITED_CONTENT", StopReason::Error),
        ("SPII", StopReason::Error),
        ("IMAGE_SAFETY", StopReason::Error),
        ("MALFORMED_FUNCTION_CALL", StopReason::Error),
        ("UNEXPECTED_TOOL_CALL", StopReason::Error),
        ("TOO_MANY_TOOL_CALLS", StopReason::Error),
        ("MISSING_THOUGHT_SIGNATURE", StopReason::Error),
        ("OTHER", StopReason::Unknown),
        ("FINISH_REASON_UNSPECIFIED", StopReason::Unknown),
        ("SOMETHING_NEW", StopReason::Unknown),
    ];
    for (raw, reason) in cases {
        let reply = Reply::events(parts(&[r#"{"text":"so"}"#]) + &end(raw));
        let content = vec![AssistantBlock::text("so")];
        assert_eq!(answer(reply).await, (message(content, reason, raw), None), "{raw}");
    }
}

#[tokio::test]
async fn calls_of_a_filtered_answer_are_not_executed() {
    let look = r#"{"functionCall":{"id":"f1","name":"look","args":{}}}"#;
    let cases = [
        ("STOP", StopReason::ToolUse),
        ("OTHER", StopReason::ToolUse),
        ("MAX_TOKENS", StopReason::Length),
        ("SAFETY", StopReason::Error),
    ];
    for (raw, reason) in cases {
        let reply = Reply::events(parts(&[look]) + &end(raw));
        let content = vec![call("f1", "{}", None)];
        assert_eq!(answer(reply).await, (message(content, reason, raw), None), "{raw}");
    }
}
