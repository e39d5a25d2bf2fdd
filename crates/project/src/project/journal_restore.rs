//! Restores the journal of a project from a file, in an order that leaves one whole journal at each moment: the file is
//! copied and checked, tasks of the copy are paused, and then the copy replaces the journal in one step.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use antiphon_core::TaskId;
use antiphon_core::port::{Clock as _, SystemClock, TaskQuery, TaskSelector};
use antiphon_sqlite::{Backup, BackupError, Progress, Replace, Restore};
use thiserror::Error;

use super::Project;
use crate::environment::Environment;
use crate::error::ProjectError;
use crate::models::Models;

/// How long closing the copy may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// What happens to tasks of the file that had not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnfinishedTasks {
    /// They are paused, without what another user may have put into the file: routes, runners, allowed rules and
    /// approvals. The journal is made anew from its events.
    Pause,
    /// They go on with all that the file says: it is a backup of the user's own.
    Continue,
}

/// A file, and how the journal is restored from it.
#[derive(Debug, Clone)]
pub struct JournalRestore {
    /// A backup, or a journal that an earlier restore kept.
    pub file: PathBuf,
    /// Whether an existing journal is replaced. It is kept under another name.
    pub replace: Replace,
    /// What happens to tasks that had not ended.
    pub unfinished: UnfinishedTasks,
}

/// A journal that was restored.
#[derive(Debug)]
pub struct RestoredJournal {
    /// What is in it.
    pub backup: Backup,
    /// Path of the journal that it replaced.
    pub before: Option<PathBuf>,
    /// Number of paused tasks; `None` with [`UnfinishedTasks::Continue`].
    pub paused: Option<usize>,
    /// Tasks that could not be read to their end, and have failed.
    pub unreadable: Vec<TaskId>,
}

/// Why a journal was not restored. The one that was there is unchanged.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// The file or the journal cannot be used.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// Anything else.
    #[error(transparent)]
    Project(#[from] ProjectError),
}

impl Project {
    /// Restores the journal. No process may work with it meanwhile.
    pub async fn restore_journal(
        &self,
        environment: &Environment,
        restore: JournalRestore,
        mut progress: impl FnMut(Progress) + Send + 'static,
    ) -> Result<RestoredJournal, RestoreError> {
        let JournalRestore { file, replace, unfinished } = restore;
        self.prepare_journal()?;
        let (from, journal) = (file.clone(), self.journal_path());
        let ready =
            blocking(move || Restore::prepare(&from, &journal, replace, &mut progress)).await?;
        let mut ready = ready?;
        let (mut paused, mut unreadable) = (None, Vec::new());
        if unfinished == UnfinishedTasks::Pause {
            let models = Models::new(self.settings(environment)?);
            let name = file.display().to_string();
            let rebuilt = blocking(move || {
                ready.distrust(&name, SystemClock.now()).map(|unreadable| (ready, unreadable))
            });
            (ready, unreadable) = rebuilt.await??;
            paused = Some(pause_unfinished(ready.staged(), &file, models).await?);
        }
        let backup = ready.backup().clone();
        let restored = blocking(move || ready.put_in_place(SystemClock.now())).await??;
        Ok(RestoredJournal { backup, before: restored.before, paused, unreadable })
    }
}

/// Pauses every unfinished task of a journal that is not in its place yet. Returns how many tasks it paused. `file` is
/// the name of the file that the journal came from.
async fn pause_unfinished(
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

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ProjectError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ProjectError::Failed(error.to_string()))
}
