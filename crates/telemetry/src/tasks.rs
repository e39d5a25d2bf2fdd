//! Tracks the open tasks from their events, and reports what each event brings to an end.
//!
//! It stores start times until the matching end. An activity whose start was not seen has no start
//! time. Everything is bounded; above a limit, an activity is treated as if its start had not been
//! seen. A task that ended is forgotten.

pub(crate) mod model_call;
pub(crate) mod pending;
pub(crate) mod tool_calls;

use std::collections::HashMap;
use std::sync::Arc;

use antiphon_core::{
    AgentState, Event, EventBody, MessageQueued, ModelRef, Position, Purpose, StateChanged,
    StatusChanged, TaskCreated, TaskId, TaskStatus, TaskSummary, ToolCallId, Usage, WaitingFor,
};
use chrono::{DateTime, Utc};

use crate::tasks::model_call::{ModelCall, ModelCallEnded, error_code};
use crate::tasks::pending::{ApprovalEnded, PendingItems, TakenMessage};
use crate::tasks::tool_calls::{OpenToolCalls, ToolCallEnded};
use crate::trace::span::cut;

/// Most open tasks that are tracked. Above the limit, single events are counted, without durations
/// and spans.
pub const TASKS_OPEN_MAX: usize = 100_000;

/// The open tasks.
#[derive(Debug, Default)]
pub(crate) struct OpenTasks {
    tasks: HashMap<TaskId, OpenTask>,
    seen: Position,
    not_followed: u64,
    questions: usize,
    arrivals: usize,
}

/// Facts about a task that rarely change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskFacts {
    pub(crate) task_id: TaskId,
    /// The agent that works on the task now.
    pub(crate) agent: String,
    /// The agent that the task was created for.
    pub(crate) first_agent: String,
    pub(crate) session_id: String,
    pub(crate) parent: Option<TaskId>,
    pub(crate) root: TaskId,
    pub(crate) model: Option<ModelRef>,
    pub(crate) answer_tokens_max: Option<u32>,
    pub(crate) began: DateTime<Utc>,
}

/// An activity that ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum EndedActivity {
    /// A step, from thinking to idle.
    Step {
        began: DateTime<Utc>,
    },
    ModelCall(ModelCallEnded),
    Call(ToolCallEnded),
    Approval(ApprovalEnded),
    /// A message was taken out of the inbox.
    TakenMessage(TakenMessage),
    Task(TaskEnded),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskEnded {
    pub(crate) status: TaskStatus,
    /// A code for what went wrong, never a text.
    pub(crate) error: Option<String>,
    pub(crate) usage: Usage,
    pub(crate) turns: u64,
}

/// What an event changed.
#[derive(Debug, Default)]
pub(crate) struct EventEffect {
    /// The task of the event, if it is tracked.
    pub(crate) task: Option<Arc<TaskFacts>>,
    pub(crate) ended: Vec<EndedActivity>,
}

#[derive(Debug)]
struct OpenTask {
    facts: Arc<TaskFacts>,
    first: Position,
    /// False while the messages are those of an earlier conversation.
    started: bool,
    last_at: DateTime<Utc>,
    step: Option<DateTime<Utc>>,
    chat: Option<ModelCall>,
    calls: OpenToolCalls,
    waiting: PendingItems,
    usage: Usage,
    turns: u64,
    /// Whether the task waits until its model can be reached.
    waits_for_model: bool,
}

impl OpenTasks {
    /// Applies the next event. `None` when it was applied before.
    pub(crate) fn apply(&mut self, event: &Event) -> Option<EventEffect> {
        if event.position <= self.seen {
            return None;
        }
        self.seen = event.position;
        if let EventBody::TaskCreated(created) = &event.body {
            return Some(self.open(created, event));
        }
        let Some(open) = self.tasks.get_mut(&event.task_id) else {
            return Some(EventEffect { task: None, ended: unfollowed(event) });
        };
        let mut ended = Vec::new();
        let (questions, arrivals) = open.waiting.len();
        open.apply(event, &mut ended);
        let now = open.waiting.len();
        self.questions = self.questions + now.0 - questions;
        self.arrivals = self.arrivals + now.1 - arrivals;
        let task = Some(Arc::clone(&open.facts));
        if event.body.ends_task() {
            self.tasks.remove(&event.task_id);
        }
        Some(EventEffect { task, ended })
    }

    pub(crate) fn seen(&self) -> Position {
        self.seen
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Number of pending approvals and of queued messages.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        (self.questions, self.arrivals)
    }

    /// Number of tasks above the limit.
    pub(crate) fn not_followed(&self) -> u64 {
        self.not_followed
    }

