//! Messages: what is read and written.

use antiphon_core::{
    AssistantBlock, AssistantMessage, ImageBlock, InputBlock, Message, ModelRef, OpaqueBlock,
    RawJson, Signature, StopReason, TextBlock, ThinkingBlock, ToolArguments, ToolCallBlock,
    ToolCallId, ToolResultMessage, Usage, UserMessage,
};
use serde_json::json;

use crate::{at, both_ways, read, written};

fn call(arguments: ToolArguments, signature: Option<&str>) -> ToolCallBlock {
    ToolCallBlock {
        id: ToolCallId::parse("tc_1").unwrap(),
        name: "read".to_owned(),
        arguments,
        signature: signature.map(|text| Signature(text.to_owned())),
    }
}

fn object(json: &str) -> ToolArguments {
    ToolArguments::Object(RawJson::parse(json).unwrap())
}

fn answer(content: Vec<AssistantBlock>) -> AssistantMessage {
    AssistantMessage {
        content,
        stop_reason: StopReason::ToolUse,
        raw_stop_reason: "tool_use".to_owned(),
        usage: Usage {
            input_tokens: 150,
            output_tokens: 42,
            cache_read_tokens: None,
            cache_write_tokens: None,
        },
        model: None,
        timestamp: at("2026-02-18T12:00:01Z"),
    }
}

