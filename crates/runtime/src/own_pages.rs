//! The journal as far as a runner is concerned: it writes what happens in its own task, and can
//! neither decide for a person nor make up tasks; it reads its own task, what was said before it, and how
//! far those above it may go.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{
    Append, Appended, GateRequest, IdempotencyKey, JournalError, JournalLog, Page, Read, Rule,
    TaskIndex, TaskQuery, TaskSelector, Verdict,
};
use antiphon_core::{EventBody, Replied, TaskCreated, TaskId, TaskStatus, TaskSummary, WaitingFor};
use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::inner::Inner;
use crate::limits;
use crate::orchestrator_error::OrchestratorError;
use crate::roster;
use crate::tree::Tree;

/// The journal as far as a runner is concerned.
pub(crate) struct RunnerJournal {
    pub(crate) inner: Arc<Inner>,
    pub(crate) task_id: TaskId,
    pub(crate) root: TaskId,
    pub(crate) readable: Vec<TaskId>,
    pub(crate) trees: Vec<Arc<Tree>>,
    /// Others wait for its answers.
    pub(crate) standing: Option<String>,
    /// Its model is asked from here, and paid here.
    pub(crate) uses_run_provider: bool,
    /// Fired when what the task shares is used up.
    pub(crate) end: CancellationToken,
}

impl RunnerJournal {
    fn refuse<T>(&self, reason: &str) -> Result<T, JournalError> {
        let reason = format!("a runner {reason}");
        Err(JournalError::Invalid { task_id: self.task_id.clone(), reason })
    }
}

impl RunnerJournal {
    /// Whoever paused the task means it.
    async fn check_pause(&self, append: &Append) -> Result<(), JournalError> {
        let goes_on = |body: &EventBody| matches!(body, EventBody::StatusChanged(change) if change.status == TaskStatus::Running);
        if !append.events.iter().any(goes_on) {
            return Ok(());
        }
        let query =
            TaskQuery { which: TaskSelector::One(self.task_id.clone()), limit: NonZeroUsize::MIN };
        let summary = self.inner.world.journal.tasks(query).await?.into_iter().next();
        match summary.and_then(|summary| summary.waiting_for) {
            Some(WaitingFor::Resume) => self.refuse("cannot lift a pause"),
            // What another orchestrator says of its own budget is its own to take back.
            Some(WaitingFor::Budget) if self.uses_run_provider => {
                self.refuse("cannot raise a budget")
            }
            Some(WaitingFor::Approval | WaitingFor::ToolResult | WaitingFor::Budget) | None => {
                Ok(())
            }
        }
    }

    /// What a person would allow beyond a call is for our gate to say, not for a runner.
    fn ask_ourselves(&self, body: &mut EventBody) {
        let EventBody::ApprovalRequested(asked) = body else { return };
        let call =
            GateRequest { tool: &asked.tool_name, arguments: &asked.arguments, granted: &[] };
        asked.rule = match self.inner.world.gate.judge(&call) {
            Verdict::Ask { reason, rule } => {
                asked.reason = reason;
                rule
            }
            // Nothing beyond it.
            Verdict::Allow | Verdict::Deny { .. } => Rule(String::new()),
        };
    }

    /// What whoever waits for an answer of the task gets, if this ends it.
    async fn last_answers(&self, append: &Append) -> Result<Vec<Replied>, JournalError> {
        let end = append.events.iter().find(|body| body.ends_task());
        let Some(EventBody::StatusChanged(end)) = end.filter(|_| self.standing.is_some()) else {
            return Ok(Vec::new());
        };
        let mut state = match self.inner.load(&self.task_id).await {
            Ok(state) => state,
            Err(OrchestratorError::Journal(error)) => return Err(error),
            Err(error) => return self.refuse(&format!("has to be able to read it: {error}")),
        };
        for body in append.events.iter().take_while(|body| !body.ends_task()) {
            state.apply(body);
        }
        Ok(roster::last_answers(&state, end.status))
    }

    /// Delivers them. Whoever does not get one looks for it.
    async fn deliver(&self, answers: &[Replied]) {
        let Some(agent) = &self.standing else { return };
        for answer in answers {
            if let Err(error) = self.inner.deliver(agent, answer).await {
                tracing::warn!(task.id = %self.task_id, %error, "an answer was not delivered");
            }
        }
    }

    /// How far a task above may go, and nothing else of it.
    async fn bounds(&self, read: Read) -> Result<Page, JournalError> {
        let mut page =
            self.inner.world.journal.read(Read { limit: NonZeroUsize::MIN, ..read }).await?;
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

/// Whether a runner may write it: what the loop does, and how far it was followed.
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
        // What was spent counts on the day that it is here.
        append.at = self.inner.world.clock.now();
        self.check_pause(&append).await?;
        for body in &mut append.events {
            self.ask_ourselves(body);
        }
        let answers = self.last_answers(&append).await?;
        let behind = std::mem::take(&mut append.events);
        append.events = answers.iter().cloned().map(EventBody::from).chain(behind).collect();
        let events = append.events.clone();
        let appended = self.inner.append(append).await?;
        self.deliver(&answers).await;
        for tree in &self.trees {
            tree.add(&events);
        }
        let paid = events.iter().any(|body| matches!(body, EventBody::UsageRecorded(_)));
        if paid && limits::used_up(&self.trees, &self.inner.world.prices).is_some() {
            self.end.cancel();
        }
        Ok(appended)
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        match &read.task_id {
            Some(task_id) if self.readable.contains(task_id) => {
                self.inner.world.journal.read(read).await
            }
            Some(task_id) if self.trees.iter().any(|tree| tree.top == *task_id) => {
                self.bounds(read).await
            }
            Some(_) | None => self.refuse("reads its own task and no other"),
        }
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
        let mut tasks = self.inner.world.journal.tasks(query).await?;
        for task in tasks.iter_mut().filter(|task| task.task_id != self.task_id) {
            // How much the others used is its business, what they say is not.
            task.title.clear();
            task.preview = None;
        }
        Ok(tasks)
    }
}
