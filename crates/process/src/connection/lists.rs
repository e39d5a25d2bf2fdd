//! Lists of a project: from its journal, or from the server that `--server` names.

use std::num::NonZeroUsize;

use antiphon_api::{
    ApprovalQuery, InboxPage, InboxQuery, LISTED_MAX, RequestStatus, SessionDetail, SessionQuery,
};
use antiphon_client::ClientError;
use antiphon_core::port::{self, ApprovalSelector, QueuedQuery};
use antiphon_core::{AgentName, Approval, InteractionId, Session, SessionSummary, TaskId};
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

    /// Approvals, the oldest first: all of a selection, or a page of it.
    pub async fn approvals(
        &self,
        query: impl Into<port::ApprovalQuery>,
    ) -> Result<Vec<Approval>, ProjectError> {
        let query = query.into();
        let Some(server) = self.named_server() else {
            return Ok(self.reader().approvals(query).await?);
        };
        let all = match query.which {
            ApprovalSelector::All => true,
            ApprovalSelector::Pending => false,
            ApprovalSelector::AllOf(_) | ApprovalSelector::PendingOf(_) => {
                let message = "a server lists the approvals of a key for that key alone";
                return Err(ProjectError::InvalidInput(message.to_owned()));
            }
            ApprovalSelector::PendingIn(root) => {
                let first = ApprovalQuery { all: false, limit: None, cursor: query.after };
                let all = server.approvals(first, port::ApprovalQuery::MAX).await?;
                return server.of_tree(all, &root, query.limit).await;
            }
            ApprovalSelector::One(id) => {
                return Ok(server.known(server.client.approval(&id).await)?.into_iter().collect());
            }
        };
        let first = ApprovalQuery { all, limit: None, cursor: query.after };
        server.approvals(first, query.limit).await
    }

    /// Number of tasks that wait for the budget.
    pub async fn waiting_for_budget(&self) -> Result<usize, ProjectError> {
        match self.named_server() {
            None => Ok(self.reader().waiting_for_budget().await?.len()),
            Some(server) => Ok(server.answer(server.client.budget().await)?.waiting.len()),
        }
    }

    /// Sessions, the one with the newest task first: the first ones up to a limit, or a page of them.
    pub async fn sessions(
        &self,
        query: impl Into<port::SessionQuery>,
    ) -> Result<Vec<SessionSummary>, ProjectError> {
        let query = query.into();
        let Some(server) = self.named_server() else {
            return Ok(self.reader().sessions(query).await?);
        };
        let (mut found, mut cursor) = (Vec::new(), query.before);
        while let Some(limit) = NonZeroUsize::new(query.limit.get() - found.len()) {
            let page = SessionQuery { limit: Some(limit.min(LISTED)), cursor };
            let page = server.answer(server.client.sessions(&page).await)?;
            found.extend(page.sessions);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(found)
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
        query: impl Into<QueuedQuery>,
    ) -> Result<InboxPage, ProjectError> {
        let query = query.into();
        let Some(server) = self.named_server() else {
            return Ok(queued_interactions(self.reader(), inboxes, query).await?);
        };
        let agent = match inboxes {
            Inboxes::All(_) => None,
            Inboxes::Of(agent) => Some(agent.clone()),
        };
        let mut found = InboxPage { waiting: Vec::new(), total: 0, next_cursor: Some(query.after) };
        while let Some(limit) = NonZeroUsize::new(query.limit.get() - found.waiting.len())
            && let Some(cursor) = found.next_cursor
        {
            let (agent, limit) = (agent.clone(), Some(limit.min(LISTED)));
            let page = InboxQuery { agent, limit, cursor: Some(cursor) };
            let page = server.answer(server.client.inbox(&page).await)?;
            found.waiting.extend(page.waiting);
            (found.total, found.next_cursor) = (page.total, page.next_cursor);
        }
        Ok(found)
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
        server.known(server.client.request_status(id, None).await)
    }
}

impl ProjectServer {
    /// Approvals from the page `first` on, page by page, up to a limit.
    async fn approvals(
        &self,
        first: ApprovalQuery,
        limit: NonZeroUsize,
    ) -> Result<Vec<Approval>, ProjectError> {
        let ApprovalQuery { all, mut cursor, .. } = first;
        let mut found = Vec::new();
        while let Some(limit) = NonZeroUsize::new(limit.get() - found.len()) {
            let page = ApprovalQuery { all, limit: Some(limit.min(LISTED)), cursor };
            let page = self.answer(self.client.approvals(&page).await)?;
            found.extend(page.approvals);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(found)
    }

    /// Those of the tree with this root. The list of a server does not say which tree an approval is of.
    async fn of_tree(
        &self,
        approvals: Vec<Approval>,
        root: &TaskId,
        limit: NonZeroUsize,
    ) -> Result<Vec<Approval>, ProjectError> {
        let mut found = Vec::new();
        for approval in approvals {
            let task = self.known(self.client.task(&approval.task_id).await)?;
            if task.is_some_and(|task| task.summary.root == *root) {
                found.push(approval);
            }
            if found.len() == limit.get() {
                break;
            }
        }
        Ok(found)
    }

    /// The answer to a request about one thing; `None` when the server does not know it.
    fn known<T>(&self, answer: Result<T, ClientError>) -> Result<Option<T>, ProjectError> {
        match answer {
            Ok(found) => Ok(Some(found)),
            Err(ClientError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(self.project_error(error)),
        }
    }

    /// Names of the defined agents.
    pub async fn agent_names(&self) -> Result<Vec<AgentName>, ProjectError> {
        let agents = self.answer(self.client.agents().await)?.agents;
        Ok(agents.into_iter().map(|agent| agent.name).collect())
    }
}
