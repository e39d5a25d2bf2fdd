//! Interactions: their JSON.

use antiphon_core::{
    AgentName, HandlingMode, ImageBlock, InboxInteraction, InputBlock, Interaction,
    InteractionContent, InteractionId, NameError, RenderClass, RenderMetadata, ResponseStatus,
    Salience, Sender, SilentIntents, SourceName,
};
use serde_json::json;

use crate::{UUID, both_ways, read, refusal, written};

fn id() -> InteractionId {
    UUID.parse::<uuid::Uuid>().unwrap().into()
}

fn message(body: &str, blocks: Option<Vec<InputBlock>>) -> InteractionContent {
    InteractionContent::Message { body: body.to_owned(), blocks }
}

#[test]
fn a_message_without_blocks_has_no_such_field() {
    both_ways(&message("hello", None), &json!({"type": "message", "body": "hello"}));
    assert_eq!(
        read::<InteractionContent>(r#"{"type":"message","body":"hello","blocks":null}"#),
        message("hello", None)
    );
}

#[test]
fn a_message_with_blocks_has_them_as_peers_write_them() {
    let png = ImageBlock::new("image/png", b"\x89PNG\r\n\x1a\n".to_vec()).unwrap();
    both_ways(
        &message("hello", Some(vec![InputBlock::text("hello"), InputBlock::Image(png)])),
        &json!({
            "type": "message",
            "body": "hello",
            "blocks": [
                {"type": "text", "text": "hello"},
                {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo="}
            ]
        }),
    );
    // An empty list is read, and not written.
    let none = json!({"type": "message", "body": "", "blocks": []});
    assert_eq!(read::<InteractionContent>(&none.to_string()), message("", Some(vec![])));
    assert_eq!(json!(message("", Some(vec![]))), json!({"type": "message", "body": ""}));
}

#[test]
fn a_picture_of_a_peer_may_also_be_written_as_in_a_session_file() {
    let png = ImageBlock::new("image/png", b"\x89PNG\r\n\x1a\n".to_vec()).unwrap();
    assert_eq!(
        read::<InteractionContent>(
            r#"{"type":"message","body":"","blocks":
                [{"type":"image","mime_type":"image/png","data":"iVBORw0KGgo="}]}"#
        ),
        message("", Some(vec![InputBlock::Image(png)]))
    );
}

#[test]
fn a_request_has_an_intent_and_params() {
    let review =
        InteractionContent::Request { intent: "review".to_owned(), params: json!({"pr": 42}) };
    both_ways(&review, &json!({"type": "request", "intent": "review", "params": {"pr": 42}}));
    assert_eq!(
        read::<InteractionContent>(r#"{"type":"request","intent":"review"}"#),
        InteractionContent::Request { intent: "review".to_owned(), params: json!(null) }
    );
}

#[test]
fn a_response_names_its_request_and_says_how_far_it_got() {
    for (status, word) in [
        (ResponseStatus::Accepted, "accepted"),
        (ResponseStatus::Completed, "completed"),
        (ResponseStatus::Failed, "failed"),
    ] {
        both_ways(
            &InteractionContent::Response {
                in_reply_to: id(),
                status,
                result: json!({"ok": true}),
            },
            &json!({
                "type": "response", "in_reply_to": UUID, "status": word, "result": {"ok": true}
            }),
        );
    }
}

#[test]
fn an_ack_names_what_arrived() {
    both_ways(
        &InteractionContent::Ack { in_reply_to: id() },
        &json!({"type": "ack", "in_reply_to": UUID}),
    );
}

#[test]
fn a_content_without_a_required_field_is_refused_by_its_name() {
    for (json, field) in [
        (json!({"type": "message"}), "body"),
        (json!({"type": "request", "params": {}}), "intent"),
        (json!({"type": "response", "status": "failed"}), "in_reply_to"),
        (json!({"type": "response", "in_reply_to": UUID}), "status"),
        (json!({"type": "ack"}), "in_reply_to"),
    ] {
        assert_eq!(refusal::<InteractionContent>(json), format!("missing field `{field}`"));
    }
}

#[test]
fn a_block_a_peer_may_not_send_is_refused_with_its_place() {
    for (block, reason) in [
        (
            json!({"type": "thinking", "thinking": "hm"}),
            "content[0]: a `user` message cannot hold a `thinking` block",
        ),
        (
            json!({"type": "tool_call", "id": "x", "name": "read"}),
            "content[0]: a `user` message cannot hold a `tool_call` block",
        ),
        (
            json!({"type": "video"}),
            "content[0]: unknown block type `video`, expected one of `text`, `thinking`, \
             `image`, `tool_call`",
        ),
    ] {
        let json = json!({"type": "message", "body": "", "blocks": [block]});
        assert_eq!(refusal::<InteractionContent>(json), reason);
    }
}

#[test]
fn a_tool_call_of_a_peer_is_refused_for_what_it_is_even_with_arguments() {
    let call = json!({"type": "tool_call", "id": "x", "name": "read", "arguments": {}});
    let json = json!({"type": "message", "body": "", "blocks": [call]});
    assert_eq!(
        refusal::<InteractionContent>(json),
        "content[0]: a `user` message cannot hold a `tool_call` block"
    );
    let odd = json!({"type": "message", "body": "", "blocks":
        [{"type": "text", "text": "hi", "arguments": {"an": "unknown field of this block"}}]});
    assert_eq!(
        read::<InteractionContent>(&odd.to_string()),
        message("", Some(vec![InputBlock::text("hi")]))
    );
}

#[test]
fn an_interaction_needs_an_id_a_sender_and_content() {
    let bare = Interaction {
        id: id(),
        from: Sender::Peer(AgentName::parse("bob").unwrap()),
        content: message("hello", None),
        handling_mode: HandlingMode::Queue,
        render_metadata: None,
    };
    both_ways(
        &bare,
        &json!({
            "id": UUID,
            "from": "bob",
            "content": {"type": "message", "body": "hello"},
            "handling_mode": "queue"
        }),
    );
    assert_eq!(
        read::<Interaction>(&format!(
            r#"{{"id":"{UUID}","from":"bob","content":{{"type":"message","body":"hello","x":1}},
                "rendered_text":"ignored","render_metadata":null}}"#
        )),
        bare
    );
}

