//! Summaries: the rows of the journal's index.
//!
//! Each summary is a fold over events. A journal writes it in the transaction of the events. The
//! fold is here, so that every journal has the same index.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    AgentState, AgentStatus, EventBody, EventVisitor, HandedOver, ImportedTimes, InputBlock,
    Message, MessageAppended, MessageQueued, ModelRef, OutageWait, Position, RunsOn, Seq,
    SessionId, StateChanged, StatusChanged, TaskCreated, TaskId, TaskRestored, TaskStatus,
    ToolStarted, Usage, UsageRecorded, UserMessage, WaitingFor, visible,
};

/// Name of the agent of tasks that only record an order, see [`TaskSummary::is_record`].
pub const ORDERS: &str = "orders";

/// Most characters of a title or a preview.
const LINE_CHARS_MAX: usize = 200;

/// Summary of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskSummary {
    /// Id of the task.
    pub task_id: TaskId,
    /// Name of the agent that works on the task.
    pub agent: String,
    /// Id of the session the task belongs to.
    pub session_id: SessionId,
    /// Id of the task that dispatched it. Absent for a root task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// Id of the root of its tree; its own id for a root task.
    pub root: TaskId,
    /// Id of the API key that pays for the task. Absent: the owner pays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
    /// Model of the task. Absent when the task has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Where the task runs. Absent in older JSON: in the process of the orchestrator.
    #[serde(default)]
    pub runs_on: RunsOn,
    /// Status of the task.
    pub status: TaskStatus,
    /// What the task waits for: an `input_required` task for a person or a client, a `running` task
    /// for its `model` or `peer`. Lists also say what a task on a peer waits for there. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// Why the task waits for its model, its peer or the journal, and when it tries again. Absent: it waits for none of
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<OutageWait>,
    /// When the conversation began and was last changed, where it was imported from. Absent: it was not imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedTimes>,
    /// First line of the first user message, at most 200 characters.
    pub title: String,
    /// First line of the last text of the model, at most 200 characters. Absent before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Seq of the last event of the task.
    pub seq: Seq,
    /// Number of model answers.
    pub turns: u32,
    /// Number of tool calls that started.
    pub calls: u32,
    /// Number of messages in the conversation of the task.
    pub messages: u64,
    /// Tokens used, by model as `PROVIDER/MODEL`. Absent when none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spent: BTreeMap<String, Usage>,
    /// Time of creation.
    pub created_at: DateTime<Utc>,
    /// Time of the last event.
    pub last_event_at: DateTime<Utc>,
    /// Time of the terminal status. Absent before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
}

impl TaskSummary {
    /// Summary of a task after its first event.
    pub fn created(task_id: TaskId, created: &TaskCreated, at: DateTime<Utc>) -> Self {
        Self {
            agent: created.agent.clone(),
            session_id: created.session_id.clone(),
            parent: created.parent.clone(),
            root: created.root.clone().unwrap_or_else(|| task_id.clone()),
            payer: created.payer.clone(),
            model: created.model.clone(),
            runs_on: created.runner.as_ref().map_or_else(RunsOn::default, RunsOn::from),
            status: TaskStatus::Pending,
            waiting_for: None,
            wait: None,
            imported: created.imported,
            title: String::new(),
            preview: None,
            seq: Seq(1),
            turns: 0,
            calls: 0,
            messages: 0,
            spent: BTreeMap::new(),
            created_at: at,
            last_event_at: at,
            ended_at: None,
            task_id,
        }
    }

    /// Applies the next event of the task.
    pub fn apply(&mut self, body: &EventBody, at: DateTime<Utc>) {
        self.seq.0 += 1;
        self.last_event_at = at;
        body.visit(self);
    }

    /// Whether the task only records an order that was carried out without a model. An agent may
    /// have the name [`ORDERS`]: its tasks have turns.
    pub fn is_record(&self) -> bool {
        self.agent == ORDERS
            && self.parent.is_none()
            && self.model.is_none()
            && self.status == TaskStatus::Completed
            && self.turns == 0
    }

    /// When the session began whose first task this is.
    pub fn session_created_at(&self) -> DateTime<Utc> {
        self.imported.map_or(self.created_at, |imported| imported.created_at)
    }

    /// When the session was last changed whose newest task this is.
    pub fn session_updated_at(&self) -> DateTime<Utc> {
        self.imported.map_or(self.last_event_at, |imported| imported.updated_at)
    }

    /// Tokens used by all models.
    pub fn usage(&self) -> Usage {
        let mut total = Usage::default();
        for usage in self.spent.values() {
            total += *usage;
        }
        total
    }
}

