//! A saved session is the loaded one, byte for byte.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use antiphon_core::{
    AssistantBlock, AssistantMessage, ImageBlock, InputBlock, OpaqueBlock, RawJson, Session,
    SessionId, Signature, StopReason, ThinkingBlock, ToolArguments, ToolCallBlock, ToolCallId,
    ToolResultMessage, Usage, UserMessage,
};
use antiphon_session_file::{load, parse, save, to_json};
use chrono::{DateTime, Utc};
use proptest::prelude::*;

const SEED: &str = include_str!("fixtures/seed.json");

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// Removes white space between tokens and nothing else.
fn minified(json: &str) -> String {
    let (mut out, mut in_string, mut escaped) = (String::new(), false, false);
    for c in json.chars() {
        if in_string || !c.is_ascii_whitespace() {
            out.push(c);
        }
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
    }
    out
}

#[test]
fn the_example_of_the_format_is_read_by_value() {
    let call = ToolCallBlock {
        id: ToolCallId::parse("tc_1").unwrap(),
        name: "read".to_owned(),
        arguments: ToolArguments::Object(RawJson::parse(r#"{"path": "auth.go"}"#).unwrap()),
        signature: None,
    };
    let expected = Session {
        id: SessionId::parse("session-id").unwrap(),
        system_prompt: "You are...".to_owned(),
        created_at: at("2026-02-18T12:00:00Z"),
        updated_at: at("2026-02-18T12:05:00Z"),
        messages: vec![
            UserMessage::text("Fix the login bug", at("2026-02-18T12:00:00Z")).into(),
            AssistantMessage {
                content: vec![
                    AssistantBlock::text("I'll look at the auth module."),
                    AssistantBlock::ToolCall(call),
                ],
                stop_reason: StopReason::ToolUse,
                raw_stop_reason: "tool_use".to_owned(),
                usage: Usage { input_tokens: 150, output_tokens: 42, ..Usage::default() },
                model: None,
                timestamp: at("2026-02-18T12:00:01Z"),
            }
            .into(),
            ToolResultMessage {
                tool_call_id: ToolCallId::parse("tc_1").unwrap(),
                tool_name: "read".to_owned(),
                content: vec![InputBlock::text("package auth\n...")],
                is_error: false,
                timestamp: at("2026-02-18T12:00:02Z"),
            }
            .into(),
        ],
    };
    assert_eq!(parse(SEED).unwrap(), expected);
}

#[test]
fn the_example_of_the_format_round_trips_byte_for_byte() {
    let saved = to_json(&parse(SEED).unwrap()).unwrap();
    assert_eq!(minified(&saved), minified(SEED));
    assert_eq!(to_json(&parse(&saved).unwrap()).unwrap(), saved);
}

#[test]
fn numbers_in_tool_arguments_keep_their_digits() {
    let arguments = r#"{"f":1.0,"e":1E+2,"big":123456789012345678901234567890,"neg":-0.0,"f":2}"#;
    let text = SEED.replace(r#"{"path": "auth.go"}"#, arguments);
    assert!(to_json(&parse(&text).unwrap()).unwrap().contains(arguments));
}

#[test]
fn every_kind_of_block_survives_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.json");
    let mut session =
        Session::new(SessionId::parse("s").unwrap(), "", at("2026-02-18T12:00:00.123Z"));
    session.push(UserMessage {
        content: vec![
            InputBlock::text("look"),
            InputBlock::Image(ImageBlock::new("image/png", vec![1, 2, 3]).unwrap()),
        ],
        timestamp: at("2026-02-18T12:00:00.123Z"),
    });
    session.push(AssistantMessage {
        content: vec![
            AssistantBlock::Thinking(ThinkingBlock {
                thinking: "hm".to_owned(),
                signature: Some(Signature("c2ln".to_owned())),
            }),
            AssistantBlock::Opaque(OpaqueBlock {
                kind: "redacted_thinking".to_owned(),
                value: RawJson::parse(r#"{"type":"redacted_thinking","data":"eA=="}"#).unwrap(),
            }),
            AssistantBlock::ToolCall(ToolCallBlock {
                id: ToolCallId::parse("c").unwrap(),
                name: "bash".to_owned(),
                arguments: ToolArguments::Malformed(r#"{"cmd": "ls"#.to_owned()),
                signature: Some(Signature("eA==".to_owned())),
            }),
        ],
        stop_reason: StopReason::Length,
        raw_stop_reason: "max_tokens".to_owned(),
        usage: Usage {
            input_tokens: 1,
            output_tokens: 2,
            cache_read_tokens: Some(3),
            cache_write_tokens: Some(4),
        },
        model: Some("anthropic/claude".parse().unwrap()),
        timestamp: at("2026-02-18T12:00:01Z"),
    });
    save(&path, &session).unwrap();
    assert_eq!(load(&path).unwrap(), session);
    let first = std::fs::read(&path).unwrap();
    save(&path, &load(&path).unwrap()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), first);
}

proptest! {
    #[test]
    fn any_text_survives_a_session(prompt in ".*", body in ".*", secs in 0_i64..4_000_000_000) {
        let at = DateTime::from_timestamp(secs, 0).unwrap();
        let mut session = Session::new(SessionId::parse("s").unwrap(), prompt, at);
        session.push(UserMessage::text(body, at));
        let text = to_json(&session).unwrap();
        let back = parse(&text).unwrap();
        prop_assert_eq!(to_json(&back).unwrap(), text);
        prop_assert_eq!(back, session);
    }

    #[test]
    fn parsing_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(parse(&String::from_utf8_lossy(&bytes)));
    }
}