#[test]
fn an_interaction_keeps_its_hints_on_the_way_into_the_inbox() {
    let webhook = Interaction {
        id: id(),
        from: Sender::External(SourceName::parse("webhook").unwrap()),
        content: message("hello", None),
        handling_mode: HandlingMode::Steer,
        render_metadata: Some(RenderMetadata {
            class: RenderClass::SystemNotice,
            salience: Salience::Urgent,
        }),
    };
    let json = json!({
        "id": UUID,
        "from": "event:webhook",
        "content": {"type": "message", "body": "hello"},
        "handling_mode": "steer",
        "render_metadata": {"class": "system_notice", "salience": "urgent"}
    });
    both_ways(&webhook, &json);

    let inbox = InboxInteraction::from(webhook.clone());
    assert_eq!(
        inbox,
        InboxInteraction {
            id: webhook.id,
            from: webhook.from,
            content: webhook.content,
            rendered_text: "[EVENT via webhook] hello".to_owned(),
            handling_mode: HandlingMode::Steer,
            render_metadata: webhook.render_metadata,
        }
    );
    let mut expected = json;
    expected["rendered_text"] = json!("[EVENT via webhook] hello");
    assert_eq!(written(&inbox), expected);
    let plain = InboxInteraction { render_metadata: None, ..inbox };
    assert_eq!(written(&plain).get("render_metadata"), None);
}

#[test]
fn a_sender_is_one_string() {
    for (sender, text) in [
        (Sender::User, "user"),
        (Sender::Peer(AgentName::parse("dev backend").unwrap()), "dev backend"),
        (Sender::External(SourceName::parse("stdin").unwrap()), "event:stdin"),
        (Sender::External(SourceName::parse("user").unwrap()), "event:user"),
    ] {
        assert_eq!(sender.to_string(), text);
        assert_eq!(Sender::parse(text), Ok(sender.clone()));
        both_ways(&sender, &json!(text));
    }
}

#[test]
fn no_other_sender_can_be_the_user_or_the_system() {
    for text in ["User", "user ", "USER", "system", "System"] {
        assert_eq!(Sender::parse(text), Err(NameError::Reserved { name: text.trim().to_owned() }));
    }
    assert_eq!(Sender::parse("event:"), Err(NameError::Blank));
    assert_eq!(Sender::parse(""), Err(NameError::Blank));
    assert_eq!(
        refusal::<Sender>(json!("EVENT:x")),
        "a name may hold letters, digits, spaces and `_ - .`, not ':'"
    );
}

#[test]
fn silent_intents_are_a_list_of_words_compared_whole() {
    let silent: SilentIntents = ["status", "ping"].into_iter().collect();
    both_ways(&silent, &json!(["ping", "status"]));
    assert!(silent.contains("ping"));
    for other in ["Ping", "ping ", "pin", "pinging", ""] {
        assert!(!silent.contains(other));
    }
    assert_eq!(SilentIntents::default(), read("[]"));
}
