//! The tasks that are open, as their events tell them, and what has just come to an end in one.
//!
//! A fold with a memory: it keeps when things began until they end. What it did not see begin has no
//! beginning, and is told of without one. Everything in it is bounded; what there is no room for is
//! treated as if its beginning had not been seen. A task that ended is forgotten.

use std::collections::HashMap;
use std::sync::Arc;

use antiphon_core::{
    AgentState, Event, EventBody, MessageQueued, ModelRef, Position, StateChanged, StatusChanged,
    TaskCreated, TaskId, TaskStatus, ToolCallId, Usage,
};
use chrono::{DateTime, Utc};

use crate::call::{CallEnded, Calls};
use crate::chat::{Chat, ChatEnded, error_code};
use crate::span::cut;
use crate::waiting::{ApprovalEnded, Taken, Waiting};

/// Open tasks that are followed. Of more than these only single events are counted, without
/// durations and spans.
pub const TASKS_OPEN_MAX: usize = 100_000;

/// What is open.
#[derive(Debug, Default)]
pub(crate) struct Book {
    tasks: HashMap<TaskId, Open>,
    seen: Position,
    not_followed: u64,
    questions: usize,
    arrivals: usize,
}

/// What is said once about a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskFacts {
    pub(crate) task_id: TaskId,
    /// Who works on it; whoever took over, once somebody has.
    pub(crate) agent: String,
    /// Who began it.
    pub(crate) first_agent: String,
    pub(crate) session_id: String,
    pub(crate) parent: Option<TaskId>,
    pub(crate) root: TaskId,
    pub(crate) model: Option<ModelRef>,
    pub(crate) answer_tokens_max: Option<u32>,
    pub(crate) began: DateTime<Utc>,
}

/// What came to an end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ended {
    /// A lap, from thinking to idle.
    Lap {
        began: DateTime<Utc>,
    },
    Chat(ChatEnded),
    Call(CallEnded),
    Approval(ApprovalEnded),
    /// Something that waited in the inbox was taken.
    Taken(Taken),
    Task(TaskEnded),
}

/// A task that ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskEnded {
    pub(crate) status: TaskStatus,
    /// A word for what went wrong, never a text.
    pub(crate) error: Option<String>,
    pub(crate) usage: Usage,
    pub(crate) turns: u64,
}

/// What an event brought to an end.
#[derive(Debug, Default)]
pub(crate) struct Turned {
    /// The task, if it is followed.
    pub(crate) task: Option<Arc<TaskFacts>>,
    pub(crate) ended: Vec<Ended>,
}

#[derive(Debug)]
struct Open {
    facts: Arc<TaskFacts>,
    first: Position,
    /// What was said before it began is somebody else's.
    begun: bool,
    last_at: DateTime<Utc>,
    lap: Option<DateTime<Utc>>,
    chat: Option<Chat>,
    calls: Calls,
    waiting: Waiting,
    usage: Usage,
    turns: u64,
}

impl Book {
    /// Adds what happened next. `None` when it has been seen.
    pub(crate) fn apply(&mut self, event: &Event) -> Option<Turned> {
        if event.position <= self.seen {
            return None;
        }
        self.seen = event.position;
        if let EventBody::TaskCreated(created) = &event.body {
            return Some(self.open(created, event));
        }
        let Some(open) = self.tasks.get_mut(&event.task_id) else {
            return Some(Turned { task: None, ended: unfollowed(event) });
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
        Some(Turned { task, ended })
    }

    /// The last event that was applied.
    pub(crate) fn seen(&self) -> Position {
        self.seen
    }

    /// Tasks that are followed.
    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Questions for people and arrivals for agents that wait in them.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        (self.questions, self.arrivals)
    }

    /// Tasks that there was no room for.
    pub(crate) fn not_followed(&self) -> u64 {
        self.not_followed
    }

    /// Whoever begins behind this position misses nothing of the tasks that are open.
    pub(crate) fn needed_from(&self) -> Position {
        let first = self.tasks.values().map(|open| open.first).min();
        first.map_or(self.seen, |first| Position(first.0.saturating_sub(1)))
    }

    /// When a call that is under way began, as a place among its task's events.
    pub(crate) fn call_began(&self, task_id: &TaskId, call: &ToolCallId) -> Option<u64> {
        self.tasks.get(task_id)?.calls.began(call)
    }

    fn open(&mut self, created: &TaskCreated, event: &Event) -> Turned {
        if self.tasks.contains_key(&event.task_id) {
            // A journal has no task twice; whoever hands out one is not believed.
            return Turned::default();
        }
        if self.tasks.len() >= TASKS_OPEN_MAX {
            self.not_followed += 1;
            return Turned::default();
        }
        let facts = Arc::new(TaskFacts {
            task_id: event.task_id.clone(),
            agent: cut(&created.agent).to_owned(),
            first_agent: cut(&created.agent).to_owned(),
            session_id: created.session_id.to_string(),
            parent: created.parent.clone(),
            root: created.root.clone().unwrap_or_else(|| event.task_id.clone()),
            model: created.model.clone(),
            answer_tokens_max: created.limits.answer_tokens_max.map(std::num::NonZeroU32::get),
            began: event.at,
        });
        let open = Open {
            facts: Arc::clone(&facts),
            first: event.position,
            begun: false,
            last_at: event.at,
            lap: None,
            chat: None,
            calls: Calls::default(),
            waiting: Waiting::default(),
            usage: Usage::default(),
            turns: 0,
        };
        self.tasks.insert(event.task_id.clone(), open);
        Turned { task: Some(facts), ended: Vec::new() }
    }
}

