//! The journal as a runner sees it. The runner writes events of its own task; it cannot answer
//! approvals or create tasks. It reads its own task, the conversation before it, and the limits of its
//! ancestors.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use antiphon_core::port::{
    Append, Appended, Gate, GateRequest, GateVerdict, HISTORY_TASKS_MAX, History, HistoryExtent,
    IdempotencyKey, JournalError, JournalLog, Page, Read, Rule, TaskIndex, TaskQuery, TaskSelector,
};
use antiphon_core::{
    Event, EventBody, HistoryRef, Message, Replied, Seq, TaskCreated, TaskId, TaskStatus,
    TaskSummary, TodoItem, ToolCallId, WaitingFor,
};
use async_trait::async_trait;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::budget::tree_usage::Tree;
use crate::inbox::input_permission;
use crate::inbox::requests;
use crate::inbox::start_agent;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::limits;
use crate::task::state::TaskState;

/// The journal as a runner sees it.
pub(crate) struct RunnerJournal {
    pub(crate) services: Arc<Services>,
    /// The gate of the task.
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) task_id: TaskId,
    pub(crate) root: TaskId,
    pub(crate) readable: ReadableTasks,
    pub(crate) trees: Vec<Arc<Tree>>,
    /// Name of the resident agent, when the task has to answer requests.
    pub(crate) resident_agent: Option<String>,
    /// Whether its model is called and paid from here.
    pub(crate) uses_run_provider: bool,
    /// Whether no sandbox restricts what it runs.
    pub(crate) is_unrestricted: bool,
    /// Fired when a shared limit is reached.
    pub(crate) end: CancellationToken,
    /// Calls that the runner has started and not finished.
    pub(crate) running_calls: Arc<watch::Sender<HashSet<ToolCallId>>>,
}

/// The tasks that a runner reads: its own, and those whose conversation that one continues, each once the one behind it was
/// read.
#[derive(Debug)]
pub(crate) struct ReadableTasks(Mutex<HashMap<TaskId, Seq>>);

impl ReadableTasks {
    pub(crate) fn of(state: &TaskState) -> Self {
        let own = (state.task_id.clone(), Seq(u64::MAX));
        let before = state.created.history.clone().map(|before| (before.task_id, before.seq));
        Self(Mutex::new([own].into_iter().chain(before).collect()))
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<TaskId, Seq>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn contains(&self, task_id: &TaskId) -> bool {
        self.tasks().contains_key(task_id)
    }

    /// Whether the conversation up to an event is part of the one that the task continues.
    fn covers(&self, until: &HistoryRef) -> bool {
        self.tasks().get(&until.task_id).is_some_and(|last| until.seq <= *last)
    }

    /// Adds the task that a readable one continues.
    fn note(&self, events: &[Event]) {
        for event in events {
            if let EventBody::TaskCreated(TaskCreated { history: Some(before), .. }) = &event.body {
                let mut tasks = self.tasks();
                if tasks.len() < HISTORY_TASKS_MAX {
                    tasks.entry(before.task_id.clone()).or_insert(before.seq);
                }
            }
        }
    }
}

impl RunnerJournal {
    fn refuse<T>(&self, reason: &str) -> Result<T, JournalError> {
        let reason = format!("a runner {reason}");
        Err(JournalError::Invalid { task_id: self.task_id.clone(), reason })
    }
}

impl RunnerJournal {
    /// Refuses to end a pause or a wait for our budget.
    async fn check_pause(&self, append: &Append) -> Result<(), JournalError> {
        let goes_on = |body: &EventBody| matches!(body, EventBody::StatusChanged(change) if change.status == TaskStatus::Running);
        if !append.events.iter().any(goes_on) {
            return Ok(());
        }
        let query =
            TaskQuery { which: TaskSelector::One(self.task_id.clone()), limit: NonZeroUsize::MIN };
        let summary = self.services.deps.journal.tasks(query).await?.into_iter().next();
        match summary.and_then(|summary| summary.waiting_for) {
            Some(WaitingFor::Resume) => self.refuse("cannot lift a pause"),
            // A wait for another orchestrator's own budget is that orchestrator's to end.
            Some(WaitingFor::Budget) if self.uses_run_provider => {
                self.refuse("cannot raise a budget")
            }
            Some(
                WaitingFor::Approval
                | WaitingFor::ToolResult
                | WaitingFor::Budget
                | WaitingFor::Model
                | WaitingFor::Peer
                | WaitingFor::Storage,
            )
            | None => Ok(()),
        }
    }

