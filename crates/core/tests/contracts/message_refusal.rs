//! Messages: what is refused, and the error.

use antiphon_core::{IMAGE_BYTES_MAX, ImageBlock, Message, MessageError, UserMessage};
use serde_json::{Value, json};

use crate::refusal;

const TIME: &str = "2026-02-18T12:00:00Z";

fn user(block: &Value) -> Value {
    json!({"type": "user", "content": [{"type": "text", "text": "hi"}, block], "timestamp": TIME})
}

fn result(block: &Value) -> Value {
    json!({"type": "tool_result", "tool_call_id": "c", "tool_name": "t", "content": [block],
           "timestamp": TIME})
}

fn answer(block: &Value) -> Value {
    json!({"type": "assistant", "content": [block], "stop_reason": "end_turn", "timestamp": TIME})
}

/// Asserts the error of each message.
#[track_caller]
fn said<const N: usize>(table: [(Value, &str); N]) {
    for (json, message) in table {
        assert_eq!(refusal::<Message>(json.clone()), message, "{json}");
    }
}

#[test]
fn an_unknown_message_type_is_refused_with_the_types_there_are() {
    for kind in ["system", "User", "", "tool"] {
        assert_eq!(
            refusal::<Message>(json!({"type": kind, "content": [], "timestamp": TIME})),
            format!(
                "unknown message type `{kind}`, expected one of `user`, `assistant`, `tool_result`"
            )
        );
    }
}

#[test]
fn an_unknown_block_type_is_refused_with_its_place_and_the_types_there_are() {
    let block = || json!({"type": "video", "url": "x"});
    let rest = "unknown block type `video`, expected one of `text`, `thinking`, `image`, \
                `tool_call`";
    said([
        (user(&block()), &format!("content[1]: {rest}")),
        (result(&block()), &format!("content[0]: {rest}")),
        (answer(&block()), &format!("content[0]: {rest}")),
    ]);
}

#[test]
fn a_message_holds_the_blocks_of_its_role_only() {
    let thinking = || json!({"type": "thinking", "thinking": "hm"});
    let call = || json!({"type": "tool_call", "id": "c", "name": "t", "arguments": {}});
    let image = || json!({"type": "image", "data": "AAAA", "mime_type": "image/png"});
    said([
        (user(&thinking()), "content[1]: a `user` message cannot hold a `thinking` block"),
        (user(&call()), "content[1]: a `user` message cannot hold a `tool_call` block"),
        (result(&thinking()), "content[0]: a `tool_result` message cannot hold a `thinking` block"),
        (result(&call()), "content[0]: a `tool_result` message cannot hold a `tool_call` block"),
        (answer(&image()), "content[0]: a `assistant` message cannot hold a `image` block"),
    ]);
}

#[test]
fn a_missing_field_of_a_message_is_named() {
    said([
        (json!({"content": [], "timestamp": TIME}), "missing field `type`"),
        (json!({"type": "user", "timestamp": TIME}), "missing field `content`"),
        (json!({"type": "user", "content": []}), "missing field `timestamp`"),
        (
            json!({"type": "assistant", "content": [], "timestamp": TIME}),
            "missing field `stop_reason`",
        ),
        (
            json!({"type": "tool_result", "tool_name": "t", "content": [], "timestamp": TIME}),
            "missing field `tool_call_id`",
        ),
        (
            json!({"type": "tool_result", "tool_call_id": "c", "content": [], "timestamp": TIME}),
            "missing field `tool_name`",
        ),
    ]);
}

