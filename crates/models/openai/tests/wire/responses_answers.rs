//! Responses: complete answers in all their variants.

use antiphon_core::{AssistantBlock, AssistantMessage, StopReason};
use antiphon_model_server::Reply;

use crate::world::{
    Case, Outcome, Wire, answer, ask, call, check, encrypted, hello, malformed_call, text,
    thinking, usage, whole,
};

/// A stream of these events, given without the prefix `response.`.
pub(crate) fn events(list: &[(&str, &str)]) -> String {
    let event = |(kind, fields): &(&str, &str)| {
        let comma = if fields.is_empty() { "" } else { "," };
        format!("event: response.{kind}\ndata: {{\"type\":\"response.{kind}\"{comma}{fields}}}\n\n")
    };
    list.iter().map(event).collect()
}

const CREATED: (&str, &str) = ("created", r#""response":{"id":"r","status":"in_progress"}"#);

const COMPLETED: (&str, &str) = (
    "completed",
    concat!(
        r#""response":{"status":"completed","usage":{"input_tokens":10,"output_tokens":3,"#,
        r#""input_tokens_details":{"cached_tokens":4}}}"#
    ),
);

/// A stream with OpenAI's start and end.
fn stream(list: &[(&str, &str)]) -> String {
    events(&[CREATED]) + &events(list) + &events(&[COMPLETED])
}

fn case(name: &'static str, body: impl Into<Vec<u8>>, outcome: Outcome) -> Case {
    Case { name, reply: Reply::events(body), outcome }
}

/// A complete answer with the stop reason `raw` and usage.
fn complete(content: Vec<AssistantBlock>, raw: &str, stop_reason: StopReason) -> Outcome {
    let usage = usage(6, 3, Some(4));
    whole(AssistantMessage { stop_reason, usage, ..answer(content, raw) })
}

fn complete_text(content: Vec<AssistantBlock>) -> Outcome {
    complete(content, "completed", StopReason::EndTurn)
}

fn used(content: Vec<AssistantBlock>) -> Outcome {
    complete(content, "completed", StopReason::ToolUse)
}

const TEXT_H: (&str, &str) =
    ("output_text.delta", r#""output_index":0,"content_index":0,"delta":"H""#);
const TEXT_I: (&str, &str) =
    ("output_text.delta", r#""output_index":0,"content_index":0,"delta":"i""#);
const MESSAGE: (&str, &str) =
    ("output_item.added", r#""output_index":0,"item":{"type":"message","id":"m1","content":[]}"#);
const MESSAGE_DONE: (&str, &str) = (
    "output_item.done",
    concat!(
        r#""output_index":0,"item":{"type":"message","id":"m1","#,
        r#""content":[{"type":"output_text","text":"Hi"}]}"#
    ),
);

#[tokio::test]
async fn text_is_parsed_in_all_its_forms() {
    let hi = || complete_text(vec![text("Hi")]);
    let all = [MESSAGE, TEXT_H, TEXT_I, MESSAGE_DONE];
    let comments = stream(&all).replace("\n\n", "\n\n: ping\n\n");
    let unnamed = stream(&all).replace("event: ", ": ");
    let untyped = stream(&all).replace("\"type\":\"response.output_text.delta\",", "");
    let early =
        stream(&all).replace("event: response.comp", "data: [DONE]\n\nevent: response.comp");
    let strange = ("sparkle.delta", r#""delta":{"any":["thing"]},"item_id":"m1""#);
    let nothing = ("output_text.delta", r#""output_index":0,"delta":null"#);
    let odd = stream(&[strange, MESSAGE, TEXT_H, strange, nothing, TEXT_I]);
    check(
        Wire::responses(),
        [
            case("as always", stream(&all), hi()),
            case("without its beginning", events(&[TEXT_H, TEXT_I, COMPLETED]), hi()),
            case("only when it is done", stream(&[MESSAGE, MESSAGE_DONE]), hi()),
            case("by its type alone", unnamed, hi()),
            case("by its event alone", untyped, hi()),
            case("with other line ends", stream(&all).replace('\n', "\r\n"), hi()),
            case("between comments", format!(": ping\n\n{comments}"), hi()),
            case("among unknown events", odd, hi()),
            case("with [DONE] behind", stream(&all) + "data: [DONE]\n\n", hi()),
            case("with [DONE] before its end", early, hi()),
        ],
    )
    .await;
}

#[tokio::test]
async fn any_text_is_parsed() {
    let more = ("output_text.delta", r#""output_index":0,"content_index":1,"delta":"o""#);
    let long = ("output_text.delta", r#""output_index":0,"delta":"Gr\u00fc\u00dfe, 世界 🎻""#);
    let refusal = ("refusal.delta", r#""output_index":0,"content_index":0,"delta":"I cannot.""#);
    let content = r#"[{"type":"output_text","text":"Hi"}]"#;
    let done = format!(r#""item":{{"type":"message","content":{content}}}"#);
    let nameless = [
        ("output_item.added", r#""item":{"type":"message","content":[]}"#),
        ("output_text.delta", r#""delta":"Hi""#),
        ("output_item.done", done.as_str()),
    ];
    check(
        Wire::responses(),
        [
            case(
                "in two parts",
                stream(&[TEXT_H, more, TEXT_I]),
                complete_text(vec![text("Hi"), text("o")]),
            ),
            case("long characters", stream(&[long]), complete_text(vec![text("Grüße, 世界 🎻")])),
            case("of an item without a name", stream(&nameless), complete_text(vec![text("Hi")])),
            case("a refusal", stream(&[MESSAGE, refusal]), complete_text(vec![text("I cannot.")])),
            case("none at all", stream(&[]), complete_text(Vec::new())),
        ],
    )
    .await;
}

#[tokio::test]
async fn reasoning_is_shown_as_its_summary_and_kept_as_its_encrypted_item() {
    let part = |index: u32, delta: &str| {
        format!(r#""output_index":0,"summary_index":{index},"delta":"{delta}""#)
    };
    let (one, two) = (part(0, "Hm."), part(1, "Oh."));
    let raw = ("reasoning_text.delta", r#""output_index":0,"content_index":0,"delta":"Hm.""#);
    let item = concat!(
        r#"{"id":"rs","type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}],"#,
        r#""encrypted_content":"s3al", "odd": 1.0}"#
    );
    let done = |item: &str| format!(r#""output_index":0,"item":{item}"#);
    let unsealed = done(&item.replace("\"s3al\"", "null"));
    let half_sealed = done(&item.replace("s3al", ""));
    let unsummed = item.replace(r#"{"type":"summary_text","text":"Hm."}"#, "");
    let hi = ("output_text.delta", r#""output_index":1,"delta":"Hi""#);
    let summary = ("reasoning_summary_text.delta", one.as_str());
    let shown = || complete_text(vec![thinking("Hm."), text("Hi")]);
    let kept = || complete_text(vec![thinking("Hm."), encrypted("reasoning", item), text("Hi")]);
    check(
        Wire::responses(),
        [
            case("both", stream(&[summary, ("output_item.done", &done(item)), hi]), kept()),
            case(
                "a summary told with the item",
                stream(&[("output_item.done", &done(item)), hi]),
                kept(),
            ),
            case(
                "no summary",
                stream(&[("output_item.done", &done(&unsummed)), hi]),
                complete_text(vec![encrypted("reasoning", &unsummed), text("Hi")]),
            ),
            case("no seal", stream(&[summary, ("output_item.done", &unsealed), hi]), shown()),
            case(
                "an empty seal",
                stream(&[summary, ("output_item.done", &half_sealed), hi]),
                shown(),
            ),
            case("thoughts in full", stream(&[raw, ("output_item.done", &unsealed), hi]), shown()),
            case(
                "a summary in parts",
                stream(&[summary, ("reasoning_summary_text.delta", &two), hi]),
                complete_text(vec![thinking("Hm."), thinking("Oh."), text("Hi")]),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn items_of_unknown_kinds_are_kept() {
    let item = r#"{"id":"ws","type":"web_search_call","content":"odd","action":{"query":"x"}}"#;
    let done = format!(r#""output_index":0,"item":{item}"#);
    let added = r#""output_index":0,"item":{"id":"ws","type":"web_search_call"}"#;
    let body = stream(&[("output_item.added", added), ("output_item.done", &done)]);
    let outcome = complete_text(vec![encrypted("web_search_call", item)]);
    check(Wire::responses(), [case("a search", body, outcome)]).await;
}

/// A call item in an event.
fn call_item(place: u32, name: &str, arguments: &str) -> String {
    let number = place + 1;
    let ids = format!(r#""id":"fc_{number}","call_id":"call_{number}""#);
    let call = format!(r#""name":"{name}","arguments":"{arguments}""#);
    format!(r#""output_index":{place},"item":{{"type":"function_call",{ids},{call}}}"#)
}

#[tokio::test]
async fn parallel_calls_are_separated_and_assembled() {
    let one = || used(vec![call("call_1", "f", r#"{"a":1}"#)]);
    let both = || used(vec![call("call_1", "f", r#"{"a":1}"#), call("call_2", "g", "{}")]);
    let delta =
        |id: &str, text: &str| format!(r#""output_index":0,"item_id":"{id}","delta":"{text}""#);
    let (first, first_whole) = (call_item(0, "f", ""), call_item(0, "f", r#"{\"a\":1}"#));
    let (second, second_whole) = (call_item(1, "g", ""), call_item(1, "g", "{}"));
    let arguments = r#""output_index":0,"item_id":"fc_1","arguments":"{\"a\":1}""#;
    let (head, tail) = (delta("fc_1", r#"{\"a\""#), delta("fc_1", ":1}"));
    let other_id = delta("made_up", ":1}");
    let open = ("output_item.added", first.as_str());
    let head = ("function_call_arguments.delta", head.as_str());
    let tail = ("function_call_arguments.delta", tail.as_str());
    let other_id = ("function_call_arguments.delta", other_id.as_str());
    let argued = ("function_call_arguments.done", arguments);
    let done = ("output_item.done", first_whole.as_str());
    let open_two = ("output_item.added", second.as_str());
    let done_two = ("output_item.done", second_whole.as_str());
    let by_id = stream(&[open, head, open_two, tail, done_two, done]);
    let by_id = by_id.replace("\"output_index\":0,", "").replace("\"output_index\":1,", "");
    let by_id = by_id.replace("\"id\":\"fc_1\",", "").replace("fc_1", "call_1");
    check(
        Wire::responses(),
        [
            case("one, in pieces", stream(&[open, head, tail, argued, done]), one()),
            case("one, never done", stream(&[open, head, tail]), one()),
            case("arguments when they are done", stream(&[open, argued, done]), one()),
            case("arguments with the item", stream(&[open, done]), one()),
            case("the item when it is done", stream(&[done]), one()),
            case("two, interleaved", stream(&[open, open_two, head, tail, done_two, done]), both()),
            case("two in turn", stream(&[open, head, tail, done, open_two, done_two]), both()),
            case("two, by the ids of the calls", by_id, both()),
            case("an id made up for each delta", stream(&[open, head, other_id, done]), one()),
            case("no arguments", stream(&[open_two]), used(vec![call("call_2", "g", "{}")])),
        ],
    )
    .await;
}

#[tokio::test]
async fn arguments_truncated_by_the_limit_are_kept() {
    let open = call_item(0, "f", "");
    let head = r#""output_index":0,"delta":"{\"a\"""#;
    let details = r#"{"reason":"max_output_tokens"}"#;
    let end = format!(r#""response":{{"status":"incomplete","incomplete_details":{details}}}"#);
    let body = events(&[
        ("output_item.added", &open),
        ("function_call_arguments.delta", head),
        ("incomplete", &end),
    ]);
    let message = answer(vec![malformed_call("call_1", "f", r#"{"a""#)], "max_output_tokens");
    let message = AssistantMessage { stop_reason: StopReason::Length, ..message };
    check(Wire::responses(), [case("a call", body, whole(message))]).await;
}

#[tokio::test]
async fn an_answer_ends_with_its_stop_reason() {
    let ended = |raw: &str, stop_reason| {
        whole(AssistantMessage { stop_reason, ..answer(vec![text("H")], raw) })
    };
    let end = |kind: &str, response: &str| {
        events(&[TEXT_H, (kind, &format!(r#""response":{response}"#))])
    };
    let why = |reason: &str| {
        format!(r#"{{"status":"incomplete","incomplete_details":{{"reason":"{reason}"}}}}"#)
    };
    let plain = r#"{"status":"completed","incomplete_details":null,"usage":null}"#;
    let (limit, filter) = (why("max_output_tokens"), why("content_filter"));
    let unsaid = r#"{"status":"incomplete"}"#;
    let (done, length, unknown) = (StopReason::EndTurn, StopReason::Length, StopReason::Unknown);
    check(
        Wire::responses(),
        [
            case("completed", end("completed", plain), ended("completed", done)),
            case("without a word", end("completed", "{}"), ended("completed", done)),
            case("length", end("incomplete", &limit), ended("max_output_tokens", length)),
            case("length, inside", end("completed", &limit), ended("max_output_tokens", length)),
            case(
                "filtered",
                end("incomplete", &filter),
                ended("content_filter", StopReason::Error),
            ),
            case("no reason", end("incomplete", unsaid), ended("incomplete", unknown)),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_line_of_a_megabyte_is_read() {
    let long = "x".repeat(1 << 20);
    let delta = format!(r#""output_index":0,"delta":"{long}""#);
    let body = stream(&[("output_text.delta", &delta)]);
    let (found, _) = ask(Wire::responses(), Reply::events(body).split(64 * 1024), hello()).await;
    assert_eq!(found, complete_text(vec![text(&long)]));
}
