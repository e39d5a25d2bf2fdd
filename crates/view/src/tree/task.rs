//! One task of a tree: its summary, and what only its events contain.

use antiphon_core::{
    AgentState, Event, EventBody, Message, OutageWait, Seq, StatusChanged, TaskCreated, TaskStatus,
    TaskSummary, TodoItem, WaitingFor, visible,
};

use crate::question::todo_text;
use crate::wording::{outage_wait_text, tool_call_title, wait_text};

/// Agents that handed a task over: the last so many are kept.
const HANDOVERS_MAX: usize = 16;

/// Characters of the last line of output that are kept.
const OUTPUT_CHARS_MAX: usize = 200;

/// A task of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct TreeTask {
    /// What the journal lists of the task.
    pub summary: TaskSummary,
    /// Index of the task that dispatched it; absent at the top.
    pub parent: Option<usize>,
    /// How many tasks of the tree are above it; 0 at the top.
    pub depth: usize,
    /// Indexes of the tasks it dispatched, in order.
    pub children: Vec<usize>,
    /// What its events contain; absent until they have been read.
    pub detail: Option<TaskDetail>,
    /// The wait until the journal can be written, while there is one.
    pub(super) storage_wait: Option<StorageWait>,
}

/// The wait of a task until the journal can be written. Its summary says so meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StorageWait {
    text: String,
    /// What the journal says that the task waits for.
    recorded: (Option<WaitingFor>, Option<OutageWait>),
}

/// What only the events of a task contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskDetail {
    /// Sequence number of the last event that was applied.
    pub seq: Seq,
    agent: String,
    /// Kind of the runner the task runs on; absent when this orchestrator runs it.
    pub runner: Option<String>,
    /// Names of the agents that handed the task over, the first one first.
    pub handovers: Vec<String>,
    /// The last line of output: a tool call, a line of an answer, the result or the error.
    pub output: Option<String>,
    /// Why the task waits for its model, while it does.
    wait: Option<String>,
    resident: bool,
    agent_state: AgentState,
    /// The list of things to do that the agent keeps.
    pub todo: Vec<TodoItem>,
}

impl TreeTask {
    /// Applies the next event; an event it has seen changes nothing. Returns whether the summary
    /// changed.
    pub fn apply(&mut self, event: &Event) -> bool {
        if let Some(detail) = &mut self.detail {
            detail.apply(event);
        }
        let is_next = event.seq.0 == self.summary.seq.0 + 1;
        if is_next {
            // The journal can be written again.
            self.set_storage_wait(None);
            self.summary.apply(&event.body, event.at);
        }
        is_next
    }

    /// Sets the wait until the journal can be written. Returns whether it began or ended.
    pub(super) fn set_storage_wait(&mut self, wait: Option<&OutageWait>) -> bool {
        match (wait, self.storage_wait.take()) {
            (Some(_), Some(waits)) => {
                self.storage_wait = Some(waits);
                false
            }
            (Some(wait), None) => {
                let waiting_for = self.summary.waiting_for.replace(WaitingFor::Storage);
                let recorded = (waiting_for, self.summary.wait.replace(wait.clone()));
                let text = outage_wait_text(wait);
                self.storage_wait = Some(StorageWait { text, recorded });
                true
            }
            (None, Some(StorageWait { recorded, .. })) => {
                (self.summary.waiting_for, self.summary.wait) = recorded;
                true
            }
            (None, None) => false,
        }
    }

    /// Whether it is the task of a resident agent that waits for an interaction. False while the
    /// detail is absent.
    pub fn is_idle(&self) -> bool {
        let active = matches!(self.summary.status, TaskStatus::Pending | TaskStatus::Running);
        let idle = |detail: &TaskDetail| detail.resident && detail.agent_state == AgentState::Idle;
        active && self.detail.as_ref().is_some_and(idle)
    }

    /// The last line of output; from the summary while the detail has none.
    pub fn output(&self) -> Option<&str> {
        if let Some(wait) = &self.storage_wait {
            return Some(&wait.text);
        }
        let detail = self.detail.as_ref();
        let detail = detail.and_then(|d| d.wait.as_deref().or(d.output.as_deref()));
        detail.or(self.summary.preview.as_deref())
    }
}

impl TaskDetail {
    /// The detail of a task that was just created.
    pub fn created(created: &TaskCreated) -> Self {
        Self {
            seq: Seq(1),
            agent: created.agent.clone(),
            runner: created.runner.as_ref().map(|runner| runner.kind.clone()),
            handovers: Vec::new(),
            output: None,
            wait: None,
            resident: created.resident,
            agent_state: AgentState::Idle,
            todo: Vec::new(),
        }
    }

    /// Applies the next event; an event it has seen changes nothing.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a new event changes only the readers that show it"
    )]
    pub fn apply(&mut self, event: &Event) {
        if event.seq.0 != self.seq.0 + 1 {
            return;
        }
        self.seq = event.seq;
        match &event.body {
            EventBody::HandedOver(over) => {
                if self.handovers.len() == HANDOVERS_MAX {
                    self.handovers.remove(0);
                }
                self.handovers.push(std::mem::replace(&mut self.agent, over.agent.clone()));
            }
            EventBody::MessageAppended(appended) => {
                if let Message::Assistant(answer) = &*appended.message
                    && !appended.superseded
                {
                    let call = answer
                        .tool_calls()
                        .next()
                        .map(|call| format!("→ {}", tool_call_title(call)));
                    self.output = call.or_else(|| last_line(&answer.text())).or(self.output.take());
                }
            }
            EventBody::StatusChanged(change) => {
                self.output = outcome(change).or(self.output.take());
                self.wait = wait_text(change);
            }
            EventBody::StateChanged(change) => self.agent_state = change.to,
            EventBody::TaskRestored(_) => self.runner = None,
            EventBody::TodoChanged(changed) => {
                self.todo.clone_from(&changed.items);
                self.output = todo_text(&changed.items).or(self.output.take());
            }
            _ => {}
        }
    }
}

/// The last line of a result, or of an error.
fn outcome(change: &StatusChanged) -> Option<String> {
    let detail = change.detail.as_ref()?;
    match change.status {
        TaskStatus::Completed if detail.is_null() => None,
        TaskStatus::Completed => match detail.as_str() {
            Some(text) => last_line(text),
            None => last_line(&detail.to_string()),
        },
        TaskStatus::Failed => detail["error"].as_str().and_then(last_line),
        TaskStatus::Pending
        | TaskStatus::Running
        | TaskStatus::InputRequired
        | TaskStatus::Canceled => None,
    }
}

/// The last line that is not blank.
fn last_line(text: &str) -> Option<String> {
    let last = text.lines().rev().map(visible).find(|line| !line.trim().is_empty())?;
    Some(last.trim().chars().take(OUTPUT_CHARS_MAX).collect())
}
