//! Every interaction has a class and a text, always the same.

use antiphon_core::{
    InboxInteraction, InputBlock, InteractionContent, LifecycleIntent, MessageQueued,
    PeerInputCandidate, PeerInputClass, Sender, SilentIntents, classify, external_event_text,
    render, visible,
};
use chrono::DateTime;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::any_exchange::{intent, interaction};
use crate::any_json::text;
use crate::config;

/// Whether the class is about the life of a peer, and whether it is work for the agent.
fn traits(class: PeerInputClass) -> (bool, bool) {
    match class {
        PeerInputClass::ActionableMessage
        | PeerInputClass::ActionableRequest
        | PeerInputClass::Response
        | PeerInputClass::PlainEvent => (false, true),
        PeerInputClass::PeerLifecycleAdded
        | PeerInputClass::PeerLifecycleRetired
        | PeerInputClass::PeerLifecycleUnwired => (true, false),
        PeerInputClass::PeerLifecycleKickoffFailed
        | PeerInputClass::PeerLifecycleKickoffCancelled => (true, true),
        PeerInputClass::SilentRequest | PeerInputClass::Ack => (false, false),
    }
}

fn intent_of(content: &InteractionContent) -> Option<&str> {
    match content {
        InteractionContent::Request { intent, .. } => Some(intent),
        InteractionContent::Message { .. }
        | InteractionContent::Response { .. }
        | InteractionContent::Ack { .. } => None,
    }
}

fn is_tag(c: char) -> bool {
    ('\u{E0000}'..='\u{E0FFF}').contains(&c)
}

#[test]
fn every_tag_character_is_taken_out() {
    let tags: String = ('\u{E0000}'..='\u{E0FFF}').collect();
    assert!(tags.chars().all(is_tag));
    assert_eq!(visible(&format!("a{tags}b")), "ab");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn classification_is_total_pure_and_consistent(
        interaction in interaction(), silent in vec(intent(), 0..4),
    ) {
        let silent: SilentIntents = silent.into_iter().collect();
        let candidate = classify(interaction.clone(), &silent);
        prop_assert_eq!(&classify(interaction.clone(), &silent), &candidate);

        let (lifecycle, actionable) = traits(candidate.class);
        prop_assert_eq!(candidate.class.is_actionable(), actionable);
        prop_assert_eq!(candidate.lifecycle_peer.is_some(), lifecycle);
        if lifecycle {
            let intent = intent_of(&interaction.content).unwrap();
            prop_assert!(LifecycleIntent::parse(intent).is_some());
        }
        if candidate.class == PeerInputClass::SilentRequest {
            prop_assert!(silent.contains(intent_of(&interaction.content).unwrap()));
        }
        if let Sender::External(_) = interaction.from {
            let expected = [PeerInputClass::PlainEvent, PeerInputClass::Ack];
            prop_assert!(expected.contains(&candidate.class));
        }
        let whole = PeerInputCandidate {
            interaction: InboxInteraction::from(interaction),
            ..candidate.clone()
        };
        prop_assert_eq!(candidate, whole);
    }

    #[test]
    fn what_a_model_reads_holds_nothing_hidden_and_says_who_sent_it(interaction in interaction()) {
        let text = render(&interaction);
        prop_assert_eq!(&render(&interaction), &text);
        prop_assert_eq!(&visible(&text), &text);
        match &interaction.from {
            Sender::External(source) => {
                let label = format!("[EVENT via {source}]");
                prop_assert!(text.starts_with(&label));
            }
            Sender::Peer(name) => {
                let lifecycle =
                    intent_of(&interaction.content).and_then(LifecycleIntent::parse).is_some();
                let sender =
                    if lifecycle { format!("[PEER {name}: ") } else { format!(" from {name}") };
                prop_assert!(text.starts_with('[') && text.contains(&sender));
            }
            Sender::User => {}
        }
    }

    #[test]
    fn what_is_queued_reads_the_same_as_what_arrived(interaction in interaction()) {
        let candidate = classify(interaction, &SilentIntents::default());
        let text = candidate.interaction.rendered_text.clone();
        let queued = MessageQueued::of(candidate);
        let read = queued.user_message(DateTime::default());
        let images = |block: &InputBlock| matches!(block, InputBlock::Image(_));
        // Without visible text there may be images alone.
        if !(text.trim().is_empty() && images(&read.content[0])) {
            prop_assert_eq!(&read.content[0], &InputBlock::text(text));
        }
        prop_assert!(read.content[1..].iter().all(images));
    }

    #[test]
    fn visible_text_has_no_tags_and_is_not_changed_by_looking_again(text in text()) {
        let seen = visible(&text);
        let hidden = |c: char| is_tag(c) || (c.is_control() && !"\t\n\r".contains(c));
        prop_assert!(!seen.contains(hidden));
        prop_assert_eq!(&visible(&seen), &seen);
        let mut rest = text.chars();
        prop_assert!(seen.chars().all(|c| rest.any(|other| other == c)));
    }

    #[test]
    fn an_external_event_is_its_label_and_perhaps_its_body(source in text(), body in text()) {
        let label = format!("[EVENT via {source}]");
        let text = external_event_text(&source, Some(&body));
        match body.trim() {
            "" => prop_assert_eq!(text, label),
            body => prop_assert_eq!(text, format!("{label} {body}")),
        }
    }
}
