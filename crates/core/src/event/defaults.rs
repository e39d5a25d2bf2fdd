//! What is left out of the JSON of an event, and what stands for it.

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use crate::{CallableAgents, InteractionContent, PeerInputClass, Sender, UserMessage};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
pub(super) fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
pub(super) fn is_false(flag: &bool) -> bool {
    !flag
}

pub(super) fn user() -> Sender {
    Sender::User
}

pub(super) fn is_user(from: &Sender) -> bool {
    *from == Sender::User
}

pub(super) fn a_message() -> PeerInputClass {
    PeerInputClass::ActionableMessage
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
pub(super) fn is_a_message(class: &PeerInputClass) -> bool {
    *class == PeerInputClass::ActionableMessage
}

/// What arrived; older journals have the user's message itself.
pub(super) fn said<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<InteractionContent, D::Error> {
    let value = Value::deserialize(deserializer)?;
    if value.get("content").is_some() {
        let message = UserMessage::deserialize(value).map_err(de::Error::custom)?;
        return Ok(InteractionContent::from(message));
    }
    InteractionContent::deserialize(value).map_err(de::Error::custom)
}

pub(super) fn anybody() -> CallableAgents {
    CallableAgents::Any
}

pub(super) fn is_anybody(agents: &CallableAgents) -> bool {
    *agents == CallableAgents::Any
}

pub(super) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