    /// Reading the journal after this position misses nothing of the open tasks.
    pub(crate) fn needed_from(&self) -> Position {
        let first = self.tasks.values().map(|open| open.first).min();
        first.map_or(self.seen, |first| Position(first.0.saturating_sub(1)))
    }

    /// Sequence number of the event that started a running call.
    pub(crate) fn call_began(&self, task_id: &TaskId, call: &ToolCallId) -> Option<u64> {
        self.tasks.get(task_id)?.calls.began(call)
    }

    /// Tracks a task whose first events are not read: what its summary says of them. What it does now, such as a model
    /// call, is not known.
    pub(crate) fn resume(&mut self, task: &TaskSummary) {
        if self.tasks.len() >= TASKS_OPEN_MAX || self.tasks.contains_key(&task.task_id) {
            return;
        }
        let facts = TaskFacts {
            task_id: task.task_id.clone(),
            agent: cut(&task.agent).to_owned(),
            first_agent: cut(&task.agent).to_owned(),
            session_id: task.session_id.to_string(),
            parent: task.parent.clone(),
            root: task.root.clone(),
            model: task.model.clone(),
            answer_tokens_max: None,
            began: task.created_at,
        };
        let mut open = OpenTask::new(facts, self.seen, task.last_event_at);
        open.started = task.status != TaskStatus::Pending;
        (open.usage, open.turns) = (task.usage(), u64::from(task.turns));
        self.tasks.insert(task.task_id.clone(), open);
    }

    fn open(&mut self, created: &TaskCreated, event: &Event) -> EventEffect {
        if self.tasks.contains_key(&event.task_id) {
            // A journal never creates a task twice: the second event is ignored.
            return EventEffect::default();
        }
        if self.tasks.len() >= TASKS_OPEN_MAX {
            self.not_followed += 1;
            return EventEffect::default();
        }
        let facts = TaskFacts {
            task_id: event.task_id.clone(),
            agent: cut(&created.agent).to_owned(),
            first_agent: cut(&created.agent).to_owned(),
            session_id: created.session_id.to_string(),
            parent: created.parent.clone(),
            root: created.root.clone().unwrap_or_else(|| event.task_id.clone()),
            model: created.model.clone(),
            answer_tokens_max: created.limits.answer_tokens_max.map(std::num::NonZeroU32::get),
            began: event.at,
        };
        let open = OpenTask::new(facts, event.position, event.at);
        let facts = Arc::clone(&open.facts);
        self.tasks.insert(event.task_id.clone(), open);
        EventEffect { task: Some(facts), ended: Vec::new() }
    }
}

impl OpenTask {
    fn new(facts: TaskFacts, first: Position, last_at: DateTime<Utc>) -> Self {
        Self {
            facts: Arc::new(facts),
            first,
            started: false,
            last_at,
            step: None,
            waits_for_model: false,
            chat: None,
            calls: OpenToolCalls::default(),
            waiting: PendingItems::default(),
            usage: Usage::default(),
            turns: 0,
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a new event changes only the readers that show it"
    )]
    fn apply(&mut self, event: &Event, ended: &mut Vec<EndedActivity>) {
        let at = event.at;
        match &event.body {
            EventBody::StatusChanged(change) => self.status(change, event, ended),
            EventBody::StateChanged(change) => self.state_changed(change, event, ended),
            EventBody::MessageAppended(appended) => {
                let taken = appended.queued.and_then(|id| self.waiting.take(id, at));
                ended.extend(taken.map(EndedActivity::TakenMessage));
                // The messages of an earlier conversation did not happen in this task.
                if self.started {
                    ended
                        .extend(self.calls.message(&appended.message, at).map(EndedActivity::Call));
                    if let Some(over) =
                        self.chat.as_mut().and_then(|c| c.message(&appended.message, at))
                    {
                        self.chat = None;
                        ended.push(EndedActivity::ModelCall(over));
                    }
                }
            }
            EventBody::UsageRecorded(recorded) => {
                self.usage += recorded.usage;
                self.turns += u64::from(recorded.purpose.is_none());
                if recorded.purpose == Some(Purpose::Compaction) {
                    let began = (self.last_at, event.seq.0);
                    ended.push(EndedActivity::ModelCall(ModelCallEnded::outside_of_turn(
                        recorded, began, at,
                    )));
                } else if let Some(chat) = &mut self.chat {
                    chat.usage_recorded(recorded, at);
                }
            }
            EventBody::Compacted(_) => {
                // After compaction, the model is called again.
                if let Some(chat) = &mut self.chat {
                    (chat.began, chat.seq) = (at, event.seq.0);
                }
            }
            EventBody::MessageQueued(queued) => self.queue(queued, at),
            EventBody::Replied(replied)
                if replied.status != antiphon_core::ResponseStatus::Accepted =>
            {
                self.waiting.forget(replied.in_reply_to);
            }
            EventBody::ApprovalRequested(request) => {
                self.waiting.ask(&request.approval_id, at);
            }
            EventBody::ApprovalDecided(decided) => {
                ended.push(EndedActivity::Approval(self.waiting.decide(decided, at)));
            }
            EventBody::HandedOver(over) => {
                let facts = Arc::make_mut(&mut self.facts);
                cut(&over.agent).clone_into(&mut facts.agent);
                facts.model.clone_from(&over.model);
                self.calls.begin(event);
            }
            EventBody::ToolStarted(_)
            | EventBody::ToolRefused(_)
            | EventBody::ToolRequested(_)
            | EventBody::Dispatched(_)
            | EventBody::Awaited(_)
            | EventBody::RequestSent(_) => self.calls.begin(event),
            EventBody::Relayed(_) => self.started = true,
            _ => {}
        }
        self.last_at = at;
    }

