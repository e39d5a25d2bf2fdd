//! Extensions of the wire and of compatible servers.

use antiphon_core::{AssistantBlock, AssistantMessage, StopReason};
use antiphon_model_server::Reply;

use crate::world::{answer, begin, block, delta, end, event, message, opaque, text, whole};

fn hello() -> AssistantMessage {
    message(vec![AssistantBlock::text("Hello")], StopReason::EndTurn, "end_turn")
}

#[tokio::test]
async fn unknown_fields_and_events_are_skipped() {
    let ping = event(r#"{"type":"ping"}"#);
    let odd = event(
        r#"{"type":"notice","message":"text","delta":7,"usage":[],"error":"none","content_block":0}"#,
    );
    let start = r#"{"type":"text","text":"","citations":[]}"#;
    let cited =
        r#"{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x"}}"#;
    let hello_delta = r#"{"type":"text_delta","text":"Hello"}"#;
    let cases = [
        (
            "pings",
            [ping.clone(), begin(), ping.clone(), text(0, "Hello"), ping, end("end_turn")].concat(),
        ),
        ("events", [begin(), odd.clone(), text(0, "Hello"), odd, end("end_turn")].concat()),
        (
            "deltas",
            whole(&[block(0, start, &[cited, hello_delta, r#"{"type":"mood_delta","mood":1}"#])]),
        ),
        ("fields", whole(&[text(0, "Hello")]).replace("\"index\"", "\"extra\":{},\"index\"")),
    ];
    for (name, body) in cases {
        assert_eq!(answer(Reply::events(body)).await, (hello(), None), "{name}");
    }
}

#[tokio::test]
async fn other_spellings_of_events_are_accepted() {
    let body = whole(&[text(0, "Hello")]);
    let unnamed: String = body
        .lines()
        .filter(|line| !line.starts_with("event"))
        .fold(String::new(), |text, line| text + line + "\n");
    let cases = [
        ("CRLF", body.replace('\n', "\r\n")),
        ("a byte order mark", format!("\u{feff}{body}")),
        ("comments", body.replace("event:", ": keep-alive\n\nevent:")),
        ("no names", unnamed),
        ("no blank line at the end", body.trim_end().to_owned()),
    ];
    for (name, body) in cases {
        for size in [1, 4096] {
            let reply = Reply::events(body.as_str()).split(size);
            assert_eq!(answer(reply).await, (hello(), None), "{name}, by {size}");
        }
    }
}

#[tokio::test]
async fn an_event_of_a_megabyte_is_read() {
    let long = "é".repeat(512 * 1024);
    let (message, failure) = answer(Reply::events(whole(&[text(0, &long)]))).await;
    assert_eq!((message.text() == long, failure), (true, None));
}

#[tokio::test]
async fn blocks_of_unknown_kinds_are_kept() {
    let called = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}"#;
    let query = r#"{"type":"input_json_delta","partial_json":"{\"query\":"}"#;
    let rest = r#"{"type":"input_json_delta","partial_json":" \"rust\"}"}"#;
    let found = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://x","encrypted_content":"ZW5j"}]}"#;
    let future = r#"{"type":"hologram","depth":3.50}"#;
    let body = whole(&[
        block(0, called, &[query, rest]),
        block(1, found, &[]),
        block(2, future, &[r#"{"type":"hologram_delta","depth":4}"#]),
        text(3, "Hello"),
    ]);
    let content = vec![
        opaque(
            "server_tool_use",
            r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"rust"}}"#,
        ),
        opaque("web_search_tool_result", found),
        opaque("hologram", r#"{"type":"hologram","depth":3.5}"#),
        AssistantBlock::text("Hello"),
    ];
    let expected = message(content, StopReason::EndTurn, "end_turn");
    assert_eq!(answer(Reply::events(body)).await, (expected, None));
}

#[tokio::test]
async fn a_delta_may_come_before_the_start_of_its_block() {
    let body = begin() + &delta(0, r#"{"type":"text_delta","text":"Hello"}"#) + &end("end_turn");
    assert_eq!(answer(Reply::events(body)).await, (hello(), None));
}
