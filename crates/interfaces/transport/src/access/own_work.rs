//! Keys of scope `own` see their own work alone: the tasks that they pay for, and what belongs to these tasks.
//!
//! The guard asks here before each handler, so an id of other work never reaches one: it is answered as an id that
//! does not exist. A route that no interface lists is about the whole project, and refused.

use std::num::NonZeroUsize;

use antiphon_core::port::{ApprovalSelector, TaskQuery, TaskSelector};
use antiphon_core::{ApprovalId, ErrorCode, SessionId, TaskId, TaskSummary};
use antiphon_runtime::{OrchestratorError, ReplayError};
use axum::RequestExt;
use axum::extract::{RawPathParams, Request};

use crate::access::caller::Caller;
use crate::api_error::ApiError;
use crate::state::AppState;

/// What a route shows a key of scope `own`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnWork {
    /// The task that the path names.
    Task,
    /// The session that the path names.
    Session,
    /// The approval that the path names.
    Approval,
    /// The path names no work: the handler shows each caller what it may see ([`Caller::own_payer`],
    /// [`Caller::may_see`]).
    Handler,
}

/// Refuses a request for other work than the caller's own.
pub(crate) async fn check(
    state: &AppState,
    caller: Option<&Caller>,
    route: Option<&str>,
    request: &mut Request,
) -> Result<(), ApiError> {
    let Some(caller) = caller else { return Ok(()) };
    let Some(payer) = caller.own_payer() else { return Ok(()) };
    // Without a route the request ends as 404.
    let Some(route) = route else { return Ok(()) };
    let Some(work) = state.access.own_work(route) else { return Err(of_all(route)) };
    // What is not an id names nothing, for every caller.
    match work {
        OwnWork::Handler => Ok(()),
        OwnWork::Task => match id::<TaskId>(request).await {
            Some(task_id) => state.own_task(&payer, &task_id).await.map(drop),
            None => Ok(()),
        },
        OwnWork::Session => match id::<SessionId>(request).await {
            Some(session_id) => state.check_session(caller, &session_id, no_session).await,
            None => Ok(()),
        },
        OwnWork::Approval => match id::<ApprovalId>(request).await {
            Some(approval_id) => state.check_own_approval(&payer, approval_id).await,
            None => Ok(()),
        },
    }
}

/// The id in the path, as its handler reads it.
async fn id<T: std::str::FromStr>(request: &mut Request) -> Option<T> {
    let params = request.extract_parts::<RawPathParams>().await.ok()?;
    let (_, text) = params.iter().next()?;
    text.parse().ok()
}

fn of_all(route: &str) -> ApiError {
    let message = format!(
        "{route} is about the work of the whole project, and this key has scope `own`: use a key of scope `all`"
    );
    ApiError::new(ErrorCode::Forbidden, message)
}

/// The refusal of a session that does not exist.
pub fn no_session(session_id: &SessionId) -> ApiError {
    let message = format!("there is no session `{session_id}`: see GET /v1/sessions");
    ApiError::new(ErrorCode::NotFound, message)
}

fn is_of(task: &TaskSummary, payer: &str) -> bool {
    task.payer.as_deref() == Some(payer)
}

impl AppState {
    /// A task that a key of scope `own` may see.
    async fn own_task(&self, payer: &str, task_id: &TaskId) -> Result<TaskSummary, ApiError> {
        let found = self.find(TaskSelector::One(task_id.clone())).await?;
        let none = || ReplayError::NoTask { task_id: task_id.clone() };
        let own = found.filter(|task| is_of(task, payer));
        own.ok_or_else(|| OrchestratorError::from(none()).into())
    }

    async fn check_own_approval(
        &self,
        payer: &str,
        approval_id: ApprovalId,
    ) -> Result<(), ApiError> {
        let which = ApprovalSelector::One(approval_id.clone());
        let found = self.deps.orchestrator.approvals(which).await?.into_iter().next();
        let task = match found {
            Some(found) => self.find(TaskSelector::One(found.task_id)).await?,
            None => None,
        };
        if task.is_some_and(|task| is_of(&task, payer)) {
            return Ok(());
        }
        Err(OrchestratorError::NoApproval { approval_id }.into())
    }

    async fn find(&self, which: TaskSelector) -> Result<Option<TaskSummary>, ApiError> {
        let query = TaskQuery { which, limit: NonZeroUsize::MIN };
        Ok(self.deps.orchestrator.tasks(query).await?.into_iter().next())
    }

    /// The summary of a task that the caller may see; 404 when there is none.
    pub async fn summary_for(
        &self,
        caller: &Caller,
        task_id: &TaskId,
    ) -> Result<TaskSummary, ApiError> {
        match caller.own_payer() {
            None => self.summary(task_id).await,
            Some(payer) => self.own_task(&payer, task_id).await,
        }
    }

    /// Refuses a session that the caller may not see: as `none`, the answer to one that does not exist. A session is
    /// that of the key that pays for its newest task.
    pub async fn check_session(
        &self,
        caller: &Caller,
        session_id: &SessionId,
        none: impl FnOnce(&SessionId) -> ApiError,
    ) -> Result<(), ApiError> {
        let Some(payer) = caller.own_payer() else { return Ok(()) };
        let newest = self.find(TaskSelector::Session(session_id.clone())).await?;
        let is_own = newest.is_some_and(|task| is_of(&task, &payer));
        if is_own { Ok(()) } else { Err(none(session_id)) }
    }
}
