//! Bytes that are not JSON, or not quite.

use antiphon_core::{
    ChatCompletionRequest, Event, Interaction, Message, OrchestratorRequest, RawJson,
};

use crate::{UUID, answer, event, interaction, question, refusal, refused_by_all};

#[test]
fn bytes_that_are_no_json_are_refused_by_every_parser() {
    for bytes in [
        &b""[..],
        b" ",
        b"\0",
        b"\xff\xfe{\0}\0",
        b"\xef\xbb\xbf{}",
        b"{",
        b"{}}",
        b"{\"type\":}",
        b"{'type':'user'}",
        b"<xml/>",
        b"nul",
        b"\"\\",
        b"[1,]",
        b"{\"a\":1,}",
        b"// {}",
    ] {
        refused_by_all(bytes);
    }
}

#[test]
fn json_of_another_shape_is_refused_by_every_parser() {
    for bytes in [&b"null"[..], b"true", b"1", b"-1.5e3", b"\"text\"", b"[{}]"] {
        refused_by_all(bytes);
    }
}

/// Puts a byte that is no UTF-8 in place of each `@`.
fn spoiled(json: &str) -> Vec<u8> {
    json.bytes().map(|byte| if byte == b'@' { 0xff } else { byte }).collect()
}

#[test]
fn text_that_is_no_utf_8_is_refused_wherever_it_stands() {
    let block = r#"{"type":"text","text":"a@b"}"#;
    let call = |name: &str, arguments: &str| {
        answer(&format!(
            r#"{{"type":"tool_call","id":"c","name":"{name}","arguments":{arguments}}}"#
        ))
    };
    for json in [
        question(block),
        answer(block),
        call("@", "{}"),
        call("t", r#"{"a":"@"}"#),
        call("t", r#""@""#),
    ] {
        refusal::<Message>(spoiled(&json));
    }
    refusal::<RawJson>(spoiled(r#"{"a@":1}"#));
    refusal::<Event>(spoiled(&event("status_changed", r#"{"status":"failed","detail":"@"}"#)));
    refusal::<Event>(spoiled(&event("@", "{}")));
    refusal::<Interaction>(spoiled(&interaction(r#"{"type":"message","body":"@"}"#)));
    refusal::<OrchestratorRequest>(spoiled(r#"{"action":"stop_agent","name":"@"}"#));
    refusal::<ChatCompletionRequest>(spoiled(r#"{"messages":[],"model":"@"}"#));
}

#[test]
fn half_a_surrogate_pair_is_no_text() {
    for half in [r"\ud800", r"\udfff", r"\ud800\u0041"] {
        let block = format!(r#"{{"type":"text","text":"{half}"}}"#);
        refusal::<Message>(question(&block));
        refusal::<OrchestratorRequest>(format!(r#"{{"action":"{half}"}}"#));
        let body = format!(r#"{{"type":"message","body":"{half}"}}"#);
        refusal::<Interaction>(interaction(&body));
    }
}

#[test]
fn a_field_given_twice_is_refused_by_its_name() {
    let twice = |json: String, field: &str, said: String| {
        assert!(said.starts_with(&format!("duplicate field `{field}`")), "{json}: {said}");
    };
    let json = r#"{"action":"stop_agent","name":"a","name":"b"}"#.to_owned();
    twice(json.clone(), "name", refusal::<OrchestratorRequest>(&json));
    let json = question("").replace(r#""type""#, r#""type":"assistant","type""#);
    twice(json.clone(), "type", refusal::<Message>(&json));
    let json = question(r#"{"type":"text","text":"a","text":"b"}"#);
    twice(json.clone(), "text", refusal::<Message>(&json));
    let json = event("status_changed", r#"{"status":"running"}"#).replace(r#""v""#, r#""v":2,"v""#);
    twice(json.clone(), "v", refusal::<Event>(&json));
    let json = interaction(r#"{"type":"message","body":"a","body":"b"}"#);
    twice(json.clone(), "body", refusal::<Interaction>(&json));
    let json = interaction(r#"{"type":"message","type":"ack","body":"a"}"#);
    twice(json.clone(), "type", refusal::<Interaction>(&json));
    let json = format!(r#"{{"id":"{UUID}","id":"{UUID}","from":"user"}}"#);
    twice(json.clone(), "id", refusal::<Interaction>(&json));
    let json = r#"{"messages":[],"temperature":1,"temperature":9}"#.to_owned();
    twice(json.clone(), "temperature", refusal::<ChatCompletionRequest>(&json));
}

#[test]
fn a_key_given_twice_in_arguments_reaches_the_tool_as_it_was_written() {
    let arguments = r#"{"path":"a","path":"b"}"#;
    let json =
        answer(&format!(r#"{{"type":"tool_call","id":"c","name":"t","arguments":{arguments}}}"#));
    let message: Message = serde_json::from_str(&json).unwrap();
    let Message::Assistant(answer) = message else { panic!("no answer") };
    let calls: Vec<&str> = answer
        .tool_calls()
        .filter_map(|call| call.arguments.object())
        .map(RawJson::as_str)
        .collect();
    assert_eq!(calls, [arguments]);
}

#[test]
fn a_temperature_that_is_no_number_of_json_is_refused() {
    for number in ["NaN", "nan", "Infinity", "-Infinity", "1e999", "\"1\"", "0x1", "+1", ".5", "01"]
    {
        let json = format!(r#"{{"messages":[],"temperature":{number}}}"#);
        refusal::<ChatCompletionRequest>(json);
    }
}

#[test]
fn a_time_that_is_none_is_refused() {
    for time in [
        "",
        "now",
        "2025-01-20",
        "2025-01-20T10:00:00",
        "2025-02-30T10:00:00Z",
        "2025-01-20T25:00:00Z",
        "+999999999-01-01T00:00:00Z",
        "2025-01-20T10:00:00+99:99",
    ] {
        let json = format!(r#"{{"type":"user","content":[],"timestamp":"{time}"}}"#);
        refusal::<Message>(json);
    }
    refusal::<Message>(r#"{"type":"user","content":[],"timestamp":1737367200}"#);
}
