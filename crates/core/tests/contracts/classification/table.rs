//! The contract's table, written down once more and held against every combination of content,
//! sender, silent set, mode and hint.

use antiphon_core::{
    HandlingMode, Interaction, InteractionContent, MessageQueued, PeerInputClass, Provenance,
    RenderClass, RenderMetadata, ResponseStatus, Salience, Sender, SilentIntents, classify,
};
use serde_json::json;

use super::{bob, id, webhook};

/// What is sent: a content, or a request with this intent.
const MESSAGE: &str = "a message";
const ACCEPTED: &str = "accepted";
const COMPLETED: &str = "completed";
const FAILED: &str = "failed";
const ACK: &str = "an ack";

/// What is sent; its class from a peer, the same when all intents are silent, and from
/// an external source.
const TABLE: [(&str, &str, &str, &str); 13] = [
    (MESSAGE, "actionable_message", "actionable_message", "plain_event"),
    (ACCEPTED, "response", "response", "plain_event"),
    (COMPLETED, "response", "response", "plain_event"),
    (FAILED, "response", "response", "plain_event"),
    (ACK, "ack", "ack", "ack"),
    ("mob.peer_added", "peer_lifecycle_added", "peer_lifecycle_added", "plain_event"),
    ("mob.peer_retired", "peer_lifecycle_retired", "peer_lifecycle_retired", "plain_event"),
    ("mob.peer_unwired", "peer_lifecycle_unwired", "peer_lifecycle_unwired", "plain_event"),
    (
        "mob.kickoff_failed",
        "peer_lifecycle_kickoff_failed",
        "peer_lifecycle_kickoff_failed",
        "plain_event",
    ),
    (
        "mob.kickoff_cancelled",
        "peer_lifecycle_kickoff_cancelled",
        "peer_lifecycle_kickoff_cancelled",
        "plain_event",
    ),
    ("review", "actionable_request", "silent_request", "plain_event"),
    ("mob.peer_exploded", "actionable_request", "silent_request", "plain_event"),
    ("", "actionable_request", "silent_request", "plain_event"),
];

/// The classes that wake an agent, and those whose sender waits for an answer.
const WAKE: [&str; 6] = [
    "actionable_message",
    "actionable_request",
    "response",
    "peer_lifecycle_kickoff_failed",
    "peer_lifecycle_kickoff_cancelled",
    "plain_event",
];
const OWED: [&str; 2] = ["actionable_request", "silent_request"];

fn content(what: &str) -> InteractionContent {
    let response =
        |status| InteractionContent::Response { in_reply_to: id(), status, result: json!(null) };
    match what {
        // Its words do not make it anything else.
        MESSAGE => InteractionContent::Message { body: "mob.peer_added".to_owned(), blocks: None },
        ACCEPTED => response(ResponseStatus::Accepted),
        COMPLETED => response(ResponseStatus::Completed),
        FAILED => response(ResponseStatus::Failed),
        ACK => InteractionContent::Ack { in_reply_to: id() },
        intent => InteractionContent::Request { intent: intent.to_owned(), params: json!({}) },
    }
}

/// With whether all intents of the table, or none of them, are silent.
fn silent_sets(what: &str) -> [(SilentIntents, bool); 4] {
    let all = || TABLE.iter().map(|(what, ..)| *what);
    [
        (SilentIntents::default(), false),
        (all().filter(|other| *other != what).collect(), false),
        ([what].into_iter().collect(), true),
        (all().collect(), true),
    ]
}

/// How it is to be shown, and when it may be read: nothing of that changes what it is.
fn hints() -> [(HandlingMode, Option<RenderMetadata>); 4] {
    let urgent =
        Some(RenderMetadata { class: RenderClass::SystemNotice, salience: Salience::Urgent });
    [
        (HandlingMode::Queue, None),
        (HandlingMode::Steer, None),
        (HandlingMode::Queue, urgent),
        (HandlingMode::Steer, urgent),
    ]
}

#[test]
fn the_table_holds_for_every_content_sender_silent_set_and_hint() {
    let mut held = 0;
    for (what, known, when_silent, of_a_stranger) in TABLE {
        for (silent, is_silent) in silent_sets(what) {
            let known = if is_silent { when_silent } else { known };
            let senders = [(Sender::User, known), (bob(), known), (webhook(), of_a_stranger)];
            for (from, class) in senders {
                for (handling_mode, render_metadata) in hints() {
                    let (id, from, content) = (id(), from.clone(), content(what));
                    let interaction =
                        Interaction { id, from, content, handling_mode, render_metadata };
                    holds(interaction, &silent, class);
                    held += 1;
                }
            }
        }
    }
    assert_eq!(held, 13 * 4 * 3 * 4);
}

/// Asserts the class, and that what waits in the inbox is the same interaction.
#[track_caller]
fn holds(interaction: Interaction, silent: &SilentIntents, class: &str) {
    let candidate = classify(interaction.clone(), silent);
    let class_found: PeerInputClass = serde_json::from_value(json!(class)).unwrap();
    assert_eq!(candidate.class, class_found, "{interaction:?}");
    let lifecycle = class.starts_with("peer_lifecycle");
    assert_eq!(candidate.lifecycle_peer, lifecycle.then(|| interaction.from.to_string()));

    let queued = MessageQueued::of(candidate);
    let quiet = MessageQueued { quiet: true, ..queued.clone() };
    let expected = MessageQueued {
        id: interaction.id,
        mode: interaction.handling_mode,
        from: interaction.from,
        content: interaction.content,
        class: class_found,
        render_metadata: interaction.render_metadata,
        quiet: false,
        reply_to: None,
        until: None,
        replaces: None,
        hops: 0,
        payload: None,
        provenance: Provenance::Unknown,
        boot_until: None,
    };
    assert_eq!(queued, expected);
    assert_eq!((queued.wakes(), quiet.wakes()), (WAKE.contains(&class), false), "{class}");
    assert_eq!(queued.expects_answer(), OWED.contains(&class), "{class}");
}
