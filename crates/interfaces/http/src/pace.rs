//! Which pieces of what is still going on belong at this place of a stream: not before what was written
//! before them, and not behind the whole that they are pieces of.
//!
//! | of an answer, or of a tool's output              | a piece of it is                               |
//! |--------------------------------------------------|------------------------------------------------|
//! | the one that the stream has come to              | shown                                          |
//! | a later one                                      | kept until the stream has come to it           |
//! | one that the stream has told as a whole          | dropped                                        |
//! | of a task that the stream knows nothing of       | dropped                                        |

use std::collections::HashMap;

use antiphon_core::{AgentState, Event, EventBody, Message, Seq, TaskId, TaskSummary, ToolCallId};
use antiphon_runtime::{Delta, DeltaEvent, ToolDelta};

/// Tasks that are kept at hand; all are let go when there is one more.
const TASKS_PACED_MAX: usize = 4096;

/// When a piece is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Now,
    Later,
    Never,
}

/// How far a stream has come in each task.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    tasks: HashMap<TaskId, Turn>,
}

/// How far it has come in one task.
#[derive(Debug)]
struct Turn {
    /// The last event that is in it.
    seq: Seq,
    /// Answers that were whole.
    turns: u32,
    /// Whether the answer of this turn was told.
    whole: bool,
    /// Calls of the last answer whose results were told.
    done: Vec<ToolCallId>,
}

impl Pace {
    /// Goes on by an event.
    pub(crate) fn note(&mut self, event: &Event) {
        if matches!(event.body, EventBody::TaskCreated(_)) {
            self.enter(event.task_id.clone(), event.seq, 0);
        } else if event.body.ends_task() {
            self.tasks.remove(&event.task_id);
        }
        let Some(turn) = self.tasks.get_mut(&event.task_id) else { return };
        if event.seq <= turn.seq {
            return;
        }
        turn.seq = event.seq;
        if let EventBody::UsageRecorded(recorded) = &event.body {
            let is_turn = recorded.purpose.is_none();
            turn.turns += u32::from(is_turn);
            turn.whole &= !is_turn;
        } else if let EventBody::StateChanged(change) = &event.body {
            // It may begin an answer anew that broke off.
            turn.whole &= change.to != AgentState::Thinking;
        } else if let EventBody::MessageAppended(appended) = &event.body {
            match &*appended.message {
                Message::User(_) => {}
                Message::Assistant(_) => {
                    turn.whole = true;
                    turn.done.clear();
                }
                Message::ToolResult(result) => turn.done.push(result.tool_call_id.clone()),
            }
        }
    }

    /// Whether anything is known of a task.
    pub(crate) fn knows(&self, task_id: &TaskId) -> bool {
        self.tasks.contains_key(task_id)
    }

    /// A task that was there before the stream.
    pub(crate) fn join(&mut self, task: TaskSummary) {
        if !task.status.is_terminal() {
            self.enter(task.task_id, task.seq, task.turns);
        }
    }

    fn enter(&mut self, task_id: TaskId, seq: Seq, turns: u32) {
        if self.tasks.len() >= TASKS_PACED_MAX {
            self.tasks.clear();
        }
        self.tasks.insert(task_id, Turn { seq, turns, whole: false, done: Vec::new() });
    }

    /// When a piece is shown.
    pub(crate) fn due(&self, delta: &Delta) -> Due {
        let Some(turn) = self.tasks.get(&delta.task_id) else { return Due::Never };
        if delta.turn > turn.turns {
            return Due::Later;
        }
        let old = match &delta.event {
            DeltaEvent::Answer(_) => delta.turn < turn.turns || turn.whole,
            DeltaEvent::Tool(ToolDelta::ToolOutput { tool_call_id, .. }) => {
                turn.done.contains(tool_call_id)
            }
        };
        if old { Due::Never } else { Due::Now }
    }
}
