//! Agent definitions: read by any caller, written by a person with level `admin`.
//!
//! A definition decides which tools an agent has, so writing one can widen permissions: an agent's key never
//! may. The API writes only files of the project, never the user's own agents.

pub(crate) mod inbox;
pub(crate) mod live;
pub(crate) mod requests;

use std::collections::HashSet;
use std::sync::Arc;

use antiphon_api::{AgentChange, AgentDetail, AgentList, AgentOrigin, CreateAgent};
use antiphon_core::{AgentName, ErrorCode};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with};
use antiphon_interface_transport::{
    ApiError, AppState, Caller, Decider, Json, PathId, idempotency,
};
use antiphon_project::agent_files::new_agent_name;
use antiphon_project::{AgentScope, DefinedAgent, live_agents, unknown_agent};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let all = get_with(list, |route| {
        route.describe(
            "list_agents",
            Tag::Agents,
            "Lists agent definitions, and whether the agents are live.",
        )
    });
    let all = all.post_with(create, |route| {
        let summary = "Defines an agent in a file of the project.";
        let route = route.describe("define_agent", Tag::Agents, summary).with_idempotency_key();
        let route =
            route.fails(&[409, 422]).response_with::<200, axum::Json<AgentDetail>, _>(|response| {
                response.description("The `Idempotency-Key` was used before: the agent from then.")
            });
        route.response::<201, axum::Json<AgentDetail>>()
    });
    let one = get_with(show, |route| {
        route.describe("show_agent", Tag::Agents, "An agent definition with its instructions.")
    });
    let one = one.put_with(change, |route| {
        let summary = "Changes the definition of an agent of the project.";
        route.describe("change_agent", Tag::Agents, summary).fails(&[409, 422])
    });
    let one = one.delete_with(delete, |route| {
        let summary = "Stops an agent of the project and deletes its definition.";
        let route = route.describe("delete_agent", Tag::Agents, summary).fails(&[409, 422]);
        route.responds(204, "", "The agent is stopped and its definition deleted.")
    });
    ApiRouter::new()
        .api_route("/v1/agents", all)
        .api_route("/v1/agents/{name}", one)
        .merge(live::routes())
        .merge(inbox::routes())
        .merge(requests::routes())
}

async fn list(State(state): State<Arc<AppState>>) -> Result<axum::Json<AgentList>, ApiError> {
    let live = live(&state).await?;
    let shown = |defined: &DefinedAgent| {
        let is_live = live.contains(defined.definition.name.as_str());
        defined.detail(is_live, AgentScope::Summary)
    };
    let factory = &state.deps.task_factory;
    let agents = factory.defined().iter().map(shown).collect();
    Ok(axum::Json(AgentList { agents, problems: factory.problems() }))
}

async fn show(
    State(state): State<Arc<AppState>>,
    PathId(name): PathId<AgentName>,
) -> Result<axum::Json<AgentDetail>, ApiError> {
    let defined = find(&state, &name)?;
    shown(&state, &defined).await.map(axum::Json)
}

async fn create(
    State(state): State<Arc<AppState>>,
    _: Decider,
    caller: Caller,
    headers: HeaderMap,
    Json(wire): Json<CreateAgent>,
) -> Result<(StatusCode, axum::Json<Value>), ApiError> {
    let key = idempotency::key(&caller, "http-agent", &headers)?;
    let name =
        new_agent_name(&wire.name).map_err(|why| ApiError::invalid(format!("`name`: {why}")))?;
    let change: AgentChange = serde_json::from_value(Value::Object(wire.rest))
        .map_err(|error| ApiError::invalid(format!("`body`: {error}")))?;
    let orchestrator = &state.deps.orchestrator;
    if let Some(key) = &key
        && let Some(answer) = orchestrator.recorded(key).await?
    {
        return Ok((StatusCode::OK, axum::Json(answer)));
    }
    let defined = state.deps.task_factory.create_agent(&name, change).await?;
    let answer = serde_json::to_value(shown(&state, &defined).await?)
        .map_err(|error| ApiError::new(ErrorCode::InternalError, error.to_string()))?;
    let answer = match key {
        None => answer,
        Some(key) => orchestrator.record(&format!("define agent {name}"), answer, key).await?,
    };
    Ok((StatusCode::CREATED, axum::Json(answer)))
}

async fn change(
    State(state): State<Arc<AppState>>,
    _: Decider,
    PathId(name): PathId<AgentName>,
    Json(change): Json<AgentChange>,
) -> Result<axum::Json<AgentDetail>, ApiError> {
    find(&state, &name)?;
    let defined = state.deps.task_factory.change_agent(&name, change).await?;
    shown(&state, &defined).await.map(axum::Json)
}

async fn delete(
    State(state): State<Arc<AppState>>,
    _: Decider,
    PathId(name): PathId<AgentName>,
) -> Result<StatusCode, ApiError> {
    let defined = find(&state, &name)?;
    if defined.origin == AgentOrigin::User {
        let path = &defined.path;
        let message =
            format!("`{name}` is an agent of the user, not of this project: delete {path}");
        return Err(ApiError::new(ErrorCode::Forbidden, message));
    }
    state.deps.orchestrator.stop_agent(&name, None).await?;
    state.deps.task_factory.delete_agent(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn shown(state: &AppState, defined: &DefinedAgent) -> Result<AgentDetail, ApiError> {
    let name = &defined.definition.name;
    let task = state.deps.orchestrator.agent_task(name).await?;
    let is_live = task.is_some_and(|task| !task.status.is_terminal());
    let tools = state.deps.orchestrator.tools();
    let tools: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
    Ok(defined.detail(is_live, AgentScope::Full(&tools)))
}

/// Names of the resident agents that are live.
async fn live(state: &AppState) -> Result<HashSet<String>, ApiError> {
    let live = live_agents(&state.deps.orchestrator).await?;
    Ok(live.into_values().map(|task| task.agent).collect())
}

fn find(state: &AppState, name: &AgentName) -> Result<DefinedAgent, ApiError> {
    let defined = state.deps.task_factory.defined();
    let found = defined.iter().find(|defined| defined.definition.name == *name);
    let known = || defined.iter().map(|known| known.definition.name.clone()).collect::<Vec<_>>();
    found.cloned().ok_or_else(|| unknown_agent(name, &known()).into())
}
