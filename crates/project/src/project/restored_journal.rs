//! A restored journal before it replaces the project's own.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use antiphon_core::port::{TaskQuery, TaskSelector};

use crate::error::ProjectError;
use crate::models::Models;
use crate::project::Project;

/// How long closing the journal may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Pauses every unfinished task of a journal that is not in its place yet, and drops what another user may
/// have put into it: routes, runners, allowed rules and approvals. Returns how many tasks it paused. `file`
/// is the name of the file that the journal came from.
pub async fn distrust_unfinished(
    journal: &Path,
    file: &Path,
    models: Models,
) -> Result<usize, ProjectError> {
    let orchestrator = Project::recording_orchestrator_at(journal, models)?;
    let query = TaskQuery { which: TaskSelector::Unfinished, limit: NonZeroUsize::MAX };
    let unfinished = orchestrator.tasks(query).await?;
    let file = file.display().to_string();
    for task in &unfinished {
        orchestrator.mark_restored(&task.task_id, &file).await?;
    }
    // The file must be closed before it is moved.
    orchestrator.shutdown(CLOSE_TIMEOUT).await;
    Ok(unfinished.len())
}
