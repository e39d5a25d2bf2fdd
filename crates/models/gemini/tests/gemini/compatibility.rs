//! Extensions of the wire and of compatible servers.

use antiphon_core::{AssistantBlock, AssistantMessage, StopReason};
use antiphon_model_server::Reply;

use crate::world::{answer, end, event, message, opaque, parts, whole};

const HELLO: &str = r#"{"text":"Hello"}"#;

fn hello() -> AssistantMessage {
    message(vec![AssistantBlock::text("Hello")], StopReason::EndTurn, "STOP")
}

#[tokio::test]
async fn unknown_fields_and_events_are_skipped() {
    let noise = [
        "{}",
        r#"{"candidates":[]}"#,
        r#"{"candidates":null,"usageMetadata":null}"#,
        r#"{"candidates":[{"index":0}]}"#,
        r#"{"candidates":[{"content":{"role":"model"}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{}]},"safetyRatings":[{"probability":"LOW"}]}]}"#,
        r#"{"promptFeedback":{"safetyRatings":[]},"modelVersion":"x","createTime":"now"}"#,
        r#"{"candidates":[{"groundingMetadata":{"webSearchQueries":["x"]}}]}"#,
    ];
    for noise in noise {
        let body = [event(noise), parts(&[HELLO]), event(noise), end("STOP"), event(noise)];
        assert_eq!(answer(Reply::events(body.concat())).await, (hello(), None), "{noise}");
    }
}

#[tokio::test]
async fn other_spellings_of_events_are_accepted() {
    let body = whole(&[&[HELLO]]);
    let cases = [
        ("LF", body.replace("\r\n", "\n")),
        ("CR", body.replace("\r\n", "\r")),
        ("a byte order mark", format!("\u{feff}{body}")),
        ("comments and names", body.replace("data:", ": ping\r\nevent: x\r\ndata:")),
        ("several lines", body.replace("\"candidates\"", "\r\ndata:  \"candidates\"")),
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
    let part = format!(r#"{{"text":"{long}"}}"#);
    let (message, failure) = answer(Reply::events(whole(&[&[&part]]))).await;
    assert_eq!((message.text() == long, failure), (true, None));
}

#[tokio::test]
async fn only_the_first_candidate_is_read() {
    let two = event(
        r#"{"candidates":[{"content":{"parts":[{"text":"Hello"}]}},{"content":{"parts":[{"text":"Hi"}]},"index":1}]}"#,
    );
    assert_eq!(answer(Reply::events(two + &end("STOP"))).await, (hello(), None));
}

#[tokio::test]
async fn parts_of_unknown_kinds_are_kept() {
    let code =
        r#"{"executableCode":{"language":"PYTHON","code":"print(1)"},"thoughtSignature":"c2ln"}"#;
    let outcome = r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1\n"}}"#;
    let picture = r#"{"inlineData":{"mimeType":"image/png","data":"cG5nIQ=="},"thought":true}"#;
    let future = r#"{"hologram":{"depth":3.50}}"#;
    let body = whole(&[&[r#"{"text":"So: "}"#, code], &[outcome, picture], &[future, HELLO]]);
    let content = vec![
        AssistantBlock::text("So: "),
        opaque("executableCode", code),
        opaque("codeExecutionResult", outcome),
        opaque("inlineData", picture),
        opaque("hologram", future),
        AssistantBlock::text("Hello"),
    ];
    let expected = message(content, StopReason::EndTurn, "STOP");
    assert_eq!(answer(Reply::events(body)).await, (expected, None));
}
