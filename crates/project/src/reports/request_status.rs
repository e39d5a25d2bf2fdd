//! The status of a request to an agent.

use antiphon_api::{RequestState, RequestStatus};
use antiphon_core::{AgentName, EventBody, InteractionId, PeerInputClass, Position};
use antiphon_runtime::{Orchestrator, OrchestratorError};

use crate::reports::presence::live_agents;
use crate::reports::queued_interactions::{Inboxes, QUEUED_INTERACTIONS_MAX, queued_interactions};

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
    let queued =
        queued_interactions(orchestrator, Inboxes::All(agents), QUEUED_INTERACTIONS_MAX).await?;
    if let Some(found) = queued.waiting.into_iter().find(|queued| queued.id == id) {
        let state = RequestState::Waiting;
        return Ok(is_request(found.class).then(|| RequestStatus::open(id, state, found.task_id)));
    }
    for task_id in live_agents(orchestrator).await?.into_keys() {
        if let Some(inbound) = orchestrator.task_alone(&task_id).await?.inbound_requests.get(&id) {
            let state = if inbound.accepted { RequestState::Accepted } else { RequestState::Taken };
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
