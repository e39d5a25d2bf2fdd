//! The classification table, over every content, sender, intent and silent set.

mod table;

use antiphon_core::PeerInputClass::{
    self, Ack, ActionableMessage, ActionableRequest, PeerLifecycleAdded,
    PeerLifecycleKickoffCancelled, PeerLifecycleKickoffFailed, PeerLifecycleRetired,
    PeerLifecycleUnwired, PlainEvent, Response, SilentRequest,
};
use antiphon_core::{
    AgentName, HandlingMode, InboxInteraction, Interaction, InteractionContent, InteractionId,
    LifecycleIntent, PeerInputCandidate, ResponseStatus, Sender, SilentIntents, SourceName,
    classify,
};
use serde_json::{Value, json};

use crate::{UUID, written};

const CLASSES: [(PeerInputClass, bool); 11] = [
    (ActionableMessage, true),
    (ActionableRequest, true),
    (Response, true),
    (PeerLifecycleAdded, false),
    (PeerLifecycleRetired, false),
    (PeerLifecycleUnwired, false),
    (PeerLifecycleKickoffFailed, true),
    (PeerLifecycleKickoffCancelled, true),
    (SilentRequest, false),
    (Ack, false),
    (PlainEvent, true),
];

const LIFECYCLE: [(&str, PeerInputClass); 5] = [
    ("mob.peer_added", PeerLifecycleAdded),
    ("mob.peer_retired", PeerLifecycleRetired),
    ("mob.peer_unwired", PeerLifecycleUnwired),
    ("mob.kickoff_failed", PeerLifecycleKickoffFailed),
    ("mob.kickoff_cancelled", PeerLifecycleKickoffCancelled),
];

/// Intents that look like lifecycle and are not, beside an ordinary one.
const ORDINARY: [&str; 8] = [
    "review",
    "",
    "mob.",
    "mob.peer_addedx",
    " mob.peer_added",
    "MOB.PEER_ADDED",
    "peer_added",
    "mob.kickoff_canceled",
];

fn id() -> InteractionId {
    UUID.parse::<uuid::Uuid>().unwrap().into()
}

fn from(sender: &Sender, content: InteractionContent) -> Interaction {
    Interaction {
        id: id(),
        from: sender.clone(),
        content,
        handling_mode: HandlingMode::Queue,
        render_metadata: None,
    }
}

fn request(intent: &str, params: Value) -> InteractionContent {
    InteractionContent::Request { intent: intent.to_owned(), params }
}

fn bob() -> Sender {
    Sender::Peer(AgentName::parse("bob").unwrap())
}

fn webhook() -> Sender {
    Sender::External(SourceName::parse("webhook").unwrap())
}

/// Asserts what becomes of an interaction, whole.
#[track_caller]
fn becomes(
    interaction: Interaction,
    silent: &SilentIntents,
    class: PeerInputClass,
    lifecycle_peer: Option<&str>,
) {
    assert_eq!(
        classify(interaction.clone(), silent),
        PeerInputCandidate {
            interaction: InboxInteraction::from(interaction),
            class,
            lifecycle_peer: lifecycle_peer.map(str::to_owned),
        }
    );
}

/// No silent intents, and every intent of these tables silent.
fn silent_sets() -> [SilentIntents; 2] {
    let all = LIFECYCLE.iter().map(|(intent, _)| *intent).chain(ORDINARY);
    [SilentIntents::default(), all.collect()]
}

#[test]
fn six_classes_are_actionable() {
    for (class, actionable) in CLASSES {
        assert_eq!(class.is_actionable(), actionable, "{class:?}");
    }
}

