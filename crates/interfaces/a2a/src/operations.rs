//! The operations, the same for both bindings.

mod list;
mod send;

use std::num::NonZeroUsize;
use std::sync::Arc;

use a2a::{
    SendMessageRequest, SubscribeToTaskRequest, TaskPushNotificationConfig, TaskState, error_code,
};
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{AgentName, ErrorCode, TaskId, TaskStatus, TaskSummary};
use antiphon_interface_transport::{ApiError, AppState, Caller};
use antiphon_runtime::{OrchestratorError, TaskWatch};
use axum::http::request::Parts;
use serde_json::{Value, json};

use crate::A2a;
use crate::card;
use crate::error::A2aError;
use crate::exposure::may_see;
use crate::push::PushSource;
use crate::reply::{Reply, Updates};
use crate::requests::Operation;
use crate::task_view::{self, Extent, check_history};
use crate::watcher::{Source, Until, Watcher};

/// A request to an agent.
pub(crate) struct AgentRequest {
    pub(crate) state: Arc<AppState>,
    pub(crate) a2a: A2a,
    pub(crate) caller: Caller,
    pub(crate) agent: AgentName,
    pub(crate) parts: Parts,
}

impl AgentRequest {
    pub(crate) async fn run(&self, operation: Operation) -> Result<Reply, A2aError> {
        if self.caller.agent().is_some() {
            check_agents_operation(&operation)?;
        }
        let value = match operation {
            Operation::Send(request) => return Box::pin(send::send(self, *request)).await,
            Operation::Stream(request) => return Box::pin(send::stream(self, *request)).await,
            Operation::Subscribe(request) => return self.subscribe(request).await,
            Operation::Get(request) => {
                check_history(request.history_length)?;
                let summary = self.find(&request.id).await?;
                let extent = Extent { history: request.history_length, artifacts: true };
                json!(self.view(&summary, extent).await?)
            }
            Operation::List(request) => json!(list::list(self, request).await?),
            Operation::Cancel(request) => self.cancel(&request.id).await?,
            Operation::CreatePush(config) => {
                let summary = self.find(&config.task_id).await?;
                json!(self.create_push(&summary.task_id, config).await?)
            }
            Operation::GetPush(request) => {
                let summary = self.find(&request.task_id).await?;
                let payer = self.caller.payer();
                json!(self.a2a.push.get(payer.as_deref(), &summary.task_id, &request.id)?)
            }
            Operation::ListPush(request) => {
                let summary = self.find(&request.task_id).await?;
                let payer = self.caller.payer();
                let configs = self.a2a.push.list(payer.as_deref(), &summary.task_id);
                json!({ "configs": configs, "nextPageToken": "" })
            }
            Operation::DeletePush(request) => {
                let summary = self.find(&request.task_id).await?;
                let payer = self.caller.payer();
                self.a2a.push.delete(payer.as_deref(), &summary.task_id, &request.id)?;
                json!({})
            }
            Operation::ExtendedCard => {
                json!(card::extended(&self.state, &self.a2a, &self.parts, &self.agent)?)
            }
        };
        Ok(Reply::Value(value))
    }

    /// A task that the caller may see.
    pub(crate) async fn find(&self, task_id: &str) -> Result<TaskSummary, A2aError> {
        let task_id = TaskId::parse(task_id).map_err(|_| A2aError::no_task())?;
        let which = TaskSelector::One(task_id);
        let query = TaskQuery { which, limit: NonZeroUsize::MIN };
        let found = self.state.deps.orchestrator.tasks(query).await?.into_iter().next();
        // One that the caller may not see is refused with the same words as one that does not exist.
        let seen = found.filter(|task| may_see(&self.caller, &self.agent, task));
        seen.ok_or_else(A2aError::no_task)
    }

    pub(crate) async fn view(
        &self,
        summary: &TaskSummary,
        extent: Extent,
    ) -> Result<a2a::Task, A2aError> {
        task_view::task(&self.state.deps.orchestrator, summary, extent).await
    }

