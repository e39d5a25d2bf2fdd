//! How far a request to an agent got. Who asks may wait for the answer, up to a limit, and asks again
//! when there is none. Waiting ends with the server.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use antiphon_core::{
    AgentName, ErrorCode, EventBody, InteractionId, PeerInputClass, Replied, ResponseStatus, TaskId,
};
use antiphon_runtime::{Orchestrator, OrchestratorError};
use axum::extract::{Path, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api_error::ApiError;
use crate::named::Asked;
use crate::openapi::{Tag, Telling};
use crate::rest::REST_WAIT_S_MAX;
use crate::room::AppState;
use crate::waiting::{Inboxes, live_agents, waiting};

/// How far a request got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// It is in the inbox.
    Waiting,
    /// The agent has read it.
    Taken,
    /// The agent said that it will answer later.
    Accepted,
    /// It is done.
    Completed,
    /// It is not, and will not be.
    Failed,
}

/// A request, and how far it got.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct RequestStatus {
    /// Which.
    pub id: InteractionId,
    /// How far it got.
    pub state: RequestState,
    /// The task it waits for, as long as it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// What came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

impl RequestStatus {
    /// One that was answered for good.
    pub fn answered(replied: Replied) -> Self {
        let state = match replied.status {
            ResponseStatus::Accepted => RequestState::Accepted,
            ResponseStatus::Completed => RequestState::Completed,
            ResponseStatus::Failed => RequestState::Failed,
        };
        let result = Some(replied.result);
        Self { id: replied.in_reply_to, state, task_id: None, result }
    }

    fn open(id: InteractionId, state: RequestState, task_id: TaskId) -> Self {
        Self { id, state, task_id: Some(task_id), result: None }
    }
}

/// How far a request got; `None` when nobody knows it. `agents` are those whose inboxes count also
/// while they are not there.
pub async fn request_status(
    orchestrator: &Orchestrator,
    agents: &[AgentName],
    id: InteractionId,
) -> Result<Option<RequestStatus>, OrchestratorError> {
    if let Some(replied) = orchestrator.reply(id).await? {
        return Ok(Some(RequestStatus::answered(replied)));
    }
    let is_asked =
        |class| matches!(class, PeerInputClass::ActionableRequest | PeerInputClass::SilentRequest);
    let queued = waiting(orchestrator, Inboxes::All(agents)).await?;
    if let Some(found) = queued.into_iter().find(|queued| queued.id == id) {
        let state = RequestState::Waiting;
        return Ok(is_asked(found.class).then(|| RequestStatus::open(id, state, found.task_id)));
    }
    for task_id in live_agents(orchestrator).await?.into_keys() {
        if let Some(owed) = orchestrator.task(&task_id).await?.inbound_requests.get(&id) {
            let state = if owed.accepted { RequestState::Accepted } else { RequestState::Taken };
            return Ok(Some(RequestStatus::open(id, state, task_id)));
        }
    }
    // Answered since it was first looked for.
    Ok(orchestrator.reply(id).await?.map(RequestStatus::answered))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct WaitQuery {
    /// How long to wait for the answer, in seconds; not at all when absent.
    #[schemars(range(max = REST_WAIT_S_MAX))]
    wait_s: Option<NonZeroU32>,
}

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let show = get_with(show, |route| {
        let summary = "How far a request to an agent got.";
        route.told("show_request", Tag::Agents, summary).fails(&[404])
    });
    ApiRouter::new().api_route("/v1/requests/{id}", show)
}

pub(crate) async fn show(
    State(room): State<Arc<AppState>>,
    Path(id): Path<String>,
    Asked(query): Asked<WaitQuery>,
) -> Result<axum::Json<RequestStatus>, ApiError> {
    let none = || ApiError::new(ErrorCode::NotFound, format!("there is no request `{id}`"));
    let id: InteractionId =
        serde_json::from_value(Value::String(id.clone())).map_err(|_| none())?;
    let orchestrator = &room.doors.orchestrator;
    let head = orchestrator.head().await?;
    let agents = room.doors.desk.agents();
    let status = request_status(orchestrator, &agents, id).await?.ok_or_else(none)?;
    let Some(wait_s) = query.wait_s.map(NonZeroU32::get) else { return Ok(axum::Json(status)) };
    if wait_s > REST_WAIT_S_MAX {
        return Err(ApiError::invalid(format!("`wait_s`: 1 to {REST_WAIT_S_MAX}")));
    }
    if status.result.is_some() {
        return Ok(axum::Json(status));
    }
    let answered = async {
        // Of every task: whoever starts an agent that has failed gives it another.
        let mut events = orchestrator.follow(None, head);
        loop {
            let event = events.next().await.map_err(OrchestratorError::from)?;
            if let EventBody::Replied(replied) = event.body
                && replied.in_reply_to == id
                && replied.status.is_final()
            {
                return Ok::<_, ApiError>(RequestStatus::answered(replied));
            }
        }
    };
    let patience = Duration::from_secs(wait_s.into());
    tokio::select! {
        () = room.closing.cancelled() => {
            let message = "the server ends: ask the next one";
            Err(ApiError::new(ErrorCode::ServiceUnavailable, message))
        }
        answered = tokio::time::timeout(patience, answered) => match answered {
            Ok(answered) => answered.map(axum::Json),
            Err(_) => {
                let status = request_status(orchestrator, &agents, id).await?;
                status.map(axum::Json).ok_or_else(none)
            }
        },
    }
}