impl Open {
    fn apply(&mut self, event: &Event, ended: &mut Vec<Ended>) {
        let at = event.at;
        match &event.body {
            EventBody::StatusChanged(change) => self.status(change, event, ended),
            EventBody::StateChanged(change) => self.walk(change, event, ended),
            EventBody::MessageAppended(appended) => {
                let taken = appended.queued.and_then(|id| self.waiting.take(id, at));
                ended.extend(taken.map(Ended::Taken));
                // A conversation that was brought along is nothing that happened.
                if self.begun {
                    ended.extend(self.calls.hear(&appended.message, at).map(Ended::Call));
                    if let Some(over) =
                        self.chat.as_mut().and_then(|c| c.hear(&appended.message, at))
                    {
                        self.chat = None;
                        ended.push(Ended::Chat(over));
                    }
                }
            }
            EventBody::UsageRecorded(recorded) => {
                self.usage += recorded.usage;
                self.turns += u64::from(recorded.purpose.is_none());
                if recorded.purpose.is_some() {
                    let began = (self.last_at, event.seq.0);
                    ended.push(Ended::Chat(ChatEnded::aside(recorded, began, at)));
                } else if let Some(chat) = &mut self.chat {
                    chat.pay(recorded, at);
                }
            }
            EventBody::Compacted(_) => {
                // The model is asked anew, now that it fits.
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
                ended.push(Ended::Approval(self.waiting.decide(decided, at)));
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
            EventBody::Relayed(_) => self.begun = true,
            EventBody::TaskCreated(_)
            | EventBody::Replied(_)
            | EventBody::BudgetRaised(_)
            | EventBody::OutputRejected(_) => {}
        }
        self.last_at = at;
    }

    fn queue(&mut self, queued: &MessageQueued, at: DateTime<Utc>) {
        if let Some(id) = queued.replaces {
            self.waiting.forget(id);
        }
        self.waiting.queue(queued, at);
    }

    /// The model call that is under way gets no answer.
    fn cut_off(&mut self, word: &str, at: DateTime<Utc>, ended: &mut Vec<Ended>) {
        ended.extend(self.chat.take().map(|chat| Ended::Chat(chat.cut_off(word, at))));
    }

    fn walk(&mut self, change: &StateChanged, event: &Event, ended: &mut Vec<Ended>) {
        self.begun = true;
        if change.from == change.to {
            return;
        }
        match change.to {
            AgentState::Thinking => {
                // A fresh agent thinks: whoever thought before was cut off.
                self.cut_off("interrupted", event.at, ended);
                self.lap = Some(event.at);
                self.chat = Some(Chat::begin(&self.facts, event.at, event.seq.0));
            }
            AgentState::ToolCall | AgentState::Reflecting => {
                // An agent that takes up a lap in its middle passes by thinking, and asks nobody.
                self.chat.take_if(|chat| !chat.is_broken());
            }
            AgentState::Idle => {
                self.cut_off("interrupted", event.at, ended);
                ended.extend(self.lap.take().map(|began| Ended::Lap { began }));
            }
        }
    }

    fn status(&mut self, change: &StatusChanged, event: &Event, ended: &mut Vec<Ended>) {
        self.begun |= change.status == TaskStatus::Running;
        if !change.status.is_terminal() {
            return;
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
        self.cut_off(word, event.at, ended);
        ended.extend(self.calls.end(event.at).map(Ended::Call));
        ended.extend(self.waiting.end(event.at).map(Ended::Approval));
        let task = TaskEnded { status: change.status, error, usage: self.usage, turns: self.turns };
        ended.push(Ended::Task(task));
    }
}

/// What can be said of an event whose task was not seen from its beginning.
fn unfollowed(event: &Event) -> Vec<Ended> {
    match &event.body {
        EventBody::MessageAppended(appended) => Calls::default()
            .hear(&appended.message, event.at)
            .map(Ended::Call)
            .into_iter()
            .collect(),
        EventBody::ApprovalDecided(decided) => {
            vec![Ended::Approval(Waiting::default().decide(decided, event.at))]
        }
        EventBody::StatusChanged(change) if change.status.is_terminal() => {
            let error =
                (change.status == TaskStatus::Failed).then(|| error_code(change.detail.as_ref()));
            let (status, usage) = (change.status, Usage::default());
            vec![Ended::Task(TaskEnded { status, error, usage, turns: 0 })]
        }
        EventBody::TaskCreated(_)
        | EventBody::StatusChanged(_)
        | EventBody::StateChanged(_)
        | EventBody::MessageQueued(_)
        | EventBody::RequestSent(_)
        | EventBody::Replied(_)
        | EventBody::ApprovalRequested(_)
        | EventBody::ToolRefused(_)
        | EventBody::ToolStarted(_)
        | EventBody::ToolRequested(_)
        | EventBody::Dispatched(_)
        | EventBody::Awaited(_)
        | EventBody::HandedOver(_)
        | EventBody::BudgetRaised(_)
        | EventBody::Relayed(_)
        | EventBody::UsageRecorded(_)
        | EventBody::OutputRejected(_)
        | EventBody::Compacted(_) => Vec::new(),
    }
}
