//! Conversations that are brought here or branched off: by this process, or by the server that has the
//! journal.

use antiphon_core::{Session, SessionId, SessionSummary};
use antiphon_http::{forked, imported};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;

use super::{Door, Served};
use crate::failure::Failure;

#[derive(Deserialize)]
struct KeptWire {
    session_id: SessionId,
}

impl Door {
    /// Keeps a conversation that was held elsewhere, to be gone on with.
    pub(crate) async fn import(&self, session: Session) -> Result<SessionId, Failure> {
        match self {
            Self::Alone(orchestrator) => {
                let id = session.id.clone();
                orchestrator.import_conversation(imported(session)).await?;
                Ok(id)
            }
            Self::Served(served, _) => served.import(&session).await,
        }
    }

    /// Begins a new conversation with everything that was said in another one.
    pub(crate) async fn fork(&self, session: &SessionSummary) -> Result<SessionId, Failure> {
        match self {
            Self::Alone(orchestrator) => {
                let kept = forked(orchestrator, session.last_task.clone()).await?;
                let task_id = orchestrator.import_conversation(kept).await?;
                Ok(orchestrator.task(&task_id).await?.created.session_id)
            }
            Self::Served(served, _) => served.fork(&session.session_id).await,
        }
    }
}

impl Served {
    async fn import(&self, session: &Session) -> Result<SessionId, Failure> {
        let file = antiphon_session_file::to_json(session)
            .map_err(|error| Failure::failed(error.to_string()))?;
        let request = self.request(Method::POST, self.at(&["v1", "sessions"])?);
        let request = request.header(CONTENT_TYPE, "application/json").body(file);
        let kept: KeptWire = self.read(self.send(request).await?).await?;
        Ok(kept.session_id)
    }

    async fn fork(&self, session_id: &SessionId) -> Result<SessionId, Failure> {
        let url = self.at(&["v1", "sessions", session_id.as_str(), "fork"])?;
        let kept: KeptWire = self.read(self.send(self.request(Method::POST, url)).await?).await?;
        Ok(kept.session_id)
    }
}
