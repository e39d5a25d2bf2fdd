//! Checkpoints of long tasks: their state at one of their events, so that a task with a long life goes on without reading all of
//! it. They are derived from the events and compared with them; one that is absent or does not fit costs a whole read.
//!
//! The conversation is not in them: the journal reads the recent part of it (see
//! [`JournalLog::history`](antiphon_core::port::JournalLog::history)), so a checkpoint stays small.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::Seq;
use antiphon_core::port::Checkpoint;
use serde::{Deserialize, Serialize};

use crate::services::Services;
use crate::task::state::TaskState;
use crate::task::state::conversation::Conversation;

/// A task gets a checkpoint each time it has that many events more, when it comes to rest.
pub(crate) const CHECKPOINT_EVENTS: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// And each time it has that many events more while it runs.
const RUNNING_CHECKPOINT_EVENTS: u64 = 512;

/// Raised when a state has other fields, or events another effect on it. A checkpoint of another format is not used.
const FORMAT: u32 = 3;

/// The data of a checkpoint.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedState {
    format: u32,
    /// Number of messages from tasks before this one, and of all.
    inherited: usize,
    messages: usize,
    /// Whether the next messages belong to a turn that has begun: they are folded differently then.
    is_in_turn: bool,
    state: TaskState,
}

impl SavedState {
    /// The data of a checkpoint, if this program can use it.
    pub(crate) fn read(checkpoint: &Checkpoint) -> Option<Self> {
        let saved: Self = serde_json::from_str(&checkpoint.data).ok()?;
        let state = &saved.state;
        let fits = saved.format == FORMAT
            && state.task_id == checkpoint.task_id
            && (state.seq, state.position) == (checkpoint.seq, checkpoint.position);
        fits.then_some(saved)
    }

    /// The state without the messages of its conversation.
    pub(crate) fn without_messages(self) -> TaskState {
        let Self { inherited, messages, is_in_turn, state, .. } = self;
        TaskState { conversation: Conversation::absent(messages, inherited, is_in_turn), ..state }
    }

    /// Number of messages that the conversation has at the checkpoint.
    pub(crate) fn messages(&self) -> usize {
        self.messages
    }

    /// The state with its conversation, if that is the one it had.
    pub(crate) fn with(self, conversation: Conversation) -> Option<TaskState> {
        let fits = conversation.len() == self.messages;
        let conversation = conversation.with_inherited(self.inherited);
        fits.then_some(TaskState { conversation, ..self.state })
    }
}

/// Whether a task that has rested at this event may have a checkpoint.
pub(crate) fn is_possible(seq: Seq) -> bool {
    seq.0 >= CHECKPOINT_EVENTS.get() as u64
}

/// Saves a checkpoint of a task that came to rest, if it has enough new events since its run began. Nothing waits for it.
pub(crate) fn save_at_rest(services: &Arc<Services>, state: &TaskState, before: Seq) {
    save_if_passed(services, state, before, CHECKPOINT_EVENTS.get() as u64);
}

/// Saves a checkpoint of a running task whose events are written, if it has enough new ones. `before` is where it was before
/// the last of them.
pub(crate) fn save_while_running(services: &Arc<Services>, state: &TaskState, before: Seq) {
    save_if_passed(services, state, before, RUNNING_CHECKPOINT_EVENTS);
}

/// Saves a checkpoint if the task has passed a multiple of `events`.
fn save_if_passed(services: &Arc<Services>, state: &TaskState, before: Seq, events: u64) {
    if state.seq.0 / events == before.0 / events || state.position.0 == 0 {
        return;
    }
    let conversation = &state.conversation;
    let (inherited, messages) = (conversation.inherited_messages(), conversation.len());
    let is_in_turn = state.is_in_turn();
    let state = TaskState { conversation: Conversation::default(), ..state.clone() };
    let (task_id, seq, position) = (state.task_id.clone(), state.seq, state.position);
    let Ok(data) = serde_json::to_string(&SavedState {
        format: FORMAT,
        inherited,
        messages,
        is_in_turn,
        state,
    }) else {
        return;
    };
    let shared = Arc::clone(services);
    services.background.tracker.spawn(async move {
        let checkpoint = Checkpoint { task_id, seq, position, data };
        if let Err(error) = shared.deps.journal.save_checkpoint(checkpoint).await {
            tracing::debug!(%error, "a checkpoint was not saved");
        }
    });
}

#[cfg(test)]
mod tests {
    use antiphon_core::port::BootTime;
    use antiphon_core::{
        EventBody, MessageAppended, Position, RawJson, SessionId, TaskCreated, TaskId, ToolCallId,
        ToolRequested, UserMessage,
    };
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;

    fn state() -> TaskState {
        let created = TaskCreated::new("tester", SessionId::parse("session").unwrap());
        let task_id = TaskId::parse("task").unwrap();
        let at = DateTime::UNIX_EPOCH;
        let mut state = TaskState::created(task_id, created, at, Conversation::default());
        let requested: EventBody = ToolRequested {
            tool_call_id: ToolCallId::parse("call").unwrap(),
            tool_name: "look".to_owned(),
            arguments: RawJson::parse("{}").unwrap(),
            until: at,
            boot_until: Some(BootTime { boot_id: Uuid::from_u128(1), elapsed_ms: 5 }),
        }
        .into();
        let said = MessageAppended::new(UserMessage::text("do it", at)).into();
        for body in [said, requested] {
            assert!(state.apply(&body));
        }
        state.position = Position(7);
        state
    }

    fn checkpoint(state: &TaskState, format: u32) -> Checkpoint {
        let state = TaskState { conversation: Conversation::default(), ..state.clone() };
        let (task_id, seq, position) = (state.task_id.clone(), state.seq, state.position);
        let saved = SavedState { format, inherited: 0, messages: 1, is_in_turn: true, state };
        Checkpoint { task_id, seq, position, data: serde_json::to_string(&saved).unwrap() }
    }

    #[test]
    fn a_state_comes_back_with_its_conversation() {
        let state = state();
        let saved = SavedState::read(&checkpoint(&state, FORMAT)).unwrap();
        assert_eq!(saved.with(state.conversation.clone()), Some(state.clone()));
        let saved = SavedState::read(&checkpoint(&state, FORMAT)).unwrap();
        let alone = saved.without_messages();
        assert!(alone.is_in_turn() && alone.messages().is_empty());
        assert_eq!(TaskState { conversation: state.conversation.clone(), ..alone }, state);
    }

    #[test]
    fn a_checkpoint_that_does_not_fit_is_not_used() {
        let state = state();
        assert!(SavedState::read(&checkpoint(&state, FORMAT + 1)).is_none());
        let sound = checkpoint(&state, FORMAT);
        let other = Checkpoint { seq: Seq(9), ..sound.clone() };
        assert!(SavedState::read(&other).is_none());
        let unknown = sound.data.replacen("\"format\"", "\"other\":1,\"format\"", 1);
        assert!(SavedState::read(&Checkpoint { data: unknown, ..sound.clone() }).is_none());
        let saved = SavedState::read(&sound).unwrap();
        assert_eq!(saved.with(Conversation::default()), None, "another conversation");
    }
}