    /// Refuses to take a message out of the inbox that the program may not get.
    async fn check_input(&self, append: &Append) -> Result<(), JournalError> {
        if !self.is_unrestricted {
            return Ok(());
        }
        for body in &append.events {
            if let EventBody::MessageAppended(appended) = body
                && let Some(id) = appended.queued
                && !input_permission::is_allowed(&self.services, &self.task_id, id).await?
            {
                return self.refuse("cannot take a message that no person allowed");
            }
        }
        Ok(())
    }

    /// Refuses a question or a list that is longer than an agent's own may be.
    fn check_bounds(&self, events: &[EventBody]) -> Result<(), JournalError> {
        for body in events {
            let fault = if let EventBody::ApprovalRequested(request) = body {
                let question = request.question.as_ref();
                question.and_then(|question| question.check().err()).map(|error| error.to_string())
            } else if let EventBody::TodoChanged(changed) = body {
                TodoItem::check(&changed.items).err().map(|error| error.to_string())
            } else {
                None
            };
            if let Some(fault) = fault {
                return self.refuse(&format!("cannot write this: {fault}"));
            }
        }
        Ok(())
    }

    /// Replaces the rule of an approval: what a user can allow beyond a call is for our gate to say.
    fn use_own_rule(&self, body: &mut EventBody) {
        let EventBody::ApprovalRequested(request) = body else { return };
        if request.question.is_some() {
            // An answer lets no call run.
            request.rule = Rule(String::new());
            return;
        }
        let call =
            GateRequest { tool: &request.tool_name, arguments: &request.arguments, granted: &[] };
        request.rule = match self.gate.judge(&call) {
            GateVerdict::Ask { reason, rule } => {
                request.reason = reason;
                rule
            }
            // No rule beyond the call.
            GateVerdict::Allow | GateVerdict::Deny { .. } => Rule(String::new()),
        };
    }

    /// Removes the start of a call, and what follows it, while the orchestrator drains. Returns whether
    /// it did. What the runner has finished is recorded; the next process starts the call.
    fn leave_out_new_calls(&self, append: &mut Append) -> bool {
        if !self.uses_run_provider || !self.services.background.is_draining() {
            return false;
        }
        let starts = |body: &EventBody| matches!(body, EventBody::ToolStarted(_));
        let Some(first) = append.events.iter().position(starts) else { return false };
        append.events.truncate(first);
        true
    }

    /// The replies to open requests, if the append ends the task.
    async fn final_replies(&self, append: &Append) -> Result<Vec<Replied>, JournalError> {
        let end = append.events.iter().find(|body| body.ends_task());
        let Some(EventBody::StatusChanged(end)) = end.filter(|_| self.resident_agent.is_some())
        else {
            return Ok(Vec::new());
        };
        let mut state = match self.services.reader.load_without_messages(&self.task_id).await {
            Ok(state) => state,
            Err(OrchestratorError::Journal(error)) => return Err(error),
            Err(error) => return self.refuse(&format!("has to be able to read it: {error}")),
        };
        for body in append.events.iter().take_while(|body| !body.ends_task()) {
            state.apply(body);
        }
        Ok(start_agent::final_replies(&state, end.status))
    }

    /// Delivers replies. A requester that does not get one looks for it in the journal.
    async fn deliver(&self, answers: &[Replied]) {
        let Some(agent) = &self.resident_agent else { return };
        for answer in answers {
            if let Err(error) = requests::deliver_reply(&self.services, agent, answer).await {
                tracing::warn!(task.id = %self.task_id, %error, "an answer was not delivered");
            }
        }
    }

