//! Anything that arrives, and anything that goes out to other agents.

use antiphon_core::*;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;

use crate::any_event::{call_id, provenance};
use crate::any_exchange::{intent, interaction, peer, response_status, sender, task_id, uuid};
use crate::any_json::{object, time, value};

pub(crate) fn arrival() -> impl Strategy<Value = EventBody> {
    prop_oneof![queued().boxed(), request_sent().boxed(), replied().boxed()]
}

/// With any class: the recorded class counts, not the content.
fn queued() -> impl Strategy<Value = EventBody> {
    let owed = (option::of(task_id()), option::of(time()), option::of(uuid()), any::<u32>());
    (interaction(), class(), any::<bool>(), owed, option::of(object()), provenance()).prop_map(
        |(interaction, class, quiet, (reply_to, until, replaces, hops), payload, provenance)| {
            MessageQueued {
                id: interaction.id,
                mode: interaction.handling_mode,
                from: interaction.from,
                content: interaction.content,
                class,
                render_metadata: interaction.render_metadata,
                quiet,
                reply_to,
                until,
                replaces,
                hops,
                payload,
                provenance,
                boot_until: None,
            }
            .into()
        },
    )
}

fn class() -> impl Strategy<Value = PeerInputClass> {
    use PeerInputClass::{
        Ack, ActionableMessage, ActionableRequest, PeerLifecycleAdded,
        PeerLifecycleKickoffCancelled, PeerLifecycleKickoffFailed, PeerLifecycleRetired,
        PeerLifecycleUnwired, PlainEvent, Response, SilentRequest,
    };
    let classes = [
        ActionableMessage,
        ActionableRequest,
        Response,
        PeerLifecycleAdded,
        PeerLifecycleRetired,
        PeerLifecycleUnwired,
        PeerLifecycleKickoffFailed,
        PeerLifecycleKickoffCancelled,
        SilentRequest,
        Ack,
        PlainEvent,
    ];
    select(classes.to_vec())
}

fn request_sent() -> impl Strategy<Value = EventBody> {
    (call_id(), any::<u128>(), peer(), intent(), value(), time(), any::<bool>()).prop_map(
        |(tool_call_id, bits, to, intent, params, until, waits)| {
            let id = InteractionId(Uuid::from_u128(bits));
            RequestSent { tool_call_id, id, to, intent, params, until, waits, boot_until: None }
                .into()
        },
    )
}

fn replied() -> impl Strategy<Value = EventBody> {
    (uuid(), sender(), option::of(task_id()), response_status(), value()).prop_map(
        |(in_reply_to, to, reply_to, status, result)| {
            Replied { in_reply_to, to, reply_to, status, result }.into()
        },
    )
}
