//! Complete answers, part by part.

use antiphon_core::{AssistantBlock, AssistantMessage, StopReason};
use antiphon_model_server::Reply;

use crate::world::{answer, call, event, made_id, message, signature, thinking, usage, whole};

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
    message(content, StopReason::EndTurn, "STOP")
}

fn calls(content: Vec<AssistantBlock>) -> AssistantMessage {
    message(content, StopReason::ToolUse, "STOP")
}

fn text_block(text: &str) -> AssistantBlock {
    AssistantBlock::text(text)
}

#[tokio::test]
async fn adjacent_parts_of_one_kind_are_one_block() {
    let (hel, lo) = (r#"{"text":"Hel"}"#, r#"{"text":"lo"}"#);
    let (hm, so) = (r#"{"text":"Hm","thought":true}"#, r#"{"text":", so","thought":true}"#);
    check(vec![
        ("no parts", whole(&[&[]]), done(vec![])),
        ("text in two events", whole(&[&[hel], &[lo]]), done(vec![text_block("Hello")])),
        ("text in one event", whole(&[&[hel, lo]]), done(vec![text_block("Hello")])),
        (
            "nothing between",
            whole(&[&[hel], &[r#"{"text":""}"#], &[lo]]),
            done(vec![text_block("Hello")]),
        ),
        (
            "every width of character",
            whole(&[&[r#"{"text":"aé€😀"}"#], &[r#"{"text":"\ud83d\ude00\n"}"#]]),
            done(vec![text_block("aé€😀😀\n")]),
        ),
        (
            "thinking and then text",
            whole(&[&[hm], &[so, hel], &[lo]]),
            done(vec![thinking("Hm, so", None), text_block("Hello")]),
        ),
        (
            "thinking again",
            whole(&[&[hm], &[hel], &[so], &[lo]]),
            done(vec![
                thinking("Hm", None),
                text_block("Hel"),
                thinking(", so", None),
                text_block("lo"),
            ]),
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_signature_stays_with_its_part() {
    let (hel, lo) = (r#"{"text":"Hel"}"#, r#"{"text":"lo"}"#);
    let alone = r#"{"text":"","thoughtSignature":"c2ln+/=="}"#;
    let signed = r#"{"text":"Hel","thoughtSignature":"c2ln+/=="}"#;
    let hm = r#"{"text":"Hm","thought":true}"#;
    let seal = r#"{"text":"","thought":true,"thoughtSignature":"c2ln"}"#;
    check(vec![
        (
            "behind a text that was streamed",
            whole(&[&[hel], &[lo], &[alone]]),
            done(vec![text_block("Hello"), signature("c2ln+/==")]),
        ),
        (
            "on a text, which goes on",
            whole(&[&[signed], &[lo]]),
            done(vec![text_block("Hel"), signature("c2ln+/=="), text_block("lo")]),
        ),
        (
            "on thinking, which goes on",
            whole(&[&[hm], &[seal], &[hm]]),
            done(vec![thinking("Hm", Some("c2ln")), thinking("Hm", None)]),
        ),
        (
            "on thinking that is not shown",
            whole(&[&[seal]]),
            done(vec![thinking("", Some("c2ln"))]),
        ),
        (
            "on nothing",
            whole(&[&[r#"{"thoughtSignature":"c2ln"}"#]]),
            done(vec![crate::world::opaque("thoughtSignature", r#"{"thoughtSignature":"c2ln"}"#)]),
        ),
        (
            "empty",
            whole(&[&[r#"{"text":"Hi","thoughtSignature":""}"#]]),
            done(vec![text_block("Hi")]),
        ),
    ])
    .await;
}

#[tokio::test]
async fn calls_come_whole() {
    let bare = r#"{"functionCall":{"name":"look","args":{"at":"é"}}}"#;
    let first =
        r#"{"functionCall":{"id":"f1","name":"look","args":{"a": 1.0}},"thoughtSignature":"c2ln"}"#;
    let second = r#"{"functionCall":{"id":"f2","name":"look","args":{}}}"#;
    let none = r#"{"functionCall":{"name":"look"}}"#;
    let odd = r#"{"functionCall":{"id":"f1","name":"look","args":[1]}}"#;
    let both = || vec![call("f1", r#"{"a": 1.0}"#, Some("c2ln")), call("f2", "{}", None)];
    check(vec![
        ("without an id", whole(&[&[bare]]), calls(vec![call(&made_id(0), r#"{"at":"é"}"#, None)])),
        ("two in one event", whole(&[&[first, second]]), calls(both())),
        ("two in two events", whole(&[&[first], &[second]]), calls(both())),
        (
            "two alike without ids, behind a text",
            whole(&[&[r#"{"text":"I look."}"#, bare], &[bare]]),
            calls(vec![
                text_block("I look."),
                call(&made_id(1), r#"{"at":"é"}"#, None),
                call(&made_id(2), r#"{"at":"é"}"#, None),
            ]),
        ),
        ("without arguments", whole(&[&[none]]), calls(vec![call(&made_id(0), "{}", None)])),
        ("with odd arguments", whole(&[&[odd]]), calls(vec![call("f1", "[1]", None)])),
        (
            "between texts",
            whole(&[&[r#"{"text":"a"}"#], &[second], &[r#"{"text":"b"}"#]]),
            calls(vec![text_block("a"), call("f2", "{}", None), text_block("b")]),
        ),
    ])
    .await;
}

#[tokio::test]
async fn the_last_token_count_is_the_total() {
    let events = [
        r#"{"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":40}}"#,
        r#"{"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":3,"thoughtsTokenCount":7}}"#,
        r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"candidatesTokenCount":30}}"#,
    ];
    let mut message = done(vec![]);
    message.usage = usage(60, 37);
    message.usage.cache_read_tokens = Some(40);
    check(vec![("cumulative", events.map(event).concat(), message)]).await;
}

#[tokio::test]
async fn an_answer_without_counts_has_no_usage() {
    let body = event(r#"{"candidates":[{"finishReason":"STOP"}]}"#);
    check(vec![("uncounted", body, AssistantMessage { usage: usage(0, 0), ..done(vec![]) })]).await;
}
