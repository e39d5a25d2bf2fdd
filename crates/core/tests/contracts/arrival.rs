//! What waits in an inbox: what the model reads of it, and what it is to others.

use antiphon_core::{
    AgentName, HandlingMode, ImageBlock, InputBlock, InteractionContent, InteractionId,
    MessageQueued, PeerInputClass, Provenance, RenderClass, RenderMetadata, ResponseStatus,
    Salience, Sender, SourceName, UserMessage,
};
use serde_json::json;

use crate::{UUID, at, ten};

fn id(n: u128) -> InteractionId {
    uuid::Uuid::from_u128(n).into()
}

fn bob() -> Sender {
    Sender::Peer(AgentName::parse("bob").unwrap())
}

fn webhook() -> Sender {
    Sender::External(SourceName::parse("webhook").unwrap())
}

fn image() -> InputBlock {
    InputBlock::Image(ImageBlock::new("image/png", b"\x89PNG\r\n\x1a\n".to_vec()).unwrap())
}

fn hello() -> MessageQueued {
    MessageQueued::of_user(id(1), HandlingMode::Queue, UserMessage::text("hello", ten()))
}

fn message(body: &str, blocks: Option<Vec<InputBlock>>) -> InteractionContent {
    InteractionContent::Message { body: body.to_owned(), blocks }
}

fn response(status: ResponseStatus) -> InteractionContent {
    InteractionContent::Response { in_reply_to: id(7), status, result: json!("x") }
}

#[test]
fn the_words_of_the_user_are_queued_as_they_are() {
    let expected = MessageQueued {
        id: id(1),
        mode: HandlingMode::Queue,
        from: Sender::User,
        content: message("hello", None),
        class: PeerInputClass::ActionableMessage,
        render_metadata: None,
        quiet: false,
        reply_to: None,
        until: None,
        replaces: None,
        hops: 0,
        payload: None,
        provenance: Provenance::Unknown,
        boot_until: None,
    };
    assert_eq!(hello(), expected);
}

#[test]
fn a_message_of_the_user_is_its_text_and_keeps_its_blocks_if_there_is_more() {
    let text = InputBlock::text;
    for (content, expected) in [
        (vec![], message("", None)),
        (vec![text("a")], message("a", None)),
        (vec![text("a"), text("b")], message("a\nb", None)),
        (vec![image()], message("", Some(vec![image()]))),
        (
            vec![text("a"), image(), text("b")],
            message("a\nb", Some(vec![text("a"), image(), text("b")])),
        ),
    ] {
        assert_eq!(InteractionContent::from(UserMessage { content, timestamp: ten() }), expected);
    }
}

#[test]
fn the_model_reads_an_arrival_with_its_label_and_its_pictures() {
    let later = at("2026-02-18T12:00:00Z");
    let blocks =
        Some(vec![image(), InputBlock::text("and this"), InputBlock::text("look"), image()]);
    let urgent = RenderMetadata { class: RenderClass::PeerMessage, salience: Salience::Urgent };
    for (from, content, text, pictures) in [
        (Sender::User, message("hello", None), "hello", 0),
        (Sender::User, message("hi\u{E0041}\u{200B}\u{202E}", None), "hi", 0),
        (bob(), message("look", blocks.clone()), "[MESSAGE from bob, urgent] look\nand this", 2),
        (webhook(), message("look", blocks), "[EVENT via webhook] look\nand this", 2),
        (webhook(), response(ResponseStatus::Failed), "[EVENT via webhook]", 0),
        (
            bob(),
            InteractionContent::Request {
                intent: "mob.peer_added".to_owned(),
                params: json!({"peer": "al\u{200D}ice"}),
            },
            r#"[PEER bob: mob.peer_added, urgent] {"peer":"alice"}"#,
            0,
        ),
        (
            bob(),
            InteractionContent::Request { intent: "review".to_owned(), params: json!(null) },
            "[REQUEST ID from bob: review, urgent]",
            0,
        ),
    ] {
        let id = UUID.parse::<uuid::Uuid>().unwrap().into();
        let queued = MessageQueued { id, from, content, render_metadata: Some(urgent), ..hello() };
        let text = InputBlock::text(text.replace("ID", UUID));
        let images = (0..pictures).map(|_| image());
        let expected =
            UserMessage { content: [text].into_iter().chain(images).collect(), timestamp: later };
        assert_eq!(queued.user_message(later), expected);
    }
}

#[test]
fn only_a_final_response_of_a_known_sender_settles_its_request() {
    use ResponseStatus::{Accepted, Completed, Failed};
    let (known, stranger) = (PeerInputClass::Response, PeerInputClass::PlainEvent);
    let request = InteractionContent::Request { intent: "x".to_owned(), params: json!(null) };
    for (content, class, settled) in [
        (response(Accepted), known, None),
        (response(Completed), known, Some(id(7))),
        (response(Failed), known, Some(id(7))),
        (response(Completed), stranger, None),
        (response(Failed), stranger, None),
        (message("done", None), PeerInputClass::ActionableMessage, None),
        (request, PeerInputClass::ActionableRequest, None),
        (InteractionContent::Ack { in_reply_to: id(7) }, PeerInputClass::Ack, None),
    ] {
        let queued = MessageQueued { content, class, ..hello() };
        assert_eq!(queued.final_answer_to(), settled, "{queued:?}");
    }
    assert_eq!(
        [Accepted, Completed, Failed].map(|status| (status.is_final(), status.as_str())),
        [(false, "accepted"), (true, "completed"), (true, "failed")]
    );
}

#[test]
fn a_quiet_request_does_not_wake_and_is_still_answered() {
    let asked = MessageQueued { class: PeerInputClass::ActionableRequest, ..hello() };
    assert_eq!((asked.wakes(), asked.expects_answer()), (true, true));
    let quiet = MessageQueued { quiet: true, ..asked };
    assert_eq!((quiet.wakes(), quiet.expects_answer()), (false, true));
}

#[test]
fn only_the_progress_of_something_in_the_background_becomes_old_news() {
    use RenderClass::{OpsProgress, SystemNotice};
    use Salience::{Background, Important, Normal, Urgent};
    let shown = |class, salience| Some(RenderMetadata { class, salience });
    for (render_metadata, salience, progress) in [
        (None, Normal, false),
        (shown(OpsProgress, Background), Background, true),
        (shown(OpsProgress, Normal), Normal, false),
        (shown(OpsProgress, Important), Important, false),
        (shown(OpsProgress, Urgent), Urgent, false),
        (shown(SystemNotice, Background), Background, false),
    ] {
        let queued = MessageQueued { render_metadata, ..hello() };
        assert_eq!((queued.salience(), queued.is_progress()), (salience, progress));
    }
}
