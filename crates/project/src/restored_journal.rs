//! A restored journal before it replaces the project's own.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use antiphon_core::WaitingFor;
use antiphon_core::port::{TaskQuery, TaskSelector};

use crate::error::ProjectError;
use crate::models::Models;
use crate::project::Project;

/// How long closing the journal may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Pauses every unfinished task of a journal that is not in its place yet. Returns how many it paused.
pub async fn pause_unfinished(journal: &Path, models: Models) -> Result<usize, ProjectError> {
    let orchestrator = Project::recording_orchestrator_at(journal, models)?;
    let query = TaskQuery { which: TaskSelector::Unfinished, limit: NonZeroUsize::MAX };
    let unfinished = orchestrator.tasks(query).await?;
    let mut paused = 0;
    for task in unfinished.iter().filter(|task| task.waiting_for != Some(WaitingFor::Resume)) {
        orchestrator.pause(&task.task_id).await?;
        paused += 1;
    }
    // The file must be closed before it is moved.
    orchestrator.shutdown(CLOSE_TIMEOUT).await;
    Ok(paused)
}
