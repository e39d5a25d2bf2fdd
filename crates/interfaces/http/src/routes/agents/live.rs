//! Live agents: listed, started and stopped.

use std::sync::Arc;

use antiphon_api::{AgentPresence, AgentStarted, AgentStopped, PresenceQuery};
use antiphon_core::AgentName;
use antiphon_core::port::AgentQuery;
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with, post_with};
use antiphon_interface_transport::{ApiError, AppState, Caller, PathId, QueryParams, idempotency};
use antiphon_project::{LIVE_MAX, agent_presences, unknown_agent};
use antiphon_runtime::StartedAgent;
use axum::extract::State;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let status = get_with(status, |route| {
        let summary = "Lists live agents with their states, the one with the newest task first.";
        route.describe("list_live_agents", Tag::Agents, summary)
    });
    let start = post_with(start, |route| {
        route.describe("start_agent", Tag::Agents, "Starts a resident agent.").fails(&[409])
    });
    let stop = post_with(stop, |route| {
        let route = route.describe("stop_agent", Tag::Agents, "Stops a resident agent.");
        route.with_idempotency_key().fails(&[400, 409])
    });
    ApiRouter::new()
        .api_route("/v1/agents/status", status)
        .api_route("/v1/agents/{name}/start", start)
        .api_route("/v1/agents/{name}/stop", stop)
}

pub(crate) async fn status(
    State(state): State<Arc<AppState>>,
    QueryParams(query): QueryParams<PresenceQuery>,
) -> Result<axum::Json<Vec<AgentPresence>>, ApiError> {
    let PresenceQuery { before, limit } = query;
    let limit = limit.unwrap_or(LIVE_MAX);
    if limit > LIVE_MAX {
        return Err(ApiError::invalid(format!("`limit`: at most {LIVE_MAX}")));
    }
    let page = AgentQuery { before, limit };
    Ok(axum::Json(agent_presences(&state.deps.orchestrator, page).await?))
}

pub(crate) async fn start(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    PathId(name): PathId<AgentName>,
) -> Result<axum::Json<AgentStarted>, ApiError> {
    let orchestrator = &state.deps.orchestrator;
    let known = state.deps.task_factory.agents();
    if !known.contains(&name) {
        return Err(unknown_agent(&name, &known).into());
    }
    let StartedAgent { task_id, already } =
        orchestrator.start_agent(&name, &caller.principal().provenance()).await?;
    Ok(axum::Json(AgentStarted { agent: name, task_id, already }))
}

/// Stops an agent. The stop is durable before the response. An agent that is no longer defined can still be
/// stopped.
pub(crate) async fn stop(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    PathId(name): PathId<AgentName>,
    headers: axum::http::HeaderMap,
) -> Result<axum::Json<AgentStopped>, ApiError> {
    let orchestrator = &state.deps.orchestrator;
    let known = state.deps.task_factory.agents();
    if !known.contains(&name) && orchestrator.agent_task(&name).await?.is_none() {
        return Err(unknown_agent(&name, &known).into());
    }
    // A kind of its own: the key of a stop never collides with the key of a task.
    let key = idempotency::own_key(&headers)?;
    let key =
        key.map(|key| caller.principal().idempotency_key("http-stop", &format!("{name}:{key}")));
    let task_id = orchestrator.stop_agent(&name, key).await?;
    Ok(axum::Json(AgentStopped { agent: name, task_id }))
}
