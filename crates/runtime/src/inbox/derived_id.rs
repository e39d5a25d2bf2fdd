//! Ids of interactions that derive from what they belong to: repeated after a crash, an interaction has
//! the same id and is recorded once.

use antiphon_core::{InteractionId, TaskId};
use uuid::Uuid;

/// The id of the report of a detached task: the same for the same task, so that it arrives once.
pub(crate) fn of_report(task_id: &TaskId) -> InteractionId {
    // Our task ids are UUIDs; other names are hashed into one.
    let named = Uuid::parse_str(task_id.as_str());
    InteractionId(named.unwrap_or_else(|_| hashed(task_id.as_str().bytes())))
}

/// The id of what a call sends: the same for the same call. `turn` is part of it, because some
/// models use a call id again in a later answer.
pub(crate) fn of_call(task_id: &TaskId, turn: u32, call: &str) -> InteractionId {
    let turn = turn.to_be_bytes();
    InteractionId(hashed(task_id.as_str().bytes().chain([0]).chain(turn).chain(call.bytes())))
}

/// The id of something with a name: the same for the same name.
pub(crate) fn of_name(name: &str) -> InteractionId {
    InteractionId(hashed(name.bytes()))
}

/// Hashes bytes into a UUID, without practical collisions.
fn hashed(bytes: impl Iterator<Item = u8>) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, &bytes.collect::<Vec<u8>>())
}