    /// The limits of an ancestor, and nothing else of it.
    async fn limits_of_ancestor(&self, read: Read) -> Result<Page, JournalError> {
        let mut page =
            self.services.deps.journal.read(Read { limit: NonZeroUsize::MIN, ..read }).await?;
        page.events.retain_mut(|event| {
            let EventBody::TaskCreated(created) = &mut event.body else { return false };
            *created = TaskCreated {
                parent: created.parent.clone(),
                root: created.root.clone(),
                depth: created.depth,
                limits: created.limits,
                ..TaskCreated::new(created.agent.clone(), created.session_id.clone())
            };
            true
        });
        Ok(page)
    }
}

/// Adds started calls and removes finished ones. Returns whether there was any.
fn note_calls(calls: &mut HashSet<ToolCallId>, events: &[EventBody]) -> bool {
    let mut changed = false;
    for body in events {
        if let EventBody::ToolStarted(started) = body {
            changed |= calls.insert(started.tool_call_id.clone());
        } else if let EventBody::MessageAppended(appended) = body
            && let Message::ToolResult(result) = &*appended.message
        {
            changed |= calls.remove(&result.tool_call_id);
        }
    }
    changed
}

/// Whether a runner may write the event: events of the loop, and relay positions.
fn is_for_runners(body: &EventBody) -> bool {
    body.is_written_by_loop() || matches!(body, EventBody::Relayed(_))
}

#[async_trait]
impl JournalLog for RunnerJournal {
    async fn append(&self, mut append: Append) -> Result<Appended, JournalError> {
        if append.task_id != self.task_id {
            return self.refuse("writes its own task and no other");
        }
        if append.key.is_some() {
            return self.refuse("uses no keys");
        }
        if let Some(body) = append.events.iter().find(|body| !is_for_runners(body)) {
            return self.refuse(&format!("cannot write `{}`", body.event_type()));
        }
        self.check_bounds(&append.events)?;
        // Spending counts on the current day here.
        append.at = self.services.deps.clock.now();
        self.check_pause(&append).await?;
        self.check_input(&append).await?;
        for body in &mut append.events {
            self.use_own_rule(body);
        }
        let answers = self.final_replies(&append).await?;
        let behind = std::mem::take(&mut append.events);
        append.events = answers.iter().cloned().map(EventBody::from).chain(behind).collect();
        let left_out = self.leave_out_new_calls(&mut append);
        if append.events.is_empty() {
            return std::future::pending().await;
        }
        let events = append.events.clone();
        // The runner cannot know that the journal is full: it waits here.
        let appended = self.services.append_when_possible(|| append.clone(), || ()).await?;
        self.deliver(&answers).await;
        for tree in &self.trees {
            tree.add(&events);
        }
        self.running_calls.send_if_modified(|calls| note_calls(calls, &events));
        if left_out {
            // Not answered: the runner starts no call, and is stopped once none runs.
            return std::future::pending().await;
        }
        let paid = events.iter().any(|body| matches!(body, EventBody::UsageRecorded(_)));
        if paid && limits::used_up(&self.trees, &self.services.deps.prices).is_some() {
            self.end.cancel();
        }
        Ok(appended)
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        match &read.task_id {
            Some(task_id) if self.readable.contains(task_id) => {
                let page = self.services.deps.journal.read(read).await?;
                self.readable.note(&page.events);
                Ok(page)
            }
            Some(task_id) if self.trees.iter().any(|tree| tree.root == *task_id) => {
                self.limits_of_ancestor(read).await
            }
            Some(_) | None => self.refuse("reads its own task and no other"),
        }
    }

    async fn history(
        &self,
        until: HistoryRef,
        extent: HistoryExtent,
    ) -> Result<History, JournalError> {
        if !self.readable.covers(&until) {
            return self.refuse("reads its own conversation and no other");
        }
        self.services.deps.journal.history(until, extent).await
    }

    /// `None`: this journal refuses keys, so no append has one.
    async fn answered(&self, _: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        Ok(None)
    }
}

#[async_trait]
impl TaskIndex for RunnerJournal {
    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        let own = match &query.which {
            TaskSelector::One(task_id) => self.readable.contains(task_id),
            TaskSelector::Tree(root) => *root == self.root,
            TaskSelector::All
            | TaskSelector::Roots
            | TaskSelector::Unfinished
            | TaskSelector::IdPrefix(_)
            | TaskSelector::Session(_)
            | TaskSelector::Matching(_) => false,
        };
        if !own {
            return Ok(Vec::new());
        }
        let mut tasks = self.services.deps.journal.tasks(query).await?;
        for task in tasks.iter_mut().filter(|task| task.task_id != self.task_id) {
            // The usage of other tasks is visible, their text is not.
            task.title.clear();
            task.preview = None;
        }
        Ok(tasks)
    }
}