impl EventVisitor for TaskSummary {
    fn status_changed(&mut self, change: &StatusChanged) {
        self.status = change.status;
        self.waiting_for = change.waiting_for;
        self.wait = OutageWait::of(change).map(OutageWait::shortened);
        self.ended_at = change.status.is_terminal().then_some(self.last_event_at);
    }

    fn message_appended(&mut self, appended: &MessageAppended) {
        self.messages += 1;
        match &*appended.message {
            Message::User(user) if self.title.is_empty() => self.title = title(user),
            // Another answer takes its place.
            Message::Assistant(_) if appended.superseded => {}
            Message::Assistant(answer) => {
                let text = line(&answer.text());
                self.preview = (!text.is_empty()).then_some(text).or(self.preview.take());
            }
            Message::User(_) | Message::ToolResult(_) => {}
        }
    }

    fn tool_started(&mut self, _: &ToolStarted) {
        self.calls = self.calls.saturating_add(1);
    }

    fn usage_recorded(&mut self, recorded: &UsageRecorded) {
        *self.spent.entry(recorded.summed_under()).or_default() += recorded.usage;
        let turn = u32::from(recorded.purpose.is_none());
        self.turns = self.turns.saturating_add(turn);
    }

    fn task_restored(&mut self, _: &TaskRestored) {
        self.runs_on = RunsOn::default();
    }

    fn handed_over(&mut self, over: &HandedOver) {
        self.agent.clone_from(&over.agent);
        self.model.clone_from(&over.model);
    }
}

/// Summary of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionSummary {
    /// Id of the session.
    pub session_id: SessionId,
    /// Title of its first task.
    pub title: String,
    /// Number of its tasks.
    pub tasks: u64,
    /// Id of its newest task.
    pub last_task: TaskId,
    /// Status of its newest task.
    pub status: TaskStatus,
    /// Time of creation of its first task; of an imported session, as its file says.
    pub created_at: DateTime<Utc>,
    /// Time of the last event of its newest task; of an imported session that was not continued, as its file says.
    pub updated_at: DateTime<Utc>,
}

/// A live agent: an agent that works on a task that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveAgent {
    /// Name of the agent's definition.
    pub agent: String,
    /// Id of its task.
    pub task_id: TaskId,
    /// Its id, state and counters.
    #[serde(flatten)]
    pub status: AgentStatus,
}

impl LiveAgent {
    /// Status of the agent of a task after the next event of the task: `None` before its first state change, and
    /// when the task has ended.
    pub fn after(
        before: Option<AgentStatus>,
        body: &EventBody,
        at: DateTime<Utc>,
    ) -> Option<AgentStatus> {
        if body.ends_task() {
            return None;
        }
        if let EventBody::StateChanged(change) = body {
            return Some(Self::after_change(before, change, at));
        }
        let mut status = before?;
        if let EventBody::MessageAppended(MessageAppended { queued: Some(_), .. }) = body {
            status.read(at);
        }
        Some(status)
    }

    fn after_change(
        before: Option<AgentStatus>,
        change: &StateChanged,
        at: DateTime<Utc>,
    ) -> AgentStatus {
        let mut status = before
            .filter(|status| status.id == change.agent_id)
            .unwrap_or_else(|| AgentStatus::started(change.agent_id, at));
        // What a task was created with did not come through its inbox.
        if change.enters(AgentState::Thinking) && status.messages_processed == 0 {
            status.messages_processed = 1;
        }
        status.state = change.to;
        status.last_activity = at;
        status
    }
}

/// A message that waits in the inbox of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueuedMessage {
    /// Id of the task whose inbox holds the message.
    pub task_id: TaskId,
    /// Position of the event that queued the message.
    pub position: Position,
    /// Time of arrival.
    pub at: DateTime<Utc>,
    /// The message, as the event `message_queued` records it.
    #[serde(flatten)]
    pub message: MessageQueued,
}

fn title(user: &UserMessage) -> String {
    match user.content.first() {
        Some(InputBlock::Text(text)) => line(&text.text),
        Some(InputBlock::Image(_)) => "(an image)".to_owned(),
        None => String::new(),
    }
}

/// The first line with visible characters, without invisible ones.
fn line(text: &str) -> String {
    let seen = text.lines().map(visible).map(|line| line.trim().to_owned());
    let first = seen.into_iter().find(|line| !line.is_empty()).unwrap_or_default();
    first.chars().take(LINE_CHARS_MAX).collect()
}
