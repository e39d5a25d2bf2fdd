//! A task, as its events tell it.

use std::collections::HashMap;

use antiphon_core::{
    AgentId, AgentState, AssistantMessage, Effect, Event, EventBody, Message, Seq, StopReason,
    TaskCreated, TaskId, TaskStatus, ToolCallBlock, ToolCallId, Usage,
};
use serde_json::Value;

use crate::limits::{self, LimitReached};

/// The tool by which an agent delivers its result.
const FINAL: &str = "final";

/// A task, as its events tell it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskState {
    /// Which.
    pub task_id: TaskId,
    /// How it began.
    pub created: TaskCreated,
    /// Its last event.
    pub seq: Seq,
    /// How far it got.
    pub status: TaskStatus,
    /// Its result, or the reason why there is none.
    pub detail: Option<Value>,
    /// Where its agent stands in the lap.
    pub agent_state: AgentState,
    /// The live agent that works on it, once one does.
    pub agent_id: Option<AgentId>,
    /// What was said, in order.
    pub messages: Vec<Message>,
    /// What it has cost.
    pub usage: Usage,
    /// Whole answers of the model.
    pub turns: u32,
    /// Calls of tools.
    pub calls: u32,
    /// Calls that were started and have no result, and what they do to the world.
    pub started: HashMap<ToolCallId, Effect>,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask the model.
    Ask,
    /// Run these calls of the last answer; the others have their results.
    Call(Vec<Pending>),
    /// Deliver the result.
    Finish(Value),
    /// Give up.
    Refuse(LimitReached),
    /// Nothing: it is over.
    Over,
}

/// A call without a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    /// The call.
    pub call: ToolCallBlock,
    /// What it does to the world, if it was started before: it was cut off then.
    pub cut_off: Option<Effect>,
}

/// The events of a task that make no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// There is no such task.
    #[error("there is no task {task_id}")]
    NoTask {
        /// Which.
        task_id: TaskId,
    },
    /// Its first event is not its creation, or its creation is not its first event.
    #[error("the journal of task {task_id} makes no sense at {seq}")]
    OutOfOrder {
        /// Which.
        task_id: TaskId,
        /// Where.
        seq: Seq,
    },
}

impl TaskState {
    /// A task from its events, in order.
    pub fn replay(task_id: &TaskId, events: &[Event]) -> Result<Self, ReplayError> {
        let out_of_order = |seq| ReplayError::OutOfOrder { task_id: task_id.clone(), seq };
        let (first, rest) =
            events.split_first().ok_or_else(|| ReplayError::NoTask { task_id: task_id.clone() })?;
        let EventBody::TaskCreated(created) = &first.body else {
            return Err(out_of_order(first.seq));
        };
        let mut state = Self::created(task_id.clone(), created.clone());
        for event in rest {
            if event.seq.0 != state.seq.0 + 1 || !state.apply(&event.body) {
                return Err(out_of_order(event.seq));
            }
        }
        Ok(state)
    }

    /// A task that has just been created.
    pub fn created(task_id: TaskId, created: TaskCreated) -> Self {
        Self {
            task_id,
            created,
            seq: Seq(1),
            status: TaskStatus::Pending,
            detail: None,
            agent_state: AgentState::Idle,
            agent_id: None,
            messages: Vec::new(),
            usage: Usage::default(),
            turns: 0,
            calls: 0,
            started: HashMap::new(),
        }
    }

    /// Adds what happened next. Says whether that can follow.
    pub fn apply(&mut self, body: &EventBody) -> bool {
        self.seq.0 += 1;
        match body {
            EventBody::TaskCreated(_) => return false,
            EventBody::StatusChanged(change) => {
                self.status = change.status;
                self.detail.clone_from(&change.detail);
            }
            EventBody::StateChanged(change) => {
                self.agent_id = Some(change.agent_id);
                self.agent_state = change.to;
            }
            EventBody::MessageAppended(appended) => {
                // Some models use an id again in a later answer: that is another call.
                if let Message::ToolResult(result) = &appended.message {
                    self.started.remove(&result.tool_call_id);
                }
                self.messages.push(appended.message.clone());
            }
            EventBody::ToolStarted(started) => {
                let before = self.started.insert(started.tool_call_id.clone(), started.effect);
                self.calls += u32::from(before.is_none());
            }
            EventBody::UsageRecorded(recorded) => {
                self.usage += recorded.usage;
                self.turns += 1;
            }
        }
        true
    }

    /// What comes next. Pure: the same events, the same step.
    pub fn next(&self) -> Step {
        if self.status.is_terminal() {
            return Step::Over;
        }
        let Some((answer, results)) = self.last_lap() else {
            return self.ask();
        };
        let pending: Vec<Pending> = answer
            .tool_calls()
            .filter(|call| !is_final(call) && !is_answered(&call.id, results))
            .map(|call| Pending {
                call: call.clone(),
                cut_off: self.started.get(&call.id).copied(),
            })
            .collect();
        if !pending.is_empty() {
            return Step::Call(pending);
        }
        // Something was said since: it was not the last word then.
        let spoken_to = results.iter().any(|message| matches!(message, Message::User(_)));
        if let Some(call) = answer.tool_calls().find(|call| is_final(call) && !spoken_to) {
            return Step::Finish(delivered(call));
        }
        if answer.tool_calls().next().is_none() && !spoken_to {
            return Step::Finish(Value::String(answer.text()));
        }
        self.ask()
    }

    /// The last whole answer, and what came behind it.
    fn last_lap(&self) -> Option<(&AssistantMessage, &[Message])> {
        self.messages.iter().enumerate().rev().find_map(|(index, message)| match message {
            Message::Assistant(answer)
                if !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) =>
            {
                Some((answer, &self.messages[index + 1..]))
            }
            Message::Assistant(_) | Message::User(_) | Message::ToolResult(_) => None,
        })
    }

    fn ask(&self) -> Step {
        limits::reached(self).map_or(Step::Ask, Step::Refuse)
    }
}

/// Whether a call delivers the result. One that was cut off does not: it is answered as any
/// other whose arguments are malformed.
pub(crate) fn is_final(call: &ToolCallBlock) -> bool {
    call.name == FINAL && call.arguments.object().is_some()
}

fn is_answered(id: &ToolCallId, results: &[Message]) -> bool {
    results.iter().any(|message| match message {
        Message::ToolResult(result) => result.tool_call_id == *id,
        Message::User(_) | Message::Assistant(_) => false,
    })
}

/// What a call of `final` delivers: its `result`, or all of its arguments.
fn delivered(call: &ToolCallBlock) -> Value {
    let arguments = call.arguments.object().and_then(|json| json.to::<Value>().ok());
    match arguments {
        Some(Value::Object(mut map)) => match map.remove("result") {
            Some(result) => result,
            None => Value::Object(map),
        },
        Some(_) | None => Value::Null,
    }
}
