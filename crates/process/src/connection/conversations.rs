//! The conversations of people and clients, without those that agents have with the agents they call.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use antiphon_core::SessionSummary;
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_project::error::ProjectError;

use super::Connection;

/// Newest tasks whose conversations are listed.
const TASKS_READ: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

impl Connection {
    /// The sessions of the newest tasks that no other task dispatched, the one with the newest task first. Title and
    /// number of tasks are those of the newest 1,000 such tasks.
    pub async fn conversations(
        &self,
        limit: NonZeroUsize,
    ) -> Result<Vec<SessionSummary>, ProjectError> {
        let query = TaskQuery { which: TaskSelector::Roots, limit: TASKS_READ };
        let mut found: Vec<SessionSummary> = Vec::new();
        let mut places = BTreeMap::new();
        let tasks = self.reader().tasks(query).await?;
        for task in tasks.into_iter().filter(|task| !task.is_record()) {
            let (created_at, updated_at) = match task.imported {
                Some(imported) => (imported.created_at, imported.updated_at),
                None => (task.created_at, task.last_event_at),
            };
            let place = places.entry(task.session_id.clone()).or_insert(found.len());
            if let Some(session) = found.get_mut(*place) {
                // The tasks come from the newest to the oldest.
                (session.title, session.created_at) = (task.title, created_at);
                session.tasks += 1;
                continue;
            }
            if found.len() < limit.get() {
                found.push(SessionSummary {
                    session_id: task.session_id,
                    title: task.title,
                    tasks: 1,
                    last_task: task.task_id,
                    status: task.status,
                    created_at,
                    updated_at,
                });
            }
        }
        Ok(found)
    }
}
