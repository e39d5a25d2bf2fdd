//! A filter of journal events by agent, session, tree and type.
//!
//! Most events do not name the agent, session or root of their task. The filter looks them up once per task
//! and caches them.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{Event, EventBody, SessionId, TaskId, TaskSummary};
use antiphon_runtime::{Orchestrator, OrchestratorError};

use crate::api_error::ApiError;

/// Tasks in the cache, at most. One more empties the cache.
const TASKS_CACHED_MAX: usize = 4096;

/// A filter of journal events. Passes all events by default.
#[derive(Debug, Default)]
pub struct EventFilter {
    /// Name of the agent of the task.
    pub agent: Option<String>,
    /// Session of the task.
    pub session_id: Option<SessionId>,
    /// Root of the tree that the task belongs to.
    pub root: Option<TaskId>,
    /// Event types, as in `events.schema.json`.
    pub types: Option<Vec<&'static str>>,
    /// API key that pays for the task.
    pub payer: Option<String>,
    tasks: HashMap<TaskId, TaskOrigin>,
}

/// What the filter compares of a task.
#[derive(Debug)]
struct TaskOrigin {
    agent: String,
    session_id: SessionId,
    root: TaskId,
    payer: Option<String>,
}

impl EventFilter {
    /// Event types from a list separated by commas. An unknown type is refused with 400.
    pub fn types(list: &str) -> Result<Vec<&'static str>, ApiError> {
        let known = |word: &str| {
            let word = word.trim();
            EventBody::TYPES.iter().find(|known| **known == word).copied().ok_or_else(|| {
                let known = EventBody::TYPES.join(", ");
                ApiError::invalid(format!("`type`: unknown event type `{word}`; known are {known}"))
            })
        };
        list.split(',').map(known).collect()
    }

    /// Whether an event passes.
    pub async fn passes(
        &mut self,
        orchestrator: &Orchestrator,
        event: &Event,
    ) -> Result<bool, OrchestratorError> {
        self.note(event);
        let is_listed = |types: &Vec<&str>| types.contains(&event.body.event_type());
        if !self.types.as_ref().is_none_or(is_listed) {
            return Ok(false);
        }
        self.passes_task(orchestrator, &event.task_id).await
    }

    /// Whether events of a task may pass.
    pub async fn passes_task(
        &mut self,
        orchestrator: &Orchestrator,
        task_id: &TaskId,
    ) -> Result<bool, OrchestratorError> {
        if !self.needs_task() {
            return Ok(true);
        }
        if !self.tasks.contains_key(task_id) {
            let query =
                TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
            for found in orchestrator.tasks(query).await? {
                self.cache(found);
            }
        }
        let Some(known) = self.tasks.get(task_id) else { return Ok(false) };
        Ok(self.agent.as_ref().is_none_or(|agent| *agent == known.agent)
            && self.session_id.as_ref().is_none_or(|session_id| *session_id == known.session_id)
            && self.root.as_ref().is_none_or(|root| *root == known.root)
            && self.payer.as_ref().is_none_or(|payer| known.payer.as_ref() == Some(payer)))
    }

    fn needs_task(&self) -> bool {
        self.agent.is_some()
            || self.session_id.is_some()
            || self.root.is_some()
            || self.payer.is_some()
    }

    /// Caches what an event says of its task.
    fn note(&mut self, event: &Event) {
        if !self.needs_task() {
            return;
        }
        if let EventBody::TaskCreated(created) = &event.body {
            self.cache(TaskSummary::created(event.task_id.clone(), created, event.at));
        } else if let EventBody::HandedOver(over) = &event.body
            && let Some(known) = self.tasks.get_mut(&event.task_id)
        {
            known.agent.clone_from(&over.agent);
        }
    }

    fn cache(&mut self, task: TaskSummary) {
        if self.tasks.len() >= TASKS_CACHED_MAX {
            self.tasks.clear();
        }
        let TaskSummary { task_id, agent, session_id, root, payer, .. } = task;
        self.tasks.insert(task_id, TaskOrigin { agent, session_id, root, payer });
    }
}
