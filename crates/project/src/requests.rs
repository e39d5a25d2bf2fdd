//! The status of a request to an agent.

use antiphon_core::{
    AgentName, EventBody, InteractionId, PeerInputClass, Position, Replied, ResponseStatus, TaskId,
};
use antiphon_runtime::{Orchestrator, OrchestratorError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::presence::live_agents;
use crate::waiting::{Inboxes, waiting};

/// State of a request to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// The request is in the inbox.
    Waiting,
    /// The agent has read the request.
    Taken,
    /// The agent has promised an answer.
    Accepted,
    /// The agent has done what was requested.
    Completed,
    /// The request failed or expired.
    Failed,
}

/// A request to an agent and its state.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct RequestStatus {
    /// Id of the request.
    pub id: InteractionId,
    /// Its state.
    pub state: RequestState,
    /// The task that has to answer; absent once it is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The answer; absent until there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

impl RequestStatus {
    /// The status of a request that was answered.
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

/// The status of a request; `None` when there is no such request. Searches the inboxes of live agents, and
/// of `agents` that are not live.
pub async fn request_status(
    orchestrator: &Orchestrator,
    agents: &[AgentName],
    id: InteractionId,
) -> Result<Option<RequestStatus>, OrchestratorError> {
    if let Some(replied) = orchestrator.reply(id).await? {
        return Ok(Some(RequestStatus::answered(replied)));
    }
    let is_request =
        |class| matches!(class, PeerInputClass::ActionableRequest | PeerInputClass::SilentRequest);
    let queued = waiting(orchestrator, Inboxes::All(agents)).await?;
    if let Some(found) = queued.into_iter().find(|queued| queued.id == id) {
        let state = RequestState::Waiting;
        return Ok(is_request(found.class).then(|| RequestStatus::open(id, state, found.task_id)));
    }
    for task_id in live_agents(orchestrator).await?.into_keys() {
        if let Some(owed) = orchestrator.task(&task_id).await?.owed.get(&id) {
            let state = if owed.accepted { RequestState::Accepted } else { RequestState::Taken };
            return Ok(Some(RequestStatus::open(id, state, task_id)));
        }
    }
    // The answer may have been recorded since the first look.
    Ok(orchestrator.reply(id).await?.map(RequestStatus::answered))
}

/// Waits for the final answer to a request, from `after` on. Never ends when there is none.
pub async fn request_answer(
    orchestrator: &Orchestrator,
    id: InteractionId,
    after: Position,
) -> Result<RequestStatus, OrchestratorError> {
    // Events of all tasks: a failed agent that is started again has another task.
    let mut events = orchestrator.follow(None, after);
    loop {
        let event = events.next().await?;
        if let EventBody::Replied(replied) = event.body
            && replied.in_reply_to == id
            && replied.status.is_final()
        {
            return Ok(RequestStatus::answered(replied));
        }
    }
}
