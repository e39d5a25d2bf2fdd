//! What arrives at a task, and what goes out to other agents.

use antiphon_core::*;
use serde_json::{Value, json};

use super::{Specimen, boot_until, boot_until_data, interaction_id};
use crate::{UUID, at, ten};

/// Another one than [`UUID`].
const OTHER: &str = "00000000-0000-0000-0000-000000000007";

/// A request of a peer, with every field.
pub(super) fn queued() -> Specimen {
    let queued = MessageQueued {
        id: interaction_id(),
        mode: HandlingMode::Steer,
        from: bob(),
        content: InteractionContent::Request {
            intent: "review".to_owned(),
            params: json!({"pr": 42}),
        },
        class: PeerInputClass::SilentRequest,
        render_metadata: Some(RenderMetadata {
            class: RenderClass::PeerRequest,
            salience: Salience::Urgent,
        }),
        quiet: true,
        reply_to: Some(TaskId::parse("t2").unwrap()),
        until: Some(at("2026-02-18T12:10:00Z")),
        replaces: Some(other()),
        hops: 3,
        payload: Some(RawJson::parse(r#"{"build":7}"#).unwrap()),
        provenance: Provenance::Agent("bob".to_owned()),
        boot_until: Some(boot_until()),
    };
    let data = json!({
        "id": UUID, "mode": "steer", "from": "bob",
        "content": {"type": "request", "intent": "review", "params": {"pr": 42}},
        "class": "silent_request",
        "render_metadata": {"class": "peer_request", "salience": "urgent"},
        "quiet": true, "reply_to": "t2", "until": "2026-02-18T12:10:00Z", "boot_until": boot_until_data(),
        "replaces": OTHER, "hops": 3,
        "payload": {"build": 7}, "provenance": "agent:bob"
    });
    (queued.into(), "message_queued", data)
}

/// The user's own words, with nothing else.
pub(super) fn queued_by_the_user() -> Specimen {
    let said = UserMessage::text("hi", ten());
    let queued = MessageQueued::of_user(interaction_id(), HandlingMode::Queue, said);
    let content = json!({"type": "message", "body": "hi"});
    (queued.into(), "message_queued", json!({"id": UUID, "mode": "queue", "content": content}))
}

pub(super) fn of_each_content() -> Vec<Specimen> {
    let arrived = |from: &Sender, content, class, word, data: Value| {
        let mut json = json!({"id": UUID, "mode": "queue", "from": from.to_string()});
        json["content"] = data;
        if class != PeerInputClass::ActionableMessage {
            json["class"] = json!(word);
        }
        let said = UserMessage::text("", ten());
        let queued = MessageQueued::of_user(interaction_id(), HandlingMode::Queue, said);
        let queued = MessageQueued { from: from.clone(), content, class, ..queued };
        (queued.into(), "message_queued", json)
    };
    let image = ImageBlock::new("image/png", b"\x89PNG\r\n\x1a\n".to_vec()).unwrap();
    let blocks = Some(vec![InputBlock::text("look"), InputBlock::Image(image)]);
    let webhook = Sender::External(SourceName::parse("webhook").unwrap());
    let answer =
        |status| InteractionContent::Response { in_reply_to: other(), status, result: json!(null) };
    let answered = |word: &str| json!({"type": "response", "in_reply_to": OTHER, "status": word, "result": null});
    vec![
        arrived(
            &bob(),
            InteractionContent::Message { body: "look".to_owned(), blocks },
            PeerInputClass::ActionableMessage,
            "actionable_message",
            json!({"type": "message", "body": "look", "blocks": [
                {"type": "text", "text": "look"},
                {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo="}
            ]}),
        ),
        arrived(
            &webhook,
            InteractionContent::Request { intent: String::new(), params: json!(null) },
            PeerInputClass::PlainEvent,
            "plain_event",
            json!({"type": "request", "intent": "", "params": null}),
        ),
        arrived(
            &bob(),
            answer(ResponseStatus::Accepted),
            PeerInputClass::Response,
            "response",
            answered("accepted"),
        ),
        arrived(
            &bob(),
            answer(ResponseStatus::Failed),
            PeerInputClass::Response,
            "response",
            answered("failed"),
        ),
        arrived(
            &bob(),
            InteractionContent::Ack { in_reply_to: other() },
            PeerInputClass::Ack,
            "ack",
            json!({"type": "ack", "in_reply_to": OTHER}),
        ),
    ]
}

pub(super) fn request_sent() -> Specimen {
    let sent = RequestSent {
        tool_call_id: ToolCallId::parse("tc_1").unwrap(),
        id: interaction_id(),
        to: AgentName::parse("dev backend").unwrap(),
        intent: "review".to_owned(),
        params: json!({"pr": 42}),
        until: at("2026-02-18T12:10:00Z"),
        waits: true,
        boot_until: Some(boot_until()),
    };
    let data = json!({
        "tool_call_id": "tc_1", "id": UUID, "to": "dev backend", "intent": "review",
        "params": {"pr": 42}, "until": "2026-02-18T12:10:00Z", "boot_until": boot_until_data(), "waits": true
    });
    (sent.into(), "request_sent", data)
}

/// The call does not wait for the answer.
pub(super) fn request_sent_in_passing() -> Specimen {
    let sent = RequestSent {
        tool_call_id: ToolCallId::parse("tc_1").unwrap(),
        id: interaction_id(),
        to: AgentName::parse("bob").unwrap(),
        intent: "ping".to_owned(),
        params: Value::Null,
        until: at("2026-02-18T12:10:00Z"),
        waits: false,
        boot_until: None,
    };
    let data = json!({
        "tool_call_id": "tc_1", "id": UUID, "to": "bob", "intent": "ping",
        "until": "2026-02-18T12:10:00Z"
    });
    (sent.into(), "request_sent", data)
}

pub(super) fn replied() -> Specimen {
    let replied = Replied {
        in_reply_to: interaction_id(),
        to: bob(),
        reply_to: Some(TaskId::parse("t2").unwrap()),
        status: ResponseStatus::Completed,
        result: json!({"ok": true}),
    };
    let data = json!({
        "in_reply_to": UUID, "to": "bob", "reply_to": "t2", "status": "completed",
        "result": {"ok": true}
    });
    (replied.into(), "replied", data)
}

pub(super) fn replied_to_the_user() -> Specimen {
    let replied = Replied {
        in_reply_to: interaction_id(),
        to: Sender::User,
        reply_to: None,
        status: ResponseStatus::Accepted,
        result: Value::Null,
    };
    let data = json!({"in_reply_to": UUID, "to": "user", "status": "accepted"});
    (replied.into(), "replied", data)
}

fn bob() -> Sender {
    Sender::Peer(AgentName::parse("bob").unwrap())
}

fn other() -> InteractionId {
    OTHER.parse::<uuid::Uuid>().unwrap().into()
}
