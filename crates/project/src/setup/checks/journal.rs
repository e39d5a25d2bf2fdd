//! The journal of the project.

use std::num::NonZeroUsize;

use antiphon_core::port::{JournalError, TaskIndex, TaskQuery, TaskSelector};

use super::check::Check;
use crate::error::ProjectError;
use crate::project::Project;

/// Opens the journal of the project, if it has one, and verifies it.
pub(super) async fn check(project: &Project) -> Option<Check> {
    if !project.has_journal() {
        return None;
    }
    let unfinished = TaskQuery { which: TaskSelector::Unfinished, limit: NonZeroUsize::MAX };
    let look = async {
        let Some(journal) = project.try_journal()? else {
            return Ok("another process works on it".to_owned());
        };
        let fault = |error: JournalError| ProjectError::Unavailable(error.to_string());
        journal.verify().await.map_err(fault)?;
        let tasks = journal.tasks(unfinished).await.map_err(fault)?;
        Ok::<_, ProjectError>(format!("sound, {} unfinished tasks", tasks.len()))
    };
    let check = match look.await {
        Ok(detail) => Check::ready(detail),
        Err(error) => Check::failed(error.to_string()),
    };
    Some(Check { path: Some(project.journal_path().display().to_string()), ..check })
}
