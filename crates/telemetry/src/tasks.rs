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
    AgentState, Event, EventBody, Message, MessageQueued, ModelRef, Position, Purpose,
    StateChanged, StatusChanged, TaskCreated, TaskId, TaskStatus, TaskSummary, ToolCallId, Usage,
    WaitingFor,
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
    /// The agent that the task was created for, if another one works on it now.
    pub(crate) first_agent: Option<String>,
    pub(crate) session_id: String,
    pub(crate) parent: Option<TaskId>,
    /// `None`: the task itself.
    pub(crate) root: Option<TaskId>,
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
    /// The agent has read a message.
    pub(crate) has_read: bool,
}

#[derive(Debug)]
struct OpenTask {
    facts: Arc<TaskFacts>,
    first: Position,
    /// False while the messages are those of an earlier conversation.
    started: bool,
    last_at: DateTime<Utc>,
    usage: Usage,
    turns: u64,
    /// Whether its agent has had a state, and has read a message.
    agent: (bool, bool),
    /// Whether the task waits until its model can be reached.
    waits_for_model: bool,
    /// `None` while nothing is under way: most open tasks are at rest.
    activities: Option<Box<Activities>>,
}

/// What is under way in a task.
#[derive(Debug, Default)]
struct Activities {
    step: Option<DateTime<Utc>>,
    chat: Option<ModelCall>,
    calls: OpenToolCalls,
    waiting: PendingItems,
}

impl Activities {
    fn is_empty(&self) -> bool {
        self.step.is_none()
            && self.chat.is_none()
            && self.calls.is_empty()
            && self.waiting.len() == (0, 0)
    }

    /// The running model call gets no answer.
    fn interrupt(&mut self, word: &str, at: DateTime<Utc>, ended: &mut Vec<EndedActivity>) {
        ended.extend(
            self.chat.take().map(|chat| EndedActivity::ModelCall(chat.interrupt(word, at))),
        );
    }

    fn message(&mut self, message: &Message, at: DateTime<Utc>, ended: &mut Vec<EndedActivity>) {
        ended.extend(self.calls.message(message, at).map(EndedActivity::Call));
        if let Some(over) = self.chat.as_mut().and_then(|chat| chat.message(message, at)) {
            self.chat = None;
            ended.push(EndedActivity::ModelCall(over));
        }
    }

    fn queue(&mut self, queued: &MessageQueued, at: DateTime<Utc>) {
        if let Some(id) = queued.replaces {
            self.waiting.forget(id);
        }
        self.waiting.queue(queued, at);
    }
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
            return Some(EventEffect { ended: unfollowed(event), ..EventEffect::default() });
        };
        let mut ended = Vec::new();
        let (questions, arrivals) = open.waiting();
        open.apply(event, &mut ended);
        let now = open.waiting();
        self.questions = self.questions + now.0 - questions;
        self.arrivals = self.arrivals + now.1 - arrivals;
        let (task, has_read) = (Some(Arc::clone(&open.facts)), open.reads(&event.body));
        if event.body.ends_task() {
            self.tasks.remove(&event.task_id);
        }
        Some(EventEffect { task, ended, has_read })
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
        self.tasks.get(task_id)?.activities.as_ref()?.calls.began(call)
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
            first_agent: None,
            session_id: task.session_id.to_string(),
            parent: task.parent.clone(),
            root: Some(&task.root).filter(|root| **root != task.task_id).cloned(),
            model: task.model.clone(),
            answer_tokens_max: None,
            began: task.created_at,
        };
        let mut open = OpenTask::new(facts, self.seen, task.last_event_at);
        open.started = task.status != TaskStatus::Pending;
        open.agent = (open.started, task.turns > 0);
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
            first_agent: None,
            session_id: created.session_id.to_string(),
            parent: created.parent.clone(),
            root: created.root.clone(),
            model: created.model.clone(),
            answer_tokens_max: created.limits.answer_tokens_max.map(std::num::NonZeroU32::get),
            began: event.at,
        };
        let open = OpenTask::new(facts, event.position, event.at);
        let facts = Arc::clone(&open.facts);
        self.tasks.insert(event.task_id.clone(), open);
        EventEffect { task: Some(facts), ..EventEffect::default() }
    }
}

impl OpenTask {
    fn new(facts: TaskFacts, first: Position, last_at: DateTime<Utc>) -> Self {
        Self {
            facts: Arc::new(facts),
            first,
            started: false,
            last_at,
            usage: Usage::default(),
            turns: 0,
            agent: (false, false),
            waits_for_model: false,
            activities: None,
        }
    }

    /// Whether its agent has read a message, as [`antiphon_core::LiveAgent`] counts them: one from its inbox, or the
    /// one that the task was created with.
    fn reads(&mut self, body: &EventBody) -> bool {
        let (has_state, has_read) = &mut self.agent;
        if let EventBody::MessageAppended(message) = body
            && message.queued.is_some()
            && *has_state
        {
            *has_read = true;
            return true;
        }
        let EventBody::StateChanged(change) = body else { return false };
        *has_state = true;
        let reads_first = change.enters(AgentState::Thinking) && !*has_read;
        *has_read |= reads_first;
        reads_first
    }

