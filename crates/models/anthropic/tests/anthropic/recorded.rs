//! Recorded answers of the real wire, split at every size.

use antiphon_core::{AssistantBlock, AssistantMessage, StopReason, Usage};
use antiphon_model_server::Reply;

use crate::world::{answer, call, message, opaque, thinking};

async fn check(recorded: &str, expected: AssistantMessage) {
    for size in [1, 7, 4096] {
        let reply = Reply::events(recorded).split(size);
        assert_eq!(answer(reply).await, (expected.clone(), None), "by {size}");
    }
}

fn cost(input_tokens: u64, output_tokens: u64, read: u64, written: u64) -> Usage {
    Usage {
        input_tokens,
        output_tokens,
        cache_read_tokens: Some(read),
        cache_write_tokens: Some(written),
    }
}

#[tokio::test]
async fn a_text() {
    let content = vec![AssistantBlock::text("Grüße aus Zürich! 🏔️ Wie geht’s?")];
    let usage = cost(14, 21, 0, 0);
    let expected = AssistantMessage { usage, ..message(content, StopReason::EndTurn, "end_turn") };
    check(include_str!("../fixtures/text.sse"), expected).await;
}

#[tokio::test]
async fn thinking_followed_by_calls() {
    let content = vec![
        thinking("Two cities, so two lookups.", Some("EqoBCkgIARABGAIiQL9sZWFuc2ln+/8=")),
        AssistantBlock::text("I'll check both."),
        call("toolu_01A09q90qw90lq917835lq9a", "weather", r#"{"city": "Zürich", "days": 1.0}"#),
        call("toolu_01B09q90qw90lq917835lq9b", "weather", r#"{"city": "Oslo"}"#),
        call("toolu_01C09q90qw90lq917835lq9c", "now", "{}"),
    ];
    let usage = cost(3, 187, 1946, 512);
    let expected = AssistantMessage { usage, ..message(content, StopReason::ToolUse, "tool_use") };
    check(include_str!("../fixtures/thinking_and_calls.sse"), expected).await;
}

#[tokio::test]
async fn a_server_side_search() {
    let content = vec![
        AssistantBlock::text("I'll search."),
        opaque(
            "server_tool_use",
            r#"{"type":"server_tool_use","id":"srvtoolu_014hJH82Qum7Td6UV8gDXThB","name":"web_search","input":{"query":"weather zürich"}}"#,
        ),
        opaque(
            "web_search_tool_result",
            r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_014hJH82Qum7Td6UV8gDXThB","content":[{"type":"web_search_result","title":"Zürich","url":"https://example.com/zuerich","encrypted_content":"EuYBCioIAhgBIiQ3","page_age":"1 hour ago"}]}"#,
        ),
        AssistantBlock::text("It is sunny in Zürich."),
    ];
    let usage = cost(10682, 510, 0, 0);
    let expected = AssistantMessage { usage, ..message(content, StopReason::EndTurn, "end_turn") };
    check(include_str!("../fixtures/server_tool.sse"), expected).await;
}

#[tokio::test]
async fn redacted_thinking_truncated_by_the_limit() {
    let content = vec![
        opaque(
            "redacted_thinking",
            r#"{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpP"}"#,
        ),
        AssistantBlock::text("It de"),
    ];
    let usage = cost(92, 64, 0, 0);
    let expected = AssistantMessage { usage, ..message(content, StopReason::Length, "max_tokens") };
    check(include_str!("../fixtures/sealed_thinking.sse"), expected).await;
}
