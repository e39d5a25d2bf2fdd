//! Recorded answers of the real wire, split at every size.

use antiphon_core::{AssistantBlock, AssistantMessage, StopReason, Usage};
use antiphon_model_server::Reply;

use crate::world::{answer, call, made_id, message, opaque, signature, thinking, usage};

async fn check(recorded: &str, expected: AssistantMessage) {
    for size in [1, 7, 4096] {
        let reply = Reply::events(recorded).split(size);
        assert_eq!(answer(reply).await, (expected.clone(), None), "by {size}");
    }
}

#[tokio::test]
async fn a_text_with_its_signature_at_the_end() {
    let content = vec![
        AssistantBlock::text("Grüße aus Zürich! 🏔️ Wie geht’s?"),
        signature("EjQKMgEMOdbHm+/sZWFuc2ln"),
    ];
    let expected =
        AssistantMessage { usage: usage(8, 152), ..message(content, StopReason::EndTurn, "STOP") };
    check(include_str!("../fixtures/text.sse"), expected).await;
}

#[tokio::test]
async fn thinking_followed_by_calls() {
    let content = vec![
        thinking("**Two cities**\n\nSo two lookups.\n\n", None),
        call("c1a2b3c4", r#"{"city":"Zürich","days":1.0}"#, Some("EqoBCkgIARABGAIiQL9s+/8=")),
        call("d5e6f7a8", r#"{"city":"Oslo"}"#, None),
    ];
    let expected = AssistantMessage {
        usage: Usage { cache_read_tokens: Some(1946), ..usage(66, 187) },
        ..message(content, StopReason::ToolUse, "STOP")
    };
    check(include_str!("../fixtures/thinking_and_calls.sse"), expected).await;
}

#[tokio::test]
async fn an_older_model_without_call_ids() {
    let content = vec![AssistantBlock::text("I'll check.\n"), call(&made_id(1), "{}", None)];
    let expected =
        AssistantMessage { usage: usage(41, 12), ..message(content, StopReason::ToolUse, "STOP") };
    check(include_str!("../fixtures/call_without_id.sse"), expected).await;
}

#[tokio::test]
async fn code_that_the_server_runs() {
    let content = vec![
        AssistantBlock::text("I compute.\n"),
        opaque(
            "executableCode",
            r#"{"executableCode":{"language":"PYTHON","code":"print(6*7)\n","id":"x1"}}"#,
        ),
        opaque(
            "codeExecutionResult",
            r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"42\n","id":"x1"}}"#,
        ),
        AssistantBlock::text("It is 4"),
    ];
    let expected = AssistantMessage {
        usage: usage(19, 31),
        ..message(content, StopReason::Length, "MAX_TOKENS")
    };
    check(include_str!("../fixtures/code_execution.sse"), expected).await;
}
