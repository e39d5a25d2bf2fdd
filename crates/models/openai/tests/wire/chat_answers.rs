//! Chat Completions: complete answers in all their variants.

use antiphon_core::{AssistantBlock, AssistantMessage, StopReason};
use antiphon_model_server::Reply;

use crate::world::{
    Case, Outcome, Wire, answer, ask, call, check, hello, malformed_call, text, thinking, usage,
    whole,
};

/// One chunk with this delta.
pub(crate) fn delta(json: &str) -> String {
    let choices = format!(r#"[{{"index":0,"delta":{json},"finish_reason":null}}]"#);
    format!("data: {{\"object\":\"chat.completion.chunk\",\"choices\":{choices}}}\n\n")
}

/// A delta of one call, from its fields and those of its function.
pub(crate) fn call_delta(fields: &str, function: &str) -> String {
    format!(r#"{{"tool_calls":[{{{fields}"type":"function","function":{{{function}}}}}]}}"#)
}

pub(crate) fn finish(reason: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n")
}

const USAGE: &str = concat!(
    r#"data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":3,"#,
    r#""prompt_tokens_details":{"cached_tokens":4}}}"#,
    "\n\n"
);

pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// A stream of these deltas with OpenAI's ending.
fn stream(deltas: &[&str], reason: &str) -> String {
    let deltas: String = deltas.iter().map(|json| delta(json)).collect();
    deltas + &finish(reason) + USAGE + DONE
}

fn case(name: &'static str, body: impl Into<Vec<u8>>, outcome: Outcome) -> Case {
    Case { name, reply: Reply::events(body), outcome }
}

/// A complete answer with the stop reason `raw` and usage.
fn complete(content: Vec<AssistantBlock>, raw: &str, stop_reason: StopReason) -> Outcome {
    let usage = usage(6, 3, Some(4));
    whole(AssistantMessage { stop_reason, usage, ..answer(content, raw) })
}

/// The same with the reason `stop`.
fn complete_text(content: Vec<AssistantBlock>) -> Outcome {
    complete(content, "stop", StopReason::EndTurn)
}

fn used(content: Vec<AssistantBlock>) -> Outcome {
    complete(content, "tool_calls", StopReason::ToolUse)
}

#[tokio::test]
async fn text_is_parsed_in_all_its_forms() {
    let hi = || complete_text(vec![text("Hi")]);
    let crlf = stream(&[r#"{"content":"Hi"}"#], "stop").replace('\n', "\r\n");
    let nulls = r#"{"role":null,"content":null,"refusal":null,"tool_calls":null,"reasoning":null,
        "reasoning_content":null,"function_call":null}"#
        .replace('\n', "");
    let comments = format!(": ping\n\n{}: ping\n\nretry: 10\n\n{}", delta("{}"), {
        stream(&[r#"{"content":"Hi"}"#], "stop")
    });
    let extra = format!(
        "event: chunk\nid: 7\ndata: {{\"x_groq\":{{\"id\":\"r\"}},\"choices\":null}}\n\n{}",
        stream(&[r#"{"content":"Hi","annotations":[],"audio":{"a":1}}"#], "stop")
    );
    let unicode = [r#"{"content":"Gr\u00fc\u00dfe, 世"}"#, r#"{"content":"界 🎻"}"#];
    let refusal = [r#"{"refusal":"I can"}"#, r#"{"refusal":"not."}"#];
    let at_once = r#"{"role":"assistant","content":"Hi"}"#;
    let split = |deltas: &[&str]| stream(deltas, "stop");
    check(
        Wire::chat(),
        [
            case("at once", split(&[at_once]), hi()),
            case("by and by", split(&[r#"{"content":"H"}"#, r#"{"content":"i"}"#]), hi()),
            case("among nulls", split(&[&nulls, at_once, &nulls]), hi()),
            case("after nothing", split(&[r#"{"content":""}"#, at_once]), hi()),
            case("after a delta of null", split(&["null", at_once]), hi()),
            case("with other line ends", crlf, hi()),
            case("between comments", comments, hi()),
            case("with unknown keys", extra, hi()),
            case(
                "in long characters",
                split(&unicode),
                complete_text(vec![text("Grüße, 世界 🎻")]),
            ),
            case("as a refusal", split(&refusal), complete_text(vec![text("I cannot.")])),
            case("as no text at all", split(&[]), complete_text(Vec::new())),
        ],
    )
    .await;
}

#[tokio::test]
async fn thinking_is_parsed_from_each_field_and_never_twice() {
    let thought = || complete_text(vec![thinking("Hm."), text("Hi")]);
    let then_hi = |deltas: &[&str]| stream(&[deltas, &[r#"{"content":"Hi"}"#]].concat(), "stop");
    let both = r#"{"reasoning":"Hm.","reasoning_content":"Hm."}"#;
    let detailed = r#"{"content":"","reasoning":"Hm.","reasoning_details":[{"text":"Hm."}]}"#;
    check(
        Wire::chat(),
        [
            case("the one", then_hi(&[r#"{"reasoning_content":"Hm."}"#]), thought()),
            case(
                "the other",
                then_hi(&[r#"{"reasoning":"H"}"#, r#"{"reasoning":"m."}"#]),
                thought(),
            ),
            case("both", then_hi(&[both]), thought()),
            case("beside its details", then_hi(&[detailed]), thought()),
        ],
    )
    .await;
}

#[tokio::test]
async fn parallel_calls_are_separated_and_assembled() {
    let one = || used(vec![call("call_1", "f", r#"{"a":1}"#)]);
    let both = || used(vec![call("call_1", "f", r#"{"a":1}"#), call("call_2", "g", "{}")]);
    let open = &call_delta(r#""index":0,"id":"call_1","#, r#""name":"f","arguments":"""#);
    let head = &call_delta(r#""index":0,"#, r#""arguments":"{\"a\"""#);
    let tail = &call_delta(r#""index":0,"#, r#""arguments":":1}""#);
    let second = &call_delta(r#""index":1,"id":"call_2","#, r#""name":"g","arguments":"{}""#);
    let named_head =
        &call_delta(r#""index":0,"id":"call_1","#, r#""name":"f","arguments":"{\"a\"""#);
    let named_tail = &call_delta(r#""index":0,"id":"call_1","#, r#""name":"f","arguments":":1}""#);
    let other_id = &call_delta(r#""index":0,"id":"call_x","#, r#""name":null,"arguments":":1}""#);
    let on_zero = &second.replace("\"index\":1", "\"index\":0");
    let no_index = &call_delta(r#""id":"call_1","#, r#""name":"f","arguments":"{\"a\":1}""#);
    let no_index_two = &call_delta(r#""id":"call_2","#, r#""name":"g""#);
    let object = call_delta(r#""id":"call_1","#, r#""name":"f","arguments":{"a":1}"#);
    let together = &object.replace("]}", r#",{"id":"call_2","function":{"name":"g"}}]}"#);
    let split = |calls: &[&str]| stream(calls, "tool_calls");
    let ended =
        |raw: &str| complete(vec![call("call_1", "f", r#"{"a":1}"#)], raw, StopReason::ToolUse);
    check(
        Wire::chat(),
        [
            case("one, in pieces", split(&[open, head, tail]), one()),
            case("two, one after the other", split(&[open, head, tail, second]), both()),
            case("two, interleaved", split(&[open, second, head, tail]), both()),
            case("id and name each time", split(&[named_head, named_tail]), one()),
            case("an id made up for each delta", split(&[open, head, other_id]), one()),
            case("without an index", split(&[no_index]), one()),
            case("two without an index", split(&[no_index, no_index_two]), both()),
            case("two on one index", split(&[open, head, tail, on_zero]), both()),
            case("two at once, arguments as an object", split(&[together]), both()),
            case("that end with the word stop", stream(&[no_index], "stop"), ended("stop")),
            case("by the old word", stream(&[no_index], "function_call"), ended("function_call")),
        ],
    )
    .await;
}

#[tokio::test]
async fn arguments_are_kept_as_the_model_wrote_them() {
    let with = |arguments: &str| {
        let text = serde_json::to_string(arguments).unwrap();
        call_delta(r#""index":0,"id":"call_1","#, &format!(r#""name":"f","arguments":{text}"#))
    };
    let odd = r#"{"n": 1.0, "n": 12345678901234567890123, "é": "\u00e9"}"#;
    check(
        Wire::chat(),
        [
            case("none", stream(&[&with("")], "tool_calls"), used(vec![call("call_1", "f", "{}")])),
            case(
                "byte for byte",
                stream(&[&with(odd)], "tool_calls"),
                used(vec![call("call_1", "f", odd)]),
            ),
            case(
                "cut off by the limit",
                stream(&[&with(r#"{"a":"#)], "length"),
                complete(
                    vec![malformed_call("call_1", "f", r#"{"a":"#)],
                    "length",
                    StopReason::Length,
                ),
            ),
            case(
                "not an object",
                stream(&[&with("[1]")], "tool_calls"),
                used(vec![malformed_call("call_1", "f", "[1]")]),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn an_answer_ends_with_its_stop_reason() {
    let hi = r#"{"content":"Hi"}"#;
    let ended = |raw: &str, reason| complete(vec![text("Hi")], raw, reason);
    let (length, unknown) = (StopReason::Length, StopReason::Unknown);
    let late = stream(&[hi], "").replace(USAGE, &(finish("stop") + USAGE));
    let open_end = delta(hi) + &finish("stop") + USAGE;
    let unsaid = delta(hi) + USAGE + DONE;
    let spoken = || complete_text(vec![text("Hi")]);
    check(
        Wire::chat(),
        [
            case("length", stream(&[hi], "length"), ended("length", length)),
            case("a full window", stream(&[hi], "model_length"), ended("model_length", length)),
            case(
                "filtered",
                stream(&[hi], "content_filter"),
                ended("content_filter", StopReason::Error),
            ),
            case("unheard of", stream(&[hi], "eos_token"), ended("eos_token", unknown)),
            case("an empty one first", late, spoken()),
            case("without [DONE]", open_end.as_str(), spoken()),
            case("without [DONE] and its last line end", open_end.trim_end(), spoken()),
            case("without any", unsaid, ended("", unknown)),
        ],
    )
    .await;
}

#[tokio::test]
async fn usage_is_parsed_from_each_position() {
    let hi = delta(r#"{"content":"Hi"}"#);
    let counted = |choices: &str, usage: &str| {
        format!("data: {{\"choices\":{choices},\"usage\":{usage}}}\n\n")
    };
    let last = r#"[{"delta":{},"finish_reason":"stop"}]"#;
    let cached = r#"{"prompt_tokens":10,"completion_tokens":3,"prompt_cache_hit_tokens":4}"#;
    let running = r#"{"prompt_tokens":10,"completion_tokens":1}"#;
    let with_reason = hi.clone() + &counted(last, cached) + DONE;
    let all_along = counted(r#"[{"delta":{"content":"Hi"}}]"#, running) + &finish("stop") + USAGE;
    let empty = hi.clone() + &finish("stop") + &counted("[]", "{}") + DONE;
    let nowhere = hi + &finish("stop") + DONE;
    let spoken = || complete_text(vec![text("Hi")]);
    let uncounted = || whole(answer(vec![text("Hi")], "stop"));
    check(
        Wire::chat(),
        [
            case("with the reason", with_reason, spoken()),
            case("all along", all_along + DONE, spoken()),
            case("in an empty count", empty, uncounted()),
            case("nowhere", nowhere, uncounted()),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_line_of_a_megabyte_is_read() {
    let long = "x".repeat(1 << 20);
    let body = stream(&[&format!(r#"{{"content":"{long}"}}"#)], "stop");
    let (found, _) = ask(Wire::chat(), Reply::events(body).split(64 * 1024), hello()).await;
    assert_eq!(found, complete_text(vec![text(&long)]));
}
