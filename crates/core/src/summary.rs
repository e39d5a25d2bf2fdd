//! Summaries: what the journal keeps at hand beside its events.
//!
//! They hold nothing that the events do not: each is a fold over them, written in the same
//! transaction. The fold is here, so that every journal keeps the same.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    AgentState, AgentStatus, EventBody, InputBlock, Message, MessageQueued, ModelRef, Position,
    Seq, SessionId, StateChanged, TaskCreated, TaskId, TaskStatus, Usage, UserMessage, WaitingFor,
    visible,
};

/// Who orders are told to have been carried out by.
pub const ORDERS: &str = "orders";

/// Characters of a title or a preview.
const LINE_CHARS_MAX: usize = 200;

/// One task at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskSummary {
    /// Which.
    pub task_id: TaskId,
    /// Who works on it.
    pub agent: String,
    /// The conversation it belongs to.
    pub session_id: SessionId,
    /// The task that dispatched it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    /// The task at the top of its tree, which may be itself.
    pub root: TaskId,
    /// The key that pays for it; the owner when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer: Option<String>,
    /// Who answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// How far it got.
    pub status: TaskStatus,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// The first line of what it was asked.
    pub title: String,
    /// The first line of what it last said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Its last event.
    pub seq: Seq,
    /// Answers of the model.
    pub turns: u32,
    /// Calls of tools.
    pub calls: u32,
    /// Messages in it.
    pub messages: u64,
    /// What it took, by model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spent: BTreeMap<String, Usage>,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
    /// When something last happened.
    pub last_event_at: DateTime<Utc>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
}

impl TaskSummary {
    /// A task that has just been accepted.
    pub fn created(task_id: TaskId, created: &TaskCreated, at: DateTime<Utc>) -> Self {
        Self {
            agent: created.agent.clone(),
            session_id: created.session_id.clone(),
            parent: created.parent.clone(),
            root: created.root.clone().unwrap_or_else(|| task_id.clone()),
            payer: created.payer.clone(),
            model: created.model.clone(),
            status: TaskStatus::Pending,
            waiting_for: None,
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

    /// Adds what happened next.
    pub fn apply(&mut self, body: &EventBody, at: DateTime<Utc>) {
        self.seq.0 += 1;
        self.last_event_at = at;
        match body {
            EventBody::StatusChanged(change) => {
                self.status = change.status;
                self.waiting_for = change.waiting_for;
                self.ended_at = change.status.is_terminal().then_some(at);
            }
            EventBody::MessageAppended(appended) => {
                self.messages += 1;
                match &*appended.message {
                    Message::User(user) if self.title.is_empty() => self.title = title(user),
                    Message::Assistant(answer) => {
                        let said = line(&answer.text());
                        self.preview = (!said.is_empty()).then_some(said).or(self.preview.take());
                    }
                    Message::User(_) | Message::ToolResult(_) => {}
                }
            }
            EventBody::ToolStarted(_) => self.calls = self.calls.saturating_add(1),
            EventBody::UsageRecorded(recorded) => {
                *self.spent.entry(recorded.model.clone()).or_default() += recorded.usage;
                let turn = u32::from(recorded.purpose.is_none());
                self.turns = self.turns.saturating_add(turn);
            }
            EventBody::HandedOver(over) => {
                self.agent.clone_from(&over.agent);
                self.model.clone_from(&over.model);
            }
            EventBody::TaskCreated(_)
            | EventBody::StateChanged(_)
            | EventBody::MessageQueued(_)
            | EventBody::ApprovalRequested(_)
            | EventBody::ApprovalDecided(_)
            | EventBody::ToolRefused(_)
            | EventBody::ToolRequested(_)
            | EventBody::Dispatched(_)
            | EventBody::Awaited(_)
            | EventBody::Relayed(_)
            | EventBody::RequestSent(_)
            | EventBody::Replied(_)
            | EventBody::BudgetRaised(_)
            | EventBody::OutputRejected(_)
            | EventBody::Compacted(_) => {}
        }
    }

    /// Whether it is only what is kept of an order. An agent may have the same name: its tasks do
    /// something.
    pub fn is_record(&self) -> bool {
        self.agent == ORDERS
            && self.parent.is_none()
            && self.model.is_none()
            && self.status == TaskStatus::Completed
            && self.turns == 0
    }

    /// What it took in all.
    pub fn usage(&self) -> Usage {
        let mut total = Usage::default();
        for usage in self.spent.values() {
            total += *usage;
        }
        total
    }
}

/// One conversation at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionSummary {
    /// Which.
    pub session_id: SessionId,
    /// The title of its first task.
    pub title: String,
    /// Tasks in it.
    pub tasks: u64,
    /// The newest of them.
    pub last_task: TaskId,
    /// How far that one got.
    pub status: TaskStatus,
    /// When its first task was accepted.
    pub created_at: DateTime<Utc>,
    /// When something last happened in its newest task.
    pub updated_at: DateTime<Utc>,
}

/// A live agent: it works on a task that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveAgent {
    /// Its definition.
    pub agent: String,
    /// What it works on.
    pub task_id: TaskId,
    /// Where it stands.
    #[serde(flatten)]
    pub status: AgentStatus,
}

impl LiveAgent {
    /// The agent of a task after a move, which may be the first of a fresh one.
    pub fn moved(
        before: Option<AgentStatus>,
        change: &StateChanged,
        at: DateTime<Utc>,
    ) -> AgentStatus {
        let mut status = before
            .filter(|status| status.id == change.agent_id)
            .unwrap_or_else(|| AgentStatus::started(change.agent_id, at));
        if change.from == AgentState::Idle && change.to == AgentState::Thinking {
            status.messages_processed += 1;
        }
        status.state = change.to;
        status.last_activity = at;
        status
    }
}

/// A message that waits in the inbox of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Queued {
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

/// The first line that says something, without what cannot be seen.
fn line(text: &str) -> String {
    let seen = text.lines().map(visible).map(|line| line.trim().to_owned());
    let first = seen.into_iter().find(|line| !line.is_empty()).unwrap_or_default();
    first.chars().take(LINE_CHARS_MAX).collect()
}
