//! Live agents: started, stopped, looked at.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
pub use antiphon_api::AgentPresence;
use antiphon_api::{AgentStarted, AgentStopped};
use antiphon_core::{AgentName, AgentState, TaskId};
use antiphon_runtime::{Orchestrator, OrchestratorError, Rejection, Started};
use axum::extract::State;

use crate::api_error::ApiError;
use crate::caller::Caller;
use crate::idempotency;
use crate::named::Named;
use crate::openapi::{Tag, Telling};
use crate::room::AppState;
use crate::waiting::{WAITING_MAX, live_agents};

/// Live agents that are shown, at most.
pub const LIVE_MAX: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// Live agents, and where they stand.
pub async fn agent_presences(
    orchestrator: &Orchestrator,
) -> Result<Vec<AgentPresence>, OrchestratorError> {
    let mut standing = live_agents(orchestrator).await?;
    let mut counts: HashMap<TaskId, usize> = HashMap::new();
    for queued in orchestrator.queued(WAITING_MAX).await? {
        *counts.entry(queued.task_id).or_default() += 1;
    }
    let waiting = |task_id: &TaskId| counts.get(task_id).copied().unwrap_or_default();
    let mut found = Vec::new();
    for live in orchestrator.agents(LIVE_MAX).await? {
        found.push(AgentPresence {
            standing: standing.remove(&live.task_id).is_some(),
            waiting: waiting(&live.task_id),
            agent: live.agent,
            task_id: live.task_id,
            id: Some(live.status.id),
            state: live.status.state,
            last_activity: live.status.last_activity,
            messages_processed: live.status.messages_processed,
        });
    }
    // Those that nothing has arrived for yet.
    found.extend(standing.into_values().map(|task| AgentPresence {
        standing: true,
        waiting: waiting(&task.task_id),
        agent: task.agent,
        task_id: task.task_id,
        id: None,
        state: AgentState::Idle,
        last_activity: task.last_event_at,
        messages_processed: 0,
    }));
    found.sort_by(|one, other| (&one.agent, &one.task_id).cmp(&(&other.agent, &other.task_id)));
    found.truncate(LIVE_MAX.get());
    Ok(found)
}

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let status = get_with(status, |route| {
        route.told("list_live_agents", Tag::Agents, "Live agents, and where they stand.")
    });
    let start = post_with(start, |route| {
        route.told("start_agent", Tag::Agents, "Starts an agent.").fails(&[409])
    });
    let stop = post_with(stop, |route| {
        let route = route.told("stop_agent", Tag::Agents, "Stops an agent.");
        route.keyed().fails(&[400, 409])
    });
    ApiRouter::new()
        .api_route("/v1/agents/status", status)
        .api_route("/v1/agents/{name}/start", start)
        .api_route("/v1/agents/{name}/stop", stop)
}

pub(crate) async fn status(
    State(room): State<Arc<AppState>>,
) -> Result<axum::Json<Vec<AgentPresence>>, ApiError> {
    Ok(axum::Json(agent_presences(&room.doors.orchestrator).await?))
}

pub(crate) async fn start(
    State(room): State<Arc<AppState>>,
    Named(name): Named<AgentName>,
) -> Result<axum::Json<AgentStarted>, ApiError> {
    let orchestrator = &room.doors.orchestrator;
    let known = room.doors.desk.agents();
    if !known.contains(&name) {
        return Err(unknown(&name, &known).into());
    }
    let Started { task_id, already } = orchestrator.start_agent(&name).await?;
    Ok(axum::Json(AgentStarted { agent: name, task_id, already }))
}

/// Stops an agent. When this is answered, the journal says so. One that is no longer defined can
/// still be stopped.
pub(crate) async fn stop(
    State(room): State<Arc<AppState>>,
    caller: Caller,
    Named(name): Named<AgentName>,
    headers: axum::http::HeaderMap,
) -> Result<axum::Json<AgentStopped>, ApiError> {
    let orchestrator = &room.doors.orchestrator;
    let known = room.doors.desk.agents();
    if !known.contains(&name) && orchestrator.agent_task(&name).await?.is_none() {
        return Err(unknown(&name, &known).into());
    }
    // Kept apart from the keys of tasks, whatever a client writes into one.
    let key = idempotency::own_key(&headers)?;
    let key = key.map(|key| idempotency::named(&caller, "http-stop", &format!("{name}:{key}")));
    let task_id = orchestrator.stop_agent(&name, key).await?;
    Ok(axum::Json(AgentStopped { agent: name, task_id }))
}

/// What is told of an agent that is not defined.
pub fn unknown(name: &AgentName, known: &[AgentName]) -> Rejection {
    let known = known.iter().map(AgentName::to_string).collect();
    Rejection::UnknownAgent { agent: name.to_string(), known }
}
