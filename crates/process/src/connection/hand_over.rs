//! The journal goes from a process that runs a task to the process that has reserved it.

use std::time::Duration;

use antiphon_project::error::ProjectError;
use antiphon_project::project::Project;
use antiphon_sqlite::SqliteJournal;

use super::{Ownership, Reservation};

/// Pause before another owner is asked again for the journal.
const HAND_OVER_PAUSE: Duration = Duration::from_millis(20);

impl Reservation {
    /// Asks the owner of the journal to hand it over. The journal, when this process has taken it at once.
    pub async fn ask_for_journal(
        &self,
        project: &Project,
    ) -> Result<Option<SqliteJournal>, ProjectError> {
        loop {
            let server = match Ownership::find_with(project, Some(self)).await? {
                Ownership::Owner(journal) => return Ok(Some(journal)),
                Ownership::Client(server) => server,
            };
            match server.client.request_hand_over().await {
                Ok(()) => return Ok(None),
                // It has ended, or is about to.
                Err(error) if error.is_transient() => tokio::time::sleep(HAND_OVER_PAUSE).await,
                Err(error) => return Err(server.project_error(error)),
            }
        }
    }

    /// Asks until this process has the journal: the owner gives it when the calls that run there are recorded.
    pub async fn take_journal(&self, project: &Project) -> Result<SqliteJournal, ProjectError> {
        loop {
            tokio::time::sleep(HAND_OVER_PAUSE).await;
            if let Some(journal) = self.ask_for_journal(project).await? {
                return Ok(journal);
            }
        }
    }
}
