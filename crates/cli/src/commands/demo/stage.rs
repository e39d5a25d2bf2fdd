//! What is known of the tree, from its events alone: who is there, which calls run, what was asked and
//! what was said. The same events give the same stage, whatever the model does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use antiphon_core::{
    AgentState, ApprovalId, Event, EventBody, Message, TaskId, TaskSummary, ToolCallId,
};
use chrono::{DateTime, Utc};

use crate::screen::title;
use crate::watch::{Detail, Family};

/// Calls that are remembered. Later ones are told without their beginning.
const CALLS_MAX: usize = 10_000;

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    /// As it is shown.
    pub(super) title: String,
    /// When it began to run: as the journal says, and here.
    pub(super) started: Option<(DateTime<Utc>, Instant)>,
    /// Its result is there.
    pub(super) is_over: bool,
}

/// What is known of the tree.
#[derive(Default)]
pub(super) struct Stage {
    family: Option<Family>,
    calls: BTreeMap<(TaskId, ToolCallId), Call>,
    thinking: BTreeSet<TaskId>,
    open: BTreeSet<ApprovalId>,
    /// Questions there have been.
    pub(super) asked: usize,
    /// When the first agents were sent out.
    pub(super) fanned_out: Option<Instant>,
}

impl Stage {
    /// Adds what happened.
    pub(super) fn apply(&mut self, event: &Event, now: Instant) {
        self.know(event);
        let call = |id: &ToolCallId| (event.task_id.clone(), id.clone());
        match &event.body {
            EventBody::MessageAppended(appended) => match &*appended.message {
                Message::Assistant(answer) => {
                    self.thinking.remove(&event.task_id);
                    for made in answer.tool_calls().take(CALLS_MAX - self.calls.len()) {
                        let told = Call { title: title(made), started: None, is_over: false };
                        self.calls.insert(call(&made.id), told);
                    }
                }
                Message::ToolResult(result) => {
                    if let Some(call) = self.calls.get_mut(&call(&result.tool_call_id)) {
                        call.is_over = true;
                    }
                }
                Message::User(_) => {}
            },
            EventBody::StateChanged(change) => {
                if change.to == AgentState::Thinking {
                    self.thinking.insert(event.task_id.clone());
                } else {
                    self.thinking.remove(&event.task_id);
                }
            }
            EventBody::ToolStarted(started) => {
                if let Some(call) = self.calls.get_mut(&call(&started.tool_call_id)) {
                    call.started = Some((event.at, now));
                }
            }
            EventBody::ApprovalRequested(asked) => {
                self.asked += 1;
                self.open.insert(asked.approval_id.clone());
            }
            EventBody::ApprovalDecided(decided) => {
                self.open.remove(&decided.approval_id);
            }
            EventBody::Dispatched(_) => {
                self.fanned_out.get_or_insert(now);
            }
            EventBody::StatusChanged(change) if change.status.is_terminal() => {
                self.thinking.remove(&event.task_id);
            }
            EventBody::StatusChanged(_)
            | EventBody::TaskCreated(_)
            | EventBody::MessageQueued(_)
            | EventBody::ToolRefused(_)
            | EventBody::ToolRequested(_)
            | EventBody::Awaited(_)
            | EventBody::HandedOver(_)
            | EventBody::RequestSent(_)
            | EventBody::Replied(_)
            | EventBody::Relayed(_)
            | EventBody::UsageRecorded(_)
            | EventBody::OutputRejected(_)
            | EventBody::BudgetRaised(_)
            | EventBody::Compacted(_) => {}
        }
    }

    fn know(&mut self, event: &Event) {
        match (&mut self.family, &event.body) {
            (Some(family), _) => {
                family.apply(event);
            }
            (None, EventBody::TaskCreated(created)) => {
                let summary = TaskSummary::created(event.task_id.clone(), created, event.at);
                self.family = Family::new(&event.task_id, vec![summary]);
                if let Some(family) = &mut self.family {
                    family.learn(0, Detail::created(created));
                }
            }
            (None, _) => {}
        }
    }

    /// The tree, once its top is known.
    pub(super) fn family(&self) -> Option<&Family> {
        self.family.as_ref()
    }

    /// Who works on a task.
    pub(super) fn agent(&self, task_id: &TaskId) -> &str {
        self.tasks()
            .find(|task| task.task_id == *task_id)
            .map_or("somebody", |task| task.agent.as_str())
    }

    /// The tasks that were dispatched and have not ended.
    pub(super) fn at_work(&self) -> impl Iterator<Item = &TaskSummary> {
        self.tasks().skip(1).filter(|task| !task.status.is_terminal())
    }

    /// Whether everybody has ended.
    pub(super) fn is_quiet(&self) -> bool {
        self.tasks().all(|task| task.status.is_terminal())
    }

    /// What is known of the tree at the end.
    pub(super) fn into_family(self) -> Option<Family> {
        self.family
    }

    /// Whether the task at the top has ended.
    pub(super) fn is_over(&self) -> bool {
        self.tasks().next().is_some_and(|top| top.status.is_terminal())
    }

    /// A call, if it is known.
    pub(super) fn call(&self, task_id: &TaskId, call: &ToolCallId) -> Option<&Call> {
        self.calls.get(&(task_id.clone(), call.clone()))
    }

    /// Calls that run just now.
    pub(super) fn running(&self) -> impl Iterator<Item = (&TaskId, &Call, Instant)> {
        self.calls
            .iter()
            .filter(|(_, call)| !call.is_over)
            .filter_map(|((task_id, _), call)| Some((task_id, call, call.started?.1)))
    }

    /// Calls of a task that are over.
    pub(super) fn done<'a>(&'a self, of: &'a TaskId) -> impl Iterator<Item = &'a Call> {
        let own = self.calls.iter().filter(move |((task_id, _), _)| task_id == of);
        own.map(|(_, call)| call).filter(|call| call.is_over)
    }

    /// Whether a task has begun to use its tools.
    pub(super) fn has_begun(&self, of: &TaskId) -> bool {
        self.calls.iter().any(|((task_id, _), call)| task_id == of && call.started.is_some())
    }

    /// Tasks whose model is answering.
    pub(super) fn thinking(&self) -> impl Iterator<Item = &TaskId> {
        self.thinking.iter()
    }

    /// Whether somebody's word is waited for.
    pub(super) fn is_asking(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether a task was dispatched.
    pub(super) fn is_below(&self, task_id: &TaskId) -> bool {
        self.tasks().skip(1).any(|task| task.task_id == *task_id)
    }

    /// Every task that is known, the top first.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &TaskSummary> {
        self.family.iter().flat_map(|family| family.members().iter().map(|task| &task.summary))
    }
}
