//! The project behind a request: of this server, or of this process and the owner of the journal. What differs between
//! the two is here; everything that is read comes from an orchestrator in both cases.

mod process;
mod server;

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{TaskFilter, TaskQuery, TaskSelector};
use antiphon_core::{
    ApprovalId, ApprovalReply, ErrorCode, SessionId, SourceName, TaskId, TaskSummary,
};
use antiphon_interface_transport::{AppState, Caller, ExposedAgents};
use antiphon_runtime::Orchestrator;
use axum::http::request::Parts;
use rmcp::model::{ErrorData, Extensions};

pub(crate) use process::ProcessBackend;

use crate::agent_offer::AgentOffer;
use crate::failure::Failure;
use crate::feed::Feed;
use crate::task_view;

/// The interface, as decisions and idempotency keys name it, and the source of what its clients send.
pub(crate) const INTERFACE: &str = "mcp";

/// The project that a handler serves.
#[derive(Clone)]
pub(crate) enum Backend {
    Server { state: Arc<AppState>, exposed: Arc<ExposedAgents> },
    Process(Arc<ProcessBackend>),
}

/// One request: the project that it is about, and its caller.
#[derive(Clone)]
pub(crate) struct McpRequest {
    backend: Backend,
    pub(crate) caller: Caller,
    /// Absent on standard input.
    parts: Option<Arc<Parts>>,
}

/// A new task of an agent.
pub(crate) struct NewCall<'a> {
    pub(crate) agent: &'a AgentOffer,
    pub(crate) message: String,
    /// The session that it continues, with its last task.
    pub(crate) session: Option<(SessionId, TaskId)>,
    /// Makes a repeated call the same task.
    pub(crate) key: Option<String>,
}

impl Backend {
    /// A request with these extensions.
    pub(crate) fn request(&self, extensions: &Extensions) -> Result<McpRequest, ErrorData> {
        let backend = self.clone();
        match self {
            Self::Process(_) => Ok(McpRequest { backend, caller: Caller::Owner, parts: None }),
            Self::Server { .. } => {
                let parts = extensions.get::<Parts>();
                let caller = parts.and_then(|parts| parts.extensions.get::<Caller>()).cloned();
                let (Some(parts), Some(caller)) = (parts, caller) else {
                    return Err(ErrorData::internal_error("a request without a caller", None));
                };
                Ok(McpRequest { backend, caller, parts: Some(Arc::new(parts.clone())) })
            }
        }
    }
}

impl McpRequest {
    /// Agents that the caller may use.
    pub(crate) async fn agents(&self) -> Result<Vec<AgentOffer>, Failure> {
        match (&self.backend, &self.parts) {
            (Backend::Server { state, exposed }, Some(parts)) => {
                Ok(server::agents(state, exposed, parts))
            }
            (Backend::Server { .. }, None) => Ok(Vec::new()),
            (Backend::Process(process), _) => process.agents().await,
        }
    }

    /// Reads the journal.
    pub(crate) async fn reader(&self) -> Result<Orchestrator, Failure> {
        match &self.backend {
            Backend::Server { state, .. } => Ok(state.deps.orchestrator.clone()),
            Backend::Process(process) => process.reader().await,
        }
    }

    /// Starts the task of a call. The journal has it when this returns.
    pub(crate) async fn start(&self, call: NewCall<'_>) -> Result<(TaskId, Feed), Failure> {
        match (&self.backend, &self.parts) {
            (Backend::Server { state, .. }, Some(parts)) => {
                server::start(state, &self.caller, parts, call).await
            }
            (Backend::Server { .. }, None) => Err(Failure::no_task()),
            (Backend::Process(process), _) => process.start(call).await,
        }
    }

    /// The changes of a task from now on. Its state is read after this, so that no change is missed.
    pub(crate) async fn follow(&self, task: &TaskSummary) -> Result<Feed, Failure> {
        match &self.backend {
            Backend::Server { state, .. } => server::follow(state, &task.task_id).await,
            Backend::Process(process) => process.follow(task).await,
        }
    }

    /// Sends a text to a task, and resumes the task if it waits for that.
    pub(crate) async fn send(&self, task: &TaskSummary, text: String) -> Result<(), Failure> {
        match &self.backend {
            Backend::Server { state, .. } => server::send(state, &self.caller, task, text).await,
            Backend::Process(process) => process.send(task, text).await,
        }
    }