/// The JSON of [`answer`] around one block.
fn answer_json(block: &str) -> String {
    format!(r#"{{"type":"assistant","content":[{block}],"stop_reason":"tool_use","#)
        + r#""raw_stop_reason":"tool_use","usage":{"input_tokens":150,"output_tokens":42},"#
        + r#""timestamp":"2026-02-18T12:00:01Z"}"#
}

#[test]
fn the_three_messages_of_a_session_have_the_documented_json() {
    let conversation = vec![
        Message::User(UserMessage::text("Fix the login bug", at("2026-02-18T12:00:00Z"))),
        Message::Assistant(answer(vec![
            AssistantBlock::text("I'll look at the auth module."),
            AssistantBlock::ToolCall(call(object(r#"{"path":"auth.go"}"#), None)),
        ])),
        Message::ToolResult(ToolResultMessage {
            tool_call_id: ToolCallId::parse("tc_1").unwrap(),
            tool_name: "read".to_owned(),
            content: vec![InputBlock::text("package auth\n...")],
            is_error: false,
            timestamp: at("2026-02-18T12:00:02Z"),
        }),
    ];
    let json = json!([
        {
            "type": "user",
            "content": [{"type": "text", "text": "Fix the login bug"}],
            "timestamp": "2026-02-18T12:00:00Z"
        },
        {
            "type": "assistant",
            "content": [
                {"type": "text", "text": "I'll look at the auth module."},
                {"type": "tool_call", "id": "tc_1", "name": "read",
                 "arguments": {"path": "auth.go"}}
            ],
            "stop_reason": "tool_use",
            "raw_stop_reason": "tool_use",
            "usage": {"input_tokens": 150, "output_tokens": 42},
            "timestamp": "2026-02-18T12:00:01Z"
        },
        {
            "type": "tool_result",
            "tool_call_id": "tc_1",
            "tool_name": "read",
            "content": [{"type": "text", "text": "package auth\n..."}],
            "is_error": false,
            "timestamp": "2026-02-18T12:00:02Z"
        }
    ]);
    both_ways(&conversation, &json);
}

#[test]
fn an_answer_is_written_with_what_is_known_of_it() {
    let full = AssistantMessage {
        usage: Usage {
            input_tokens: 1,
            output_tokens: 2,
            cache_read_tokens: Some(3),
            cache_write_tokens: Some(0),
        },
        model: Some(ModelRef::parse("anthropic/claude-sonnet-4-5").unwrap()),
        ..answer(vec![])
    };
    both_ways(
        &Message::Assistant(full),
        &json!({
            "type": "assistant",
            "content": [],
            "stop_reason": "tool_use",
            "raw_stop_reason": "tool_use",
            "usage": {
                "input_tokens": 1, "output_tokens": 2,
                "cache_read_tokens": 3, "cache_write_tokens": 0
            },
            "model": "anthropic/claude-sonnet-4-5",
            "timestamp": "2026-02-18T12:00:01Z"
        }),
    );
}

#[test]
fn an_answer_needs_no_usage_and_no_word_of_its_provider() {
    let json = r#"{"type":"assistant","content":[],"stop_reason":"end_turn",
        "timestamp":"2026-02-18T12:00:01Z"}"#;
    let bare = Message::Assistant(AssistantMessage {
        stop_reason: StopReason::EndTurn,
        raw_stop_reason: String::new(),
        usage: Usage::default(),
        ..answer(vec![])
    });
    assert_eq!(read::<Message>(json), bare);
    assert_eq!(
        written(&bare),
        json!({
            "type": "assistant",
            "content": [],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 0, "output_tokens": 0},
            "timestamp": "2026-02-18T12:00:01Z"
        })
    );
}

#[test]
fn each_block_of_an_answer_has_its_json() {
    let table = [
        (AssistantBlock::text("hi"), r#"{"type":"text","text":"hi"}"#),
        (
            AssistantBlock::Thinking(ThinkingBlock { thinking: "hm".to_owned(), signature: None }),
            r#"{"type":"thinking","thinking":"hm"}"#,
        ),
        (
            AssistantBlock::Thinking(ThinkingBlock {
                thinking: String::new(),
                signature: Some(Signature("c2ln".to_owned())),
            }),
            r#"{"type":"thinking","thinking":"","signature":"c2ln"}"#,
        ),
        (
            AssistantBlock::ToolCall(call(object(r#"{"b":1.0,"a":1e2,"a":[ ]}"#), Some("c2ln"))),
            r#"{"type":"tool_call","id":"tc_1","name":"read","arguments":{"b":1.0,"a":1e2,"a":[ ]},"signature":"c2ln"}"#,
        ),
        (
            AssistantBlock::ToolCall(call(ToolArguments::Malformed(r#"{"pa"#.to_owned()), None)),
            r#"{"type":"tool_call","id":"tc_1","name":"read","arguments":"{\"pa"}"#,
        ),
        (
            AssistantBlock::Opaque(OpaqueBlock {
                kind: "redacted_thinking".to_owned(),
                value: RawJson::parse(r#"{"data":"xyz"}"#).unwrap(),
            }),
            r#"{"type":"thinking","thinking":"","opaque":{"kind":"redacted_thinking","value":{"data":"xyz"}}}"#,
        ),
    ];
    for (block, json) in table {
        let message = Message::Assistant(answer(vec![block]));
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(text, answer_json(json));
        assert_eq!(read::<Message>(&text), message);
    }
}

#[test]
fn a_picture_is_base64_with_its_type() {
    let png = ImageBlock::new("image/png", b"\x89PNG\r\n\x1a\n".to_vec()).unwrap();
    both_ways(
        &Message::User(UserMessage {
            content: vec![InputBlock::Image(png.clone())],
            timestamp: at("2026-02-18T12:00:00Z"),
        }),
        &json!({
            "type": "user",
            "content": [{"type": "image", "data": "iVBORw0KGgo=", "mime_type": "image/png"}],
            "timestamp": "2026-02-18T12:00:00Z"
        }),
    );
    assert_eq!(png.mime_type(), "image/png");
    assert_eq!(png.data(), b"\x89PNG\r\n\x1a\n");
    assert_eq!(format!("{png:?}"), "ImageBlock(image/png, 8 bytes)");
}

#[test]
fn a_result_that_does_not_say_so_is_no_error() {
    let json = r#"{"type":"tool_result","tool_call_id":"tc_1","tool_name":"read","content":[],
        "timestamp":"2026-02-18T12:00:02Z"}"#;
    assert_eq!(
        read::<Message>(json),
        Message::ToolResult(ToolResultMessage {
            tool_call_id: ToolCallId::parse("tc_1").unwrap(),
            tool_name: "read".to_owned(),
            content: vec![],
            is_error: false,
            timestamp: at("2026-02-18T12:00:02Z"),
        })
    );
}

#[test]
fn unknown_fields_of_messages_and_blocks_are_ignored() {
    let json = r#"{"type":"user","mood":{"a":[1]},"stop_reason":null,
        "content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}],
        "timestamp":"2026-02-18T12:00:00Z"}"#;
    assert_eq!(
        read::<Message>(json),
        Message::User(UserMessage::text("hi", at("2026-02-18T12:00:00Z")))
    );
}

#[test]
fn a_user_message_alone_may_leave_its_type_out() {
    let message = UserMessage::text("hi", at("2026-02-18T12:00:00Z"));
    let json = json!({
        "type": "user",
        "content": [{"type": "text", "text": "hi"}],
        "timestamp": "2026-02-18T12:00:00Z"
    });
    both_ways(&message, &json);
    let mut untyped = json;
    untyped.as_object_mut().unwrap().remove("type");
    assert_eq!(read::<UserMessage>(&untyped.to_string()), message);
}

#[test]
fn an_answer_gives_its_text_and_its_calls() {
    let (first, second) = (
        call(object("{}"), None),
        ToolCallBlock {
            id: ToolCallId::parse("tc_2").unwrap(),
            ..call(ToolArguments::Malformed("[".to_owned()), None)
        },
    );
    let message = answer(vec![
        AssistantBlock::text("a"),
        AssistantBlock::ToolCall(first.clone()),
        AssistantBlock::Thinking(ThinkingBlock { thinking: "hm".to_owned(), signature: None }),
        AssistantBlock::Text(TextBlock { text: "b".to_owned() }),
        AssistantBlock::ToolCall(second.clone()),
    ]);
    assert_eq!(message.text(), "ab");
    assert_eq!(message.tool_calls().collect::<Vec<_>>(), [&first, &second]);
    assert_eq!(first.arguments.object(), Some(&RawJson::empty_object()));
    assert_eq!(second.arguments.object(), None);
    assert_eq!(Message::from(message).timestamp(), at("2026-02-18T12:00:01Z"));
}

#[test]
fn what_a_model_wrote_as_arguments_is_an_object_or_malformed() {
    for (text, expected) in [
        ("", object("{}")),
        (" \n", object("{}")),
        (r#" {"a" : 1} "#, object(r#"{"a" : 1}"#)),
        ("{\"a\":", ToolArguments::Malformed("{\"a\":".to_owned())),
        ("[1]", ToolArguments::Malformed("[1]".to_owned())),
        ("null", ToolArguments::Malformed("null".to_owned())),
        ("{} {}", ToolArguments::Malformed("{} {}".to_owned())),
    ] {
        assert_eq!(ToolArguments::from_model(text.to_owned()), expected, "{text:?}");
    }
}

#[test]
fn a_message_is_written_on_one_line() {
    let spread = call(ToolArguments::from_model("{\n  \"path\": \"a\"\r\n}".to_owned()), None);
    let message = Message::Assistant(answer(vec![AssistantBlock::ToolCall(spread)]));
    let text = serde_json::to_string(&message).unwrap();
    assert!(!text.contains(['\n', '\r']), "{text}");
}