    fn queue(&mut self, queued: &MessageQueued, at: DateTime<Utc>) {
        if let Some(id) = queued.replaces {
            self.waiting.forget(id);
        }
        self.waiting.queue(queued, at);
    }

    /// The running model call gets no answer.
    fn interrupt(&mut self, word: &str, at: DateTime<Utc>, ended: &mut Vec<EndedActivity>) {
        ended.extend(
            self.chat.take().map(|chat| EndedActivity::ModelCall(chat.interrupt(word, at))),
        );
    }

    fn state_changed(
        &mut self,
        change: &StateChanged,
        event: &Event,
        ended: &mut Vec<EndedActivity>,
    ) {
        if change.from == change.to {
            return;
        }
        self.started = true;
        match change.to {
            AgentState::Thinking => {
                // A new agent starts to think: the call of the previous one was interrupted.
                self.interrupt("interrupted", event.at, ended);
                self.step = Some(event.at);
                self.chat = Some(ModelCall::begin(&self.facts, event.at, event.seq.0));
            }
            AgentState::ToolCall | AgentState::Reflecting => {
                // An agent that resumes a step in the middle passes through thinking without a
                // model call.
                self.chat.take_if(|chat| !chat.is_broken());
            }
            AgentState::Idle => {
                self.interrupt("interrupted", event.at, ended);
                ended.extend(self.step.take().map(|began| EndedActivity::Step { began }));
            }
        }
    }

    fn status(&mut self, change: &StatusChanged, event: &Event, ended: &mut Vec<EndedActivity>) {
        self.started |= change.status == TaskStatus::Running;
        let waited = std::mem::replace(&mut self.waits_for_model, false);
        if change.waiting_for == Some(WaitingFor::Model) {
            // The model is asked again after the wait.
            self.waits_for_model = true;
            self.interrupt(&error_code(change.detail.as_ref()), event.at, ended);
            self.chat = Some(ModelCall::begin(&self.facts, event.at, event.seq.0));
        } else if waited && let Some(chat) = &mut self.chat {
            (chat.began, chat.seq) = (event.at, event.seq.0);
        }
        if !change.status.is_terminal() {
            return;
        }
        if waited {
            // It ended while it waited: no call was running.
            self.chat = None;
        }
        let error = match change.status {
            TaskStatus::Failed => Some(error_code(change.detail.as_ref())),
            TaskStatus::Pending
            | TaskStatus::Running
            | TaskStatus::InputRequired
            | TaskStatus::Completed
            | TaskStatus::Canceled => None,
        };
        let word = error.as_deref().unwrap_or(change.status.as_str());
        self.interrupt(word, event.at, ended);
        ended.extend(self.calls.end(event.at).map(EndedActivity::Call));
        ended.extend(self.waiting.end(event.at).map(EndedActivity::Approval));
        let task = TaskEnded { status: change.status, error, usage: self.usage, turns: self.turns };
        ended.push(EndedActivity::Task(task));
    }
}

/// What an event of an untracked task ends.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a new event changes only the readers that show it"
)]
fn unfollowed(event: &Event) -> Vec<EndedActivity> {
    match &event.body {
        EventBody::MessageAppended(appended) => OpenToolCalls::default()
            .message(&appended.message, event.at)
            .map(EndedActivity::Call)
            .into_iter()
            .collect(),
        EventBody::ApprovalDecided(decided) => {
            vec![EndedActivity::Approval(PendingItems::default().decide(decided, event.at))]
        }
        EventBody::StatusChanged(change) if change.status.is_terminal() => {
            let error =
                (change.status == TaskStatus::Failed).then(|| error_code(change.detail.as_ref()));
            let (status, usage) = (change.status, Usage::default());
            vec![EndedActivity::Task(TaskEnded { status, error, usage, turns: 0 })]
        }
        _ => Vec::new(),
    }
}
