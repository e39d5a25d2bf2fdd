//! Complete answers, block by block.

use antiphon_core::{AssistantBlock, AssistantMessage, StopReason};
use antiphon_model_server::Reply;

use crate::world::{
    answer, begin, block, block_start, block_stop, call, delta, end, message, opaque, text,
    thinking, usage, whole,
};

/// Each body is split at every size with the same result.
async fn check(cases: Vec<(&str, String, AssistantMessage)>) {
    for (name, body, message) in cases {
        for size in [1, 7, 4096] {
            let reply = Reply::events(body.as_str()).split(size);
            assert_eq!(answer(reply).await, (message.clone(), None), "{name}, by {size}");
        }
    }
}

fn done(content: Vec<AssistantBlock>) -> AssistantMessage {
    message(content, StopReason::EndTurn, "end_turn")
}

fn calls(content: Vec<AssistantBlock>) -> AssistantMessage {
    message(content, StopReason::ToolUse, "tool_use")
}

#[tokio::test]
async fn text_and_thinking_are_joined_from_their_deltas() {
    let start = r#"{"type":"text","text":""}"#;
    let thinks = r#"{"type":"thinking","thinking":"","signature":""}"#;
    let more = r#"{"type":"text_delta","text":"Hel"}"#;
    let rest = r#"{"type":"text_delta","text":"lo"}"#;
    let thought = r#"{"type":"thinking_delta","thinking":"Hm"}"#;
    let signed = r#"{"type":"signature_delta","signature":"c2ln"}"#;
    let again = r#"{"type":"signature_delta","signature":"bmVk"}"#;
    let hello = || AssistantBlock::text("Hello");
    check(vec![
        ("no blocks", whole(&[]), done(vec![])),
        ("text", whole(&[block(0, start, &[more, rest])]), done(vec![hello()])),
        (
            "text that comes with its start",
            whole(&[block(0, r#"{"type":"text","text":"Hel"}"#, &[rest])]),
            done(vec![hello()]),
        ),
        ("text without text", whole(&[block(0, start, &[])]), done(vec![])),
        (
            "every width of character",
            whole(&[text(0, "aé€😀"), text(1, r"\ud83d\ude00\n")]),
            done(vec![AssistantBlock::text("aé€😀"), AssistantBlock::text("😀\n")]),
        ),
        (
            "thinking with its signature",
            whole(&[block(0, thinks, &[thought, signed, again]), text(1, "Hello")]),
            done(vec![thinking("Hm", Some("c2lnbmVk")), hello()]),
        ),
        (
            "a signature without thinking",
            whole(&[block(0, thinks, &[signed])]),
            done(vec![thinking("", Some("c2ln"))]),
        ),
        (
            "thinking without a signature",
            whole(&[block(0, thinks, &[thought])]),
            done(vec![thinking("Hm", None)]),
        ),
        (
            "thinking that comes whole",
            whole(&[block(0, r#"{"type":"thinking","thinking":"Hm","signature":"c2ln"}"#, &[])]),
            done(vec![thinking("Hm", Some("c2ln"))]),
        ),
        (
            "sealed thinking",
            whole(&[block(0, r#"{"type":"redacted_thinking","data":"c2VhbA=="}"#, &[])]),
            done(vec![opaque(
                "redacted_thinking",
                r#"{"type":"redacted_thinking","data":"c2VhbA=="}"#,
            )]),
        ),
    ])
    .await;
}

fn tool_use(id: &str, input: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"look","input":{input}}}"#)
}

fn arguments(json: &str) -> String {
    let json = serde_json::to_string(json).expect("a string");
    format!(r#"{{"type":"input_json_delta","partial_json":{json}}}"#)
}

#[tokio::test]
async fn calls_are_joined_from_their_deltas() {
    let one = tool_use("toolu_1", "{}");
    let (a, b) = (arguments(r#"{"at":"#), arguments(r#" "é"}"#));
    let exact = r#"{"n":1.0,"big":123456789012345678901234567890}"#;
    let bodies = |blocks: &[String]| begin() + &blocks.concat() + &end("tool_use");
    check(vec![
        (
            "one call behind a text",
            bodies(&[text(0, "I look."), block(1, &one, &[&arguments(""), &a, &b])]),
            calls(vec![AssistantBlock::text("I look."), call("toolu_1", "look", r#"{"at": "é"}"#)]),
        ),
        ("no arguments", bodies(&[block(0, &one, &[])]), calls(vec![call("toolu_1", "look", "")])),
        (
            "empty arguments",
            bodies(&[block(0, &one, &[&arguments("")])]),
            calls(vec![call("toolu_1", "look", "{}")]),
        ),
        (
            "arguments that come with the start",
            bodies(&[block(0, &tool_use("toolu_1", r#"{"at":1}"#), &[])]),
            calls(vec![call("toolu_1", "look", r#"{"at":1}"#)]),
        ),
        (
            "numbers as they were written",
            bodies(&[block(0, &one, &[&arguments(exact)])]),
            calls(vec![call("toolu_1", "look", exact)]),
        ),
        (
            "two calls, one after the other",
            bodies(&[block(0, &one, &[&a, &b]), block(1, &tool_use("toolu_2", "{}"), &[])]),
            calls(vec![call("toolu_1", "look", r#"{"at": "é"}"#), call("toolu_2", "look", "{}")]),
        ),
        (
            "two calls with one id",
            bodies(&[block(0, &one, &[]), block(1, &one, &[])]),
            calls(vec![
                call("toolu_1", "look", "{}"),
                call("00000000-0000-0001-0000-000000000001", "look", "{}"),
            ]),
        ),
    ])
    .await;
}

#[tokio::test]
async fn calls_may_interleave() {
    let blocks = [
        block_start(0, &tool_use("toolu_1", "{}")),
        block_start(1, &tool_use("toolu_2", "{}")),
        delta(0, &arguments(r#"{"a":"#)),
        delta(1, &arguments(r#"{"b":"#)),
        delta(0, &arguments("1}")),
        delta(1, &arguments("2}")),
        block_stop(1),
        block_stop(0),
    ];
    let body = begin() + &blocks.concat() + &end("tool_use");
    let message =
        calls(vec![call("toolu_1", "look", r#"{"a":1}"#), call("toolu_2", "look", r#"{"b":2}"#)]);
    check(vec![("interleaved", body, message)]).await;
}

#[tokio::test]
async fn arguments_truncated_by_the_limit_are_kept() {
    let blocks = block(0, &tool_use("toolu_1", "{}"), &[&arguments(r#"{"at":"#)]);
    let body = begin() + &blocks + &end("max_tokens");
    let content = vec![call("toolu_1", "look", r#"{"at":"#)];
    check(vec![("cut off", body, message(content, StopReason::Length, "max_tokens"))]).await;
}

#[tokio::test]
async fn the_last_token_count_is_the_total() {
    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_creation_input_tokens":3,"cache_read_input_tokens":4,"output_tokens":1}}}"#;
    let more = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":12,"cache_read_input_tokens":null,"output_tokens":9}}"#;
    let last = r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":30}}"#;
    let stop = r#"{"type":"message_stop"}"#;
    let body: String = [start, more, last, stop].map(crate::world::event).concat();
    let mut message = done(vec![]);
    message.usage = usage(12, 30);
    message.usage.cache_read_tokens = Some(4);
    message.usage.cache_write_tokens = Some(3);
    check(vec![("cumulative", body, message)]).await;
}

#[tokio::test]
async fn an_answer_without_counts_has_no_usage() {
    let events = [
        r#"{"type":"message_start","message":{}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let body: String = events.map(crate::world::event).concat();
    check(vec![("uncounted", body, AssistantMessage { usage: usage(0, 0), ..done(vec![]) })]).await;
}