    /// Cancels a task and its descendants.
    pub(crate) async fn cancel(&self, task_id: &TaskId) -> Result<(), Failure> {
        match &self.backend {
            Backend::Server { state, .. } => Ok(state.deps.orchestrator.cancel(task_id).await?),
            Backend::Process(process) => Ok(process.connection().await?.cancel(task_id).await?),
        }
    }

    /// Who decides when the person of the caller answers; `None` when the caller may not decide.
    pub(crate) fn decider(&self) -> Option<String> {
        self.caller.decider(INTERFACE)
    }

    /// Decides an approval.
    pub(crate) async fn decide(
        &self,
        approval_id: &ApprovalId,
        reply: ApprovalReply,
    ) -> Result<(), Failure> {
        let Some(by) = self.decider() else {
            let message =
                "only the owner and a person's key of level `admin` may decide an approval";
            return Err(Failure::new(ErrorCode::Forbidden, message));
        };
        match &self.backend {
            Backend::Server { state, .. } => {
                Ok(state.deps.orchestrator.answer(approval_id, &reply, &by).await?)
            }
            Backend::Process(process) => {
                let connection = process.connection().await?;
                Ok(connection.reply(approval_id, reply, &by).await?)
            }
        }
    }

    /// A task that the caller may see.
    pub(crate) async fn task(&self, task_id: &str) -> Result<TaskSummary, Failure> {
        let task_id = TaskId::parse(task_id).map_err(|_| Failure::no_task())?;
        let summary = task_view::summary(&self.reader().await?, &task_id).await?;
        if self.may_see(&summary, &self.agents().await?) {
            Ok(summary)
        } else {
            Err(Failure::no_task())
        }
    }

    /// Whether the caller may see a task: a root task of its own, of an agent that it may use.
    pub(crate) fn may_see(&self, task: &TaskSummary, agents: &[AgentOffer]) -> bool {
        let is_shown = match &self.backend {
            // The owner's own client.
            Backend::Process(_) => true,
            Backend::Server { .. } => agents.iter().any(|offer| offer.name.as_str() == task.agent),
        };
        is_shown && self.caller.may_see(task)
    }

    /// The payer of the only tasks that the caller may see; `None` when it may see those of all payers.
    pub(crate) fn seen_payer(&self) -> Option<String> {
        self.caller.seen_payer()
    }

    /// The newest task of a session that the caller may see.
    pub(crate) async fn last_task(&self, session_id: &str) -> Result<TaskSummary, Failure> {
        let none = || {
            Failure::not_found("there is no such session: use the `sessionId` of an earlier result")
        };
        let session = SessionId::parse(session_id).map_err(|_| none())?;
        let filter = TaskFilter { session: Some(session), roots: true, ..TaskFilter::default() };
        let query = TaskQuery { which: TaskSelector::Matching(filter), limit: NonZeroUsize::MIN };
        let newest = self.reader().await?.tasks(query).await?.into_iter().next();
        let agents = self.agents().await?;
        newest.filter(|task| self.may_see(task, &agents)).ok_or_else(none)
    }

    /// Resolves when the server stops or the client's connection ends. Tasks of a server go on without it.
    pub(crate) async fn ending(&self) {
        match &self.backend {
            Backend::Server { state, .. } => state.closing.cancelled().await,
            Backend::Process(process) => process.ending.cancelled().await,
        }
    }

    /// The client of a process is gone: its task stops, and goes on when it is resumed. A server's task goes on.
    pub(crate) async fn interrupt(&self, task_id: &TaskId) {
        let Backend::Process(process) = &self.backend else { return };
        let interrupted = match process.connection().await {
            Ok(connection) => connection.interrupt(task_id).await.map_err(Failure::from),
            Err(error) => Err(error),
        };
        if let Err(error) = interrupted {
            tracing::debug!(error = error.message, "a task was not interrupted");
        }
    }
}

/// The source of what clients send.
pub(crate) fn source() -> Result<SourceName, Failure> {
    SourceName::parse(INTERFACE).map_err(|error| Failure::invalid(error.to_string()))
}
