//! Lists of a project: from its journal, or from the server that `--server` names.

use std::num::NonZeroUsize;

use antiphon_api::QueuedInteraction;
use antiphon_api::{
    ApprovalQuery, InboxQuery, LISTED_MAX, RequestStatus, SessionDetail, SessionQuery,
};
use antiphon_client::ClientError;
use antiphon_core::port::ApprovalSelector;
use antiphon_core::{AgentName, Approval, InteractionId, Session, SessionSummary};
use antiphon_project::{Inboxes, queued_interactions, request_status, session_of};

use super::{Connection, ProjectServer};
use antiphon_project::error::ProjectError;

/// Most entries of a list that a server sends.
const LISTED: NonZeroUsize = NonZeroUsize::new(LISTED_MAX).unwrap();

impl Connection {
    /// The server whose lists count: one that `--server` names.
    fn named_server(&self) -> Option<&ProjectServer> {
        match self {
            Self::Server(server, _) if server.is_named() => Some(server),
            Self::Local(_) | Self::Server(..) => None,
        }
    }

    /// Approvals, the oldest first.
    pub async fn approvals(&self, which: ApprovalSelector) -> Result<Vec<Approval>, ProjectError> {
        let Some(server) = self.named_server() else {
            return Ok(self.reader().approvals(which).await?);
        };
        let all = which != ApprovalSelector::Pending;
        let mut found =
            server.answer(server.client.approvals(&ApprovalQuery { all }).await)?.approvals;
        if let ApprovalSelector::One(id) = which {
            found.retain(|approval| approval.approval_id == id);
        }
        Ok(found)
    }

    /// Number of tasks that wait for the budget.
    pub async fn waiting_for_budget(&self) -> Result<usize, ProjectError> {
        match self.named_server() {
            None => Ok(self.reader().waiting_for_budget().await?.len()),
            Some(server) => Ok(server.answer(server.client.budget().await)?.waiting.len()),
        }
    }

    /// Sessions, the one with the newest task first. A server sends the newest 1000.
    pub async fn sessions(&self, limit: NonZeroUsize) -> Result<Vec<SessionSummary>, ProjectError> {
        let Some(server) = self.named_server() else {
            return Ok(self.reader().sessions(limit).await?);
        };
        let query = SessionQuery { limit: Some(limit.min(LISTED)) };
        Ok(server.answer(server.client.sessions(&query).await)?.sessions)
    }

    /// A session with its messages.
    pub async fn session(&self, summary: SessionSummary) -> Result<Session, ProjectError> {
        let Some(server) = self.named_server() else {
            return Ok(session_of(self.reader(), summary).await?);
        };
        let detail = server.answer(server.client.session(&summary.session_id).await)?;
        let SessionDetail { summary, system_prompt, messages } = detail;
        Ok(Session {
            id: summary.session_id,
            system_prompt,
            created_at: summary.created_at,
            updated_at: summary.updated_at,
            messages,
        })
    }

    /// Queued interactions in the order of arrival, at most `limit`, and the number of all.
    pub async fn queued_interactions(
        &self,
        inboxes: Inboxes<'_>,
        limit: NonZeroUsize,
    ) -> Result<(Vec<QueuedInteraction>, usize), ProjectError> {
        let Some(server) = self.named_server() else {
            let mut found = queued_interactions(self.reader(), inboxes).await?;
            let total = found.len();
            found.truncate(limit.get());
            return Ok((found, total));
        };
        let agent = match inboxes {
            Inboxes::All(_) => None,
            Inboxes::Of(agent) => Some(agent.clone()),
        };
        let query = InboxQuery { agent, limit: Some(limit.min(LISTED)) };
        let page = server.answer(server.client.inbox(&query).await)?;
        Ok((page.waiting, page.total))
    }

    /// How far a request got; `None` when it is not known.
    pub async fn request_status(
        &self,
        names: &[AgentName],
        id: InteractionId,
    ) -> Result<Option<RequestStatus>, ProjectError> {
        let Some(server) = self.named_server() else {
            return Ok(request_status(self.reader(), names, id).await?);
        };
        match server.client.request_status(id, None).await {
            Ok(status) => Ok(Some(status)),
            Err(ClientError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(server.project_error(error)),
        }
    }
}

impl ProjectServer {
    /// Names of the defined agents.
    pub async fn agent_names(&self) -> Result<Vec<AgentName>, ProjectError> {
        let agents = self.answer(self.client.agents().await)?.agents;
        Ok(agents.into_iter().map(|agent| agent.name).collect())
    }
}