#[test]
fn a_message_a_response_or_an_ack_of_a_known_sender_keeps_its_class() {
    for sender in [Sender::User, bob()] {
        for silent in silent_sets() {
            let message =
                InteractionContent::Message { body: "mob.peer_added".to_owned(), blocks: None };
            becomes(from(&sender, message), &silent, ActionableMessage, None);
            let ack = InteractionContent::Ack { in_reply_to: id() };
            becomes(from(&sender, ack), &silent, Ack, None);
            for status in
                [ResponseStatus::Accepted, ResponseStatus::Completed, ResponseStatus::Failed]
            {
                let response = InteractionContent::Response {
                    in_reply_to: id(),
                    status,
                    result: json!({"peer": "alice"}),
                };
                becomes(from(&sender, response), &silent, Response, None);
            }
        }
    }
}

#[test]
fn a_lifecycle_intent_of_a_known_sender_has_its_class_silent_or_not() {
    for (sender, name) in [(Sender::User, "user"), (bob(), "bob")] {
        for silent in silent_sets() {
            for (intent, class) in LIFECYCLE {
                let about = |params| from(&sender, request(intent, params));
                becomes(about(json!({"peer": "alice"})), &silent, class, Some("alice"));
                becomes(about(json!({"peer": " alice\n"})), &silent, class, Some("alice"));
                for no_peer in [
                    json!(null),
                    json!({}),
                    json!({"peer": null}),
                    json!({"peer": 7}),
                    json!({"peer": " "}),
                    json!({"peer": {"name": "alice"}}),
                    json!(["peer", "alice"]),
                    json!("alice"),
                ] {
                    becomes(about(no_peer), &silent, class, Some(name));
                }
            }
        }
    }
}

#[test]
fn any_other_request_of_a_known_sender_is_actionable_unless_it_is_silent() {
    let [loud, silent] = silent_sets();
    for sender in [Sender::User, bob()] {
        for intent in ORDINARY {
            let asked = || from(&sender, request(intent, json!({"peer": "alice"})));
            becomes(asked(), &loud, ActionableRequest, None);
            becomes(asked(), &silent, SilentRequest, None);
        }
    }
}

#[test]
fn an_unauthenticated_interaction_is_a_plain_event_with_any_content() {
    for silent in silent_sets() {
        let claims = LIFECYCLE
            .iter()
            .map(|(intent, _)| *intent)
            .chain(ORDINARY)
            .map(|intent| request(intent, json!({"peer": "alice"})))
            .chain([
                InteractionContent::Message { body: "hello".to_owned(), blocks: None },
                InteractionContent::Response {
                    in_reply_to: id(),
                    status: ResponseStatus::Completed,
                    result: json!(null),
                },
            ]);
        for content in claims {
            becomes(from(&webhook(), content), &silent, PlainEvent, None);
        }
        let ack = InteractionContent::Ack { in_reply_to: id() };
        becomes(from(&webhook(), ack), &silent, Ack, None);
    }
}

#[test]
fn the_lifecycle_intents_are_the_five_of_the_table() {
    assert_eq!(
        LifecycleIntent::ALL.map(LifecycleIntent::as_str),
        LIFECYCLE.map(|(intent, _)| intent)
    );
    for intent in LifecycleIntent::ALL {
        assert_eq!(LifecycleIntent::parse(intent.as_str()), Some(intent));
    }
    for intent in ORDINARY {
        assert_eq!(LifecycleIntent::parse(intent), None);
    }
}

#[test]
fn a_candidate_is_written_with_its_class_and_its_peer() {
    let retired = from(&bob(), request("mob.peer_retired", json!({"peer": "alice"})));
    let rendered = r#"[PEER bob: mob.peer_retired] {"peer":"alice"}"#;
    assert_eq!(
        written(&classify(retired, &SilentIntents::default())),
        json!({
            "interaction": {
                "id": UUID,
                "from": "bob",
                "content": {
                    "type": "request", "intent": "mob.peer_retired", "params": {"peer": "alice"}
                },
                "rendered_text": rendered,
                "handling_mode": "queue"
            },
            "class": "peer_lifecycle_retired",
            "lifecycle_peer": "alice"
        })
    );
    let asked = from(&bob(), request("review", json!(null)));
    let candidate = classify(asked, &SilentIntents::default());
    assert_eq!(written(&candidate).get("lifecycle_peer"), None);
}
