//! Defaults of event fields, which the JSON leaves out.

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use crate::{CallableAgents, InteractionContent, PeerInputClass, Sender, UserMessage};

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
pub(super) fn is_zero(number: &u32) -> bool {
    *number == 0
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

pub(super) fn message_class() -> PeerInputClass {
    PeerInputClass::ActionableMessage
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
pub(super) fn is_message(class: &PeerInputClass) -> bool {
    *class == PeerInputClass::ActionableMessage
}

/// The content of a message. Older journals hold the user message itself.
pub(super) fn content<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<InteractionContent, D::Error> {
    let value = Value::deserialize(deserializer)?;
    if value.get("content").is_some() {
        let message = UserMessage::deserialize(value).map_err(de::Error::custom)?;
        return Ok(InteractionContent::from(message));
    }
    InteractionContent::deserialize(value).map_err(de::Error::custom)
}

pub(super) fn any_agent() -> CallableAgents {
    CallableAgents::Any
}

pub(super) fn is_any_agent(agents: &CallableAgents) -> bool {
    *agents == CallableAgents::Any
}

pub(super) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
