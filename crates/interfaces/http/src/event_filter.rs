//! Which events of the journal somebody wants to see. What is of no known type is refused with 400.
//!
//! Most events do not say whose task they are of. That is looked up once for each task, and kept for
//! so many.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{Event, EventBody, SessionId, TaskId, TaskSummary};
use antiphon_runtime::{Orchestrator, OrchestratorError};

use crate::api_error::ApiError;

/// Tasks that are kept at hand; all are let go when there is one more.
const TASKS_KNOWN_MAX: usize = 4096;

/// Which events somebody wants to see; all of them when nothing is said.
#[derive(Debug, Default)]
pub(crate) struct EventFilter {
    /// Of tasks that this agent works on.
    pub(crate) agent: Option<String>,
    /// Of this conversation.
    pub(crate) session_id: Option<SessionId>,
    /// Of the tree that this task is the top of.
    pub(crate) root: Option<TaskId>,
    /// Of these types.
    pub(crate) types: Option<Vec<&'static str>>,
    known: HashMap<TaskId, Known>,
}

/// What is known of a task.
#[derive(Debug)]
struct Known {
    agent: String,
    session_id: SessionId,
    root: TaskId,
}

impl EventFilter {
    /// The types of a list with commas in it.
    pub(crate) fn types(list: &str) -> Result<Vec<&'static str>, ApiError> {
        let known = |word: &str| {
            let word = word.trim();
            EventBody::TYPES.iter().find(|known| **known == word).copied().ok_or_else(|| {
                let known = EventBody::TYPES.join(", ");
                ApiError::invalid(format!("`type`: there is no event `{word}`; there are {known}"))
            })
        };
        list.split(',').map(known).collect()
    }

    /// Whether an event is one of those.
    pub(crate) async fn passes(
        &mut self,
        orchestrator: &Orchestrator,
        event: &Event,
    ) -> Result<bool, OrchestratorError> {
        self.note(event);
        let is_meant = |types: &Vec<&str>| types.contains(&event.body.event_type());
        if !self.types.as_ref().is_none_or(is_meant) {
            return Ok(false);
        }
        self.knows(orchestrator, &event.task_id).await
    }

    /// Whether a task is one of those whose events are meant.
    pub(crate) async fn knows(
        &mut self,
        orchestrator: &Orchestrator,
        task_id: &TaskId,
    ) -> Result<bool, OrchestratorError> {
        if !self.asks_whose() {
            return Ok(true);
        }
        if !self.known.contains_key(task_id) {
            let query =
                TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
            for found in orchestrator.tasks(query).await? {
                self.keep(found);
            }
        }
        let Some(known) = self.known.get(task_id) else { return Ok(false) };
        Ok(self.agent.as_ref().is_none_or(|agent| *agent == known.agent)
            && self.session_id.as_ref().is_none_or(|session_id| *session_id == known.session_id)
            && self.root.as_ref().is_none_or(|root| *root == known.root))
    }

    fn asks_whose(&self) -> bool {
        self.agent.is_some() || self.session_id.is_some() || self.root.is_some()
    }

    /// What an event says of its task.
    fn note(&mut self, event: &Event) {
        if !self.asks_whose() {
            return;
        }
        if let EventBody::TaskCreated(created) = &event.body {
            self.keep(TaskSummary::created(event.task_id.clone(), created, event.at));
        } else if let EventBody::HandedOver(over) = &event.body
            && let Some(known) = self.known.get_mut(&event.task_id)
        {
            known.agent.clone_from(&over.agent);
        }
    }

    fn keep(&mut self, task: TaskSummary) {
        if self.known.len() >= TASKS_KNOWN_MAX {
            self.known.clear();
        }
        let TaskSummary { task_id, agent, session_id, root, .. } = task;
        self.known.insert(task_id, Known { agent, session_id, root });
    }
}
