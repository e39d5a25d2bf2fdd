//! Sessions, imported and forked by this process or by the server that owns the journal.

use antiphon_api::SessionFile;
use antiphon_core::{Session, SessionId, SessionSummary};
use antiphon_project::{Principal, forked, imported};
use antiphon_runtime::ImportedConversation;
use serde_json::value::RawValue;

use super::Connection;
use antiphon_project::error::ProjectError;

impl Connection {
    /// Stores a session of a session file in the journal.
    /// With the same `key` it is the same import, also at another owner.
    pub async fn import(&self, session: Session, key: &str) -> Result<SessionId, ProjectError> {
        match self {
            Self::Local(orchestrator) => {
                let key = Principal::default().idempotency_key(Principal::IMPORTS, key);
                let conversation = ImportedConversation { key: Some(key), ..imported(session) };
                let task_id = orchestrator.import_conversation(conversation).await?.task_id;
                Ok(orchestrator.created(&task_id).await?.session_id)
            }
            Self::Server(server, _) => {
                let unwritable = |error: String| ProjectError::Failed(error);
                let json = antiphon_session_file::to_json(&session)
                    .map_err(|error| unwritable(error.to_string()))?;
                let file =
                    RawValue::from_string(json).map_err(|error| unwritable(error.to_string()))?;
                let sent = server.client.import_session(&SessionFile(file), Some(key)).await;
                Ok(server.answer(sent)?.session_id)
            }
        }
    }

    /// Creates a session that begins with the messages of another one.
    /// With the same `key` it is the same fork, also at another owner.
    pub async fn fork(
        &self,
        session: &SessionSummary,
        key: &str,
    ) -> Result<SessionId, ProjectError> {
        match self {
            Self::Local(orchestrator) => {
                let fork = forked(orchestrator, session.last_task.clone()).await?;
                let key = Principal::default().idempotency_key(Principal::FORKS, key);
                let fork = ImportedConversation { key: Some(key), ..fork };
                let task_id = orchestrator.import_conversation(fork).await?.task_id;
                Ok(orchestrator.created(&task_id).await?.session_id)
            }
            Self::Server(server, _) => {
                let sent = server.client.fork_session(&session.session_id, Some(key)).await;
                Ok(server.answer(sent)?.session_id)
            }
        }
    }
}