    /// Number of pending approvals and of queued messages.
    fn waiting(&self) -> (usize, usize) {
        self.activities.as_ref().map_or((0, 0), |activities| activities.waiting.len())
    }

    fn apply(&mut self, event: &Event, ended: &mut Vec<EndedActivity>) {
        let mut activities = self.activities.take().unwrap_or_default();
        self.apply_to(&mut activities, event, ended);
        self.last_at = event.at;
        self.activities = (!activities.is_empty()).then_some(activities);
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a new event changes only the readers that show it"
    )]
    fn apply_to(
        &mut self,
        activities: &mut Activities,
        event: &Event,
        ended: &mut Vec<EndedActivity>,
    ) {
        let at = event.at;
        match &event.body {
            EventBody::StatusChanged(change) => self.status(activities, change, event, ended),
            EventBody::StateChanged(change) => {
                self.state_changed(activities, change, event, ended);
            }
            EventBody::MessageAppended(appended) => {
                let taken = appended.queued.and_then(|id| activities.waiting.take(id, at));
                ended.extend(taken.map(EndedActivity::TakenMessage));
                // The messages of an earlier conversation did not happen in this task.
                if self.started {
                    activities.message(&appended.message, at, ended);
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
                } else if let Some(chat) = &mut activities.chat {
                    chat.usage_recorded(recorded, at);
                }
            }
            EventBody::Compacted(_) => {
                // After compaction, the model is called again.
                if let Some(chat) = &mut activities.chat {
                    (chat.began, chat.seq) = (at, event.seq.0);
                }
            }
            EventBody::MessageQueued(queued) => activities.queue(queued, at),
            EventBody::Replied(replied)
                if replied.status != antiphon_core::ResponseStatus::Accepted =>
            {
                activities.waiting.forget(replied.in_reply_to);
            }
            EventBody::ApprovalRequested(request) => {
                activities.waiting.ask(&request.approval_id, at);
            }
            EventBody::ApprovalDecided(decided) => {
                ended.push(EndedActivity::Approval(activities.waiting.decide(decided, at)));
            }
            EventBody::HandedOver(over) => {
                let facts = Arc::make_mut(&mut self.facts);
                let before = std::mem::replace(&mut facts.agent, cut(&over.agent).to_owned());
                facts.first_agent.get_or_insert(before);
                facts.model.clone_from(&over.model);
                activities.calls.begin(event);
            }
            EventBody::ToolStarted(_)
            | EventBody::ToolRefused(_)
            | EventBody::ToolRequested(_)
            | EventBody::Dispatched(_)
            | EventBody::Awaited(_)
            | EventBody::RequestSent(_) => activities.calls.begin(event),
            EventBody::Relayed(_) => self.started = true,
            _ => {}
        }
    }

    fn state_changed(
        &mut self,
        activities: &mut Activities,
        change: &StateChanged,
        event: &Event,
        ended: &mut Vec<EndedActivity>,
    ) {
        for (from, to) in change.moves() {
            if from != to {
                self.enter_state(activities, to, event, ended);
            }
        }
    }

    fn enter_state(
        &mut self,
        activities: &mut Activities,
        state: AgentState,
        event: &Event,
        ended: &mut Vec<EndedActivity>,
    ) {
        self.started = true;
        match state {
            AgentState::Thinking => {
                // A new agent starts to think: the call of the previous one was interrupted.
                activities.interrupt("interrupted", event.at, ended);
                activities.step = Some(event.at);
                activities.chat = Some(ModelCall::begin(&self.facts, event.at, event.seq.0));
            }
            AgentState::ToolCall | AgentState::Reflecting => {
                // An agent that resumes a step in the middle passes through thinking without a
                // model call.
                activities.chat.take_if(|chat| !chat.is_broken());
            }
            AgentState::Idle => {
                activities.interrupt("interrupted", event.at, ended);
                ended.extend(activities.step.take().map(|began| EndedActivity::Step { began }));
            }
        }
    }

    fn status(
        &mut self,
        activities: &mut Activities,
        change: &StatusChanged,
        event: &Event,
        ended: &mut Vec<EndedActivity>,
    ) {
        self.started |= change.status == TaskStatus::Running;
        let waited = std::mem::replace(&mut self.waits_for_model, false);
        if change.waiting_for == Some(WaitingFor::Model) {
            // The model is asked again after the wait.
            self.waits_for_model = true;
            activities.interrupt(&error_code(change.detail.as_ref()), event.at, ended);
            activities.chat = Some(ModelCall::begin(&self.facts, event.at, event.seq.0));
        } else if waited && let Some(chat) = &mut activities.chat {
            (chat.began, chat.seq) = (event.at, event.seq.0);
        }
        if !change.status.is_terminal() {
            return;
        }
        if waited {
            // It ended while it waited: no call was running.
            activities.chat = None;
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
        activities.interrupt(word, event.at, ended);
        ended.extend(activities.calls.end(event.at).map(EndedActivity::Call));
        ended.extend(activities.waiting.end(event.at).map(EndedActivity::Approval));
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
