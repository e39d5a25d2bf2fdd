//! Orders live deltas among journal events: a delta follows the events that were recorded before it, and never
//! follows the event with the whole message or result that it is a part of.
//!
//! | the delta belongs to                             | and is                                         |
//! |--------------------------------------------------|------------------------------------------------|
//! | the current turn of the stream                   | sent                                           |
//! | a later turn                                     | held until the stream reaches the turn         |
//! | an answer after an event that was not sent       | held until the stream reaches the event        |
//! | a message or result that was already sent whole  | dropped                                        |
//! | an answer that another one has superseded        | dropped                                        |
//! | a task that the stream does not track            | dropped                                        |

use std::collections::HashMap;

use antiphon_core::{
    AgentState, Event, EventBody, Message, OutageWait, Seq, TaskId, TaskSummary, ToolCallId,
};
use antiphon_runtime::{AnswerDelta, Delta, DeltaEvent, ToolDelta};

/// Tasks that are tracked, at most. One more clears all.
const TASKS_TRACKED_MAX: usize = 4096;

/// When a delta is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    Later,
    Never,
}

/// The progress of a stream in each task.
#[derive(Debug, Default)]
pub(crate) struct DeltaOrder {
    tasks: HashMap<TaskId, TaskProgress>,
}

/// The progress of a stream in one task.
#[derive(Debug)]
struct TaskProgress {
    /// The last event that was seen.
    seq: Seq,
    /// Number of completed turns.
    turns: u32,
    /// Whether the message of this turn was sent.
    whole: bool,
    /// Calls of the last message whose results were sent.
    done: Vec<ToolCallId>,
    /// The last event that superseded an answer.
    superseded_at: Seq,
}

impl DeltaOrder {
    /// Advances by an event.
    pub(crate) fn note(&mut self, event: &Event) {
        if matches!(event.body, EventBody::TaskCreated(_)) {
            self.track(event.task_id.clone(), event.seq, 0);
        } else if event.body.ends_task() {
            self.tasks.remove(&event.task_id);
        }
        let Some(progress) = self.tasks.get_mut(&event.task_id) else { return };
        if event.seq <= progress.seq {
            return;
        }
        progress.seq = event.seq;
        if let EventBody::UsageRecorded(recorded) = &event.body {
            let is_turn = recorded.purpose.is_none();
            progress.turns += u32::from(is_turn);
            progress.whole &= !is_turn;
        } else if let EventBody::StateChanged(change) = &event.body {
            // A message that was interrupted may start again.
            progress.whole &= !change.enters(AgentState::Thinking);
        } else if let EventBody::StatusChanged(change) = &event.body {
            if OutageWait::of(change).is_some_and(|wait| wait.superseded) {
                progress.superseded_at = event.seq;
            }
        } else if let EventBody::MessageAppended(appended) = &event.body {
            match &*appended.message {
                Message::User(_) => {}
                // The status behind it supersedes it.
                Message::Assistant(_) if appended.superseded => {}
                Message::Assistant(_) => {
                    progress.whole = true;
                    progress.done.clear();
                }
                Message::ToolResult(result) => progress.done.push(result.tool_call_id.clone()),
            }
        }
    }

    /// Whether a task is tracked.
    pub(crate) fn tracks(&self, task_id: &TaskId) -> bool {
        self.tasks.contains_key(task_id)
    }

    /// Tracks a task that existed before the stream.
    pub(crate) fn join(&mut self, task: TaskSummary) {
        if !task.status.is_terminal() {
            self.track(task.task_id, task.seq, task.turns);
        }
    }

    fn track(&mut self, task_id: TaskId, seq: Seq, turns: u32) {
        if self.tasks.len() >= TASKS_TRACKED_MAX {
            self.tasks.clear();
        }
        let (superseded_at, done) = (Seq(0), Vec::new());
        let progress = TaskProgress { seq, turns, whole: false, done, superseded_at };
        self.tasks.insert(task_id, progress);
    }

    /// When a delta is sent.
    pub(crate) fn due(&self, delta: &Delta) -> Due {
        let Some(progress) = self.tasks.get(&delta.task_id) else { return Due::Never };
        if delta.turn > progress.turns {
            return Due::Later;
        }
        let is_superseded = delta.after < progress.superseded_at;
        let is_old = match &delta.event {
            DeltaEvent::Answer(_) if delta.after > progress.seq => return Due::Later,
            DeltaEvent::Answer(_) => delta.turn < progress.turns || progress.whole || is_superseded,
            DeltaEvent::State(AnswerDelta::AnswerSuperseded { .. }) => is_superseded,
            DeltaEvent::Tool(ToolDelta::ToolOutput { tool_call_id, .. }) => {
                progress.done.contains(tool_call_id)
            }
        };
        if is_old { Due::Never } else { Due::Now }
    }
}