#[test]
fn a_missing_field_of_a_block_is_named_with_its_place() {
    said([
        (user(&json!({})), "missing field `type`"),
        (user(&json!({"type": "text"})), "content[1]: missing field `text`"),
        (
            user(&json!({"type": "image", "mime_type": "image/png"})),
            "content[1]: missing field `data`",
        ),
        (user(&json!({"type": "image", "data": "AAAA"})), "content[1]: missing field `mime_type`"),
        (answer(&json!({"type": "thinking"})), "content[0]: missing field `thinking`"),
        (
            answer(&json!({"type": "tool_call", "name": "t", "arguments": {}})),
            "content[0]: missing field `id`",
        ),
        (
            answer(&json!({"type": "tool_call", "id": "c", "arguments": {}})),
            "content[0]: missing field `name`",
        ),
        (
            answer(&json!({"type": "tool_call", "id": "c", "name": "t"})),
            "content[0]: missing field `arguments`",
        ),
    ]);
}

#[test]
fn arguments_that_are_neither_object_nor_text_are_refused() {
    for arguments in [json!([1]), json!(7), json!(true), json!(1.5)] {
        let call = json!({"type": "tool_call", "id": "c", "name": "t", "arguments": arguments});
        assert_eq!(
            refusal::<Message>(answer(&call)),
            "content[0]: `arguments` must be a JSON object"
        );
    }
}

#[test]
fn an_unknown_stop_reason_is_refused_with_the_reasons_there_are() {
    let json = json!({"type": "assistant", "content": [], "stop_reason": "stop",
                      "timestamp": TIME});
    assert_eq!(
        refusal::<Message>(json),
        "unknown variant `stop`, expected one of `end_turn`, `length`, `tool_use`, `error`, \
         `aborted`, `unknown`"
    );
}

#[test]
fn what_is_no_picture_is_refused() {
    for (data, mime, reason) in [
        ("AAAA", "text/html", "`text/html` is not an image type such as `image/png`"),
        ("AAAA", "image/", "`image/` is not an image type such as `image/png`"),
        ("AAAA", "image/png; x=y", "`image/png; x=y` is not an image type such as `image/png`"),
        ("AAAA", "IMAGE/PNG", "`IMAGE/PNG` is not an image type such as `image/png`"),
        ("", "image/png", "an image must not be empty"),
        ("@@@@", "image/png", "`data` is not base64: Invalid symbol 64, offset 0."),
        ("AAA", "image/png", "`data` is not base64: Invalid padding"),
    ] {
        let json = user(&json!({"type": "image", "data": data, "mime_type": mime}));
        let said = refusal::<Message>(json);
        assert!(said.ends_with(reason), "{said}");
    }
}

#[test]
fn a_picture_made_in_the_program_keeps_the_same_rules() {
    assert_eq!(
        ImageBlock::new("image/svg+xml", vec![1]).map(|image| image.mime_type().to_owned()),
        Ok("image/svg+xml".to_owned())
    );
    assert_eq!(
        ImageBlock::new("video/mp4", vec![1]),
        Err(MessageError::ImageType { found: "video/mp4".to_owned() })
    );
    assert_eq!(ImageBlock::new("image/png", vec![]), Err(MessageError::ImageEmpty));
    assert_eq!(
        ImageBlock::new("image/png", vec![0; IMAGE_BYTES_MAX + 1]),
        Err(MessageError::ImageTooLarge { bytes: IMAGE_BYTES_MAX + 1 })
    );
    assert!(ImageBlock::new("image/png", vec![0; IMAGE_BYTES_MAX]).is_ok());
    assert_eq!(
        MessageError::ImageTooLarge { bytes: IMAGE_BYTES_MAX + 1 }.to_string(),
        "an image may have 3932160 bytes at most, this one has 3932161"
    );
}

#[test]
fn a_user_message_of_another_type_is_not_told_that_the_type_is_allowed() {
    let json = json!({"type": "assistant", "content": [], "timestamp": TIME});
    let said = refusal::<UserMessage>(json);
    let (_, expected) = said.split_once("expected").unwrap();
    assert!(!expected.contains("`assistant`"), "{said}");
}

#[test]
fn a_refused_picture_is_refused_with_its_place() {
    let json = user(&json!({"type": "image", "data": "", "mime_type": "image/png"}));
    assert_eq!(refusal::<Message>(json), "content[1]: an image must not be empty");
}