    /// Stores a push configuration of the caller, and begins to deliver.
    pub(crate) async fn create_push(
        &self,
        task_id: &TaskId,
        config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, A2aError> {
        let source = PushSource {
            orchestrator: self.state.deps.orchestrator.clone(),
            keys: self.state.key_ring(),
        };
        self.a2a.push.create(source, self.caller.payer(), task_id, config).await
    }

    async fn cancel(&self, task_id: &str) -> Result<Value, A2aError> {
        let summary = self.find(task_id).await?;
        let ended = |status: TaskStatus| {
            let message = format!("the task has ended: {}", status.as_str());
            A2aError::new(error_code::TASK_NOT_CANCELABLE, message)
        };
        match self.state.deps.orchestrator.cancel(&summary.task_id).await {
            Ok(()) => {}
            Err(OrchestratorError::Ended { .. }) => {
                return Err(ended(self.state.summary(&summary.task_id).await?.status));
            }
            Err(error) => return Err(error.into()),
        }
        let summary = self.state.summary(&summary.task_id).await?;
        Ok(json!(self.view(&summary, Extent { history: None, artifacts: true }).await?))
    }

    async fn subscribe(&self, request: SubscribeToTaskRequest) -> Result<Reply, A2aError> {
        let summary = self.find(&request.id).await?;
        if summary.status.is_terminal() {
            let message = format!("the task has ended: {}; get it", summary.status.as_str());
            return Err(A2aError::unsupported(message));
        }
        self.updates(&summary.task_id, TaskWatch::default(), KnownWait::Continues).await
    }

    /// The task and its updates from now on. `from` begins at or before the current state.
    pub(crate) async fn updates(
        &self,
        task_id: &TaskId,
        from: TaskWatch,
        wait: KnownWait,
    ) -> Result<Reply, A2aError> {
        let (task, mut watcher) = self.watch(task_id, from).await?;
        if wait == KnownWait::Ends && task.status.state == TaskState::InputRequired {
            watcher.end();
        }
        let state = Arc::clone(&self.state);
        Ok(Reply::Updates(Box::new(Updates { state, task: Some(task), watcher })))
    }

    pub(crate) async fn watch(
        &self,
        task_id: &TaskId,
        from: TaskWatch,
    ) -> Result<(a2a::Task, Watcher), A2aError> {
        let orchestrator = &self.state.deps.orchestrator;
        let source = match from {
            TaskWatch { follower: Some(follower), deltas, approvals } => {
                Source { follower, deltas, approvals }
            }
            TaskWatch { follower: None, .. } => {
                let head = orchestrator.head().await?;
                let deltas = Some(orchestrator.task_deltas(task_id));
                let follower = orchestrator.follow(Some(task_id.clone()), head);
                Source { follower, deltas, approvals: None }
            }
        };
        let summary = self.state.summary(task_id).await?;
        let extent = Extent { history: None, artifacts: true };
        let task = self.view(&summary, extent).await?;
        let state: TaskState = task.status.state.clone();
        let watcher =
            Watcher::new(orchestrator, &summary, state, source, Until::Interrupted).await?;
        Ok((task, watcher))
    }
}

/// Refuses what an agent's key may not do through the native API either.
fn check_agents_operation(operation: &Operation) -> Result<(), A2aError> {
    let sends_push = |request: &SendMessageRequest| {
        let configuration = request.configuration.as_ref();
        configuration.is_some_and(|given| given.task_push_notification_config.is_some())
    };
    let refused = match operation {
        Operation::Cancel(_) | Operation::CreatePush(_) | Operation::DeletePush(_) => true,
        Operation::Send(request) | Operation::Stream(request) => sends_push(request),
        Operation::Get(_)
        | Operation::List(_)
        | Operation::Subscribe(_)
        | Operation::GetPush(_)
        | Operation::ListPush(_)
        | Operation::ExtendedCard => false,
    };
    if !refused {
        return Ok(());
    }
    let message =
        "an agent's key cancels no task and sets no push notifications: use a person's key";
    Err(ApiError::new(ErrorCode::Forbidden, message).into())
}

/// What a stream does whose task waits for a person at its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownWait {
    /// It ends after the task.
    Ends,
    /// It goes on: the task is about to continue, or the client waits for the answer of another one.
    Continues,
}
