//! The tree of tasks as its events describe it: the tasks, the running calls, the pending approvals.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use antiphon_core::{
    AgentState, ApprovalId, Event, EventBody, Message, TaskId, TaskSummary, ToolCallId,
};
use antiphon_view::{TaskDetail, TaskTree, tool_call_title};
use chrono::{DateTime, Utc};

/// Calls that are kept. A later one is shown without its title and time.
const CALLS_MAX: usize = 10_000;

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) title: String,
    /// When it started: the time in the journal, and the local clock.
    pub(crate) started: Option<(DateTime<Utc>, Instant)>,
    /// It has a result.
    pub(crate) is_done: bool,
}

/// The tree of tasks of the demo.
#[derive(Default)]
pub(crate) struct ObservedTree {
    tree: Option<TaskTree>,
    calls: BTreeMap<(TaskId, ToolCallId), Call>,
    thinking: BTreeSet<TaskId>,
    pending_approvals: BTreeSet<ApprovalId>,
    /// How many approvals were requested.
    pub(crate) approvals: usize,
    /// When the first agents were dispatched.
    pub(crate) dispatched: Option<Instant>,
}

impl ObservedTree {
    /// Applies an event.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a new event changes only the readers that show it"
    )]
    pub(crate) fn apply(&mut self, event: &Event, now: Instant) {
        self.apply_to_tree(event);
        let call = |id: &ToolCallId| (event.task_id.clone(), id.clone());
        match &event.body {
            EventBody::MessageAppended(appended) => match &*appended.message {
                Message::Assistant(answer) => {
                    self.thinking.remove(&event.task_id);
                    for made in answer.tool_calls().take(CALLS_MAX - self.calls.len()) {
                        let title = tool_call_title(made);
                        let new = Call { title, started: None, is_done: false };
                        self.calls.insert(call(&made.id), new);
                    }
                }
                Message::ToolResult(result) => {
                    if let Some(call) = self.calls.get_mut(&call(&result.tool_call_id)) {
                        call.is_done = true;
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
            EventBody::ApprovalRequested(requested) => {
                self.approvals += 1;
                self.pending_approvals.insert(requested.approval_id.clone());
            }
            EventBody::ApprovalDecided(decided) => {
                self.pending_approvals.remove(&decided.approval_id);
            }
            EventBody::Dispatched(_) => {
                self.dispatched.get_or_insert(now);
            }
            EventBody::StatusChanged(change) if change.status.is_terminal() => {
                self.thinking.remove(&event.task_id);
            }
            _ => {}
        }
    }

    fn apply_to_tree(&mut self, event: &Event) {
        match (&mut self.tree, &event.body) {
            (Some(tree), _) => {
                tree.apply(event);
            }
            (None, EventBody::TaskCreated(created)) => {
                let summary = TaskSummary::created(event.task_id.clone(), created, event.at);
                self.tree = TaskTree::new(&event.task_id, vec![summary]);
                if let Some(tree) = &mut self.tree {
                    tree.set_detail(0, TaskDetail::created(created));
                }
            }
            (None, _) => {}
        }
    }

    /// The tree; absent until its top was created.
    pub(crate) fn tree(&self) -> Option<&TaskTree> {
        self.tree.as_ref()
    }

    /// The name of the agent of a task.
    pub(crate) fn agent(&self, task_id: &TaskId) -> &str {
        self.tasks()
            .find(|task| task.task_id == *task_id)
            .map_or("unknown", |task| task.agent.as_str())
    }

    /// The descendants that have not ended.
    pub(crate) fn running_descendants(&self) -> impl Iterator<Item = &TaskSummary> {
        self.tasks().skip(1).filter(|task| !task.status.is_terminal())
    }

    /// Whether every task has ended.
    pub(crate) fn all_ended(&self) -> bool {
        self.tasks().all(|task| task.status.is_terminal())
    }

    pub(crate) fn into_tree(self) -> Option<TaskTree> {
        self.tree
    }

    /// Whether the task at the top has ended.
    pub(crate) fn top_ended(&self) -> bool {
        self.tasks().next().is_some_and(|top| top.status.is_terminal())
    }

    /// A call; absent when it was made before the tree was observed.
    pub(crate) fn call(&self, task_id: &TaskId, call: &ToolCallId) -> Option<&Call> {
        self.calls.get(&(task_id.clone(), call.clone()))
    }

    /// The running calls, and when each started.
    pub(crate) fn running_calls(&self) -> impl Iterator<Item = (&TaskId, &Call, Instant)> {
        self.calls
            .iter()
            .filter(|(_, call)| !call.is_done)
            .filter_map(|((task_id, _), call)| Some((task_id, call, call.started?.1)))
    }

    /// The calls of a task that have a result.
    pub(crate) fn done_calls<'a>(&'a self, of: &'a TaskId) -> impl Iterator<Item = &'a Call> {
        let own = self.calls.iter().filter(move |((task_id, _), _)| task_id == of);
        own.map(|(_, call)| call).filter(|call| call.is_done)
    }

    /// Whether a task has started a tool call.
    pub(crate) fn has_called_tools(&self, of: &TaskId) -> bool {
        self.calls.iter().any(|((task_id, _), call)| task_id == of && call.started.is_some())
    }

    /// The tasks whose model is answering.
    pub(crate) fn thinking(&self) -> impl Iterator<Item = &TaskId> {
        self.thinking.iter()
    }

    /// Whether an approval is pending.
    pub(crate) fn needs_approval(&self) -> bool {
        !self.pending_approvals.is_empty()
    }

    /// Whether a task is below the top.
    pub(crate) fn is_descendant(&self, task_id: &TaskId) -> bool {
        self.tasks().skip(1).any(|task| task.task_id == *task_id)
    }

    /// Every task, the top first.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = &TaskSummary> {
        self.tree.iter().flat_map(|tree| tree.tasks().iter().map(|task| &task.summary))
    }
}
