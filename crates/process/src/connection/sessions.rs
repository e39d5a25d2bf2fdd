//! Sessions, imported and forked by this process or by the server that owns the journal.

use antiphon_api::SessionFile;
use antiphon_core::{Session, SessionId, SessionSummary};
use antiphon_project::{forked, imported};
use serde_json::value::RawValue;

use super::Connection;
use antiphon_project::error::ProjectError;

impl Connection {
    /// Stores a session of a session file in the journal.
    pub async fn import(&self, session: Session) -> Result<SessionId, ProjectError> {
        match self {
            Self::Local(orchestrator) => {
                let id = session.id.clone();
                orchestrator.import_conversation(imported(session)).await?;
                Ok(id)
            }
            Self::Server(server, _) => {
                let unwritable = |error: String| ProjectError::Failed(error);
                let json = antiphon_session_file::to_json(&session)
                    .map_err(|error| unwritable(error.to_string()))?;
                let file =
                    RawValue::from_string(json).map_err(|error| unwritable(error.to_string()))?;
                let sent = server.client.import_session(&SessionFile(file), None).await;
                Ok(server.answer(sent)?.session_id)
            }
        }
    }

    /// Creates a session that begins with the messages of another one.
    pub async fn fork(&self, session: &SessionSummary) -> Result<SessionId, ProjectError> {
        match self {
            Self::Local(orchestrator) => {
                let fork = forked(orchestrator, session.last_task.clone()).await?;
                let task_id = orchestrator.import_conversation(fork).await?.task_id;
                Ok(orchestrator.task(&task_id).await?.created.session_id)
            }
            Self::Server(server, _) => {
                let sent = server.client.fork_session(&session.session_id).await;
                Ok(server.answer(sent)?.session_id)
            }
        }
    }
}
