//! Definitions of agents: looked at by anybody, written by a person with level `admin`.
//!
//! Who writes a definition says which tools an agent has, and thereby widens what it may do: an agent's
//! key never does. Only files of the project are written; a user's own agents are theirs to edit.

use std::collections::HashSet;
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use antiphon_api::{AgentChange, AgentDetail, AgentList, AgentOrigin, CreateAgent};
use antiphon_core::{AgentDefinition, AgentName, ErrorCode, RunnerConfig, Runtime};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::api_error::ApiError;
use crate::caller::{Caller, Decider};
use crate::desk::Defined;
use crate::idempotency;
use crate::json::Json;
use crate::live::unknown;
use crate::named::Named;
use crate::openapi::{Tag, Telling};
use crate::room::AppState;
use crate::waiting::live_agents;

/// Words of the API that stand where a name does: no agent is made that could not be reached.
const FIXED_WORDS: [&str; 1] = ["status"];

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let all = get_with(list, |route| {
        route.told(
            "list_agents",
            Tag::Agents,
            "Agents that are defined, and whether they are live.",
        )
    });
    let all = all.post_with(create, |route| {
        let summary = "Defines an agent, in a file of the project.";
        let route = route.told("define_agent", Tag::Agents, summary).keyed();
        let route =
            route.fails(&[409, 422]).response_with::<200, axum::Json<AgentDetail>, _>(|told| {
                told.description("The `Idempotency-Key` was used before: the agent that it made.")
            });
        route.response::<201, axum::Json<AgentDetail>>()
    });
    let one = get_with(show, |route| {
        route.told("show_agent", Tag::Agents, "One agent, with what it is told.")
    });
    let one = one.put_with(change, |route| {
        let summary = "Changes the definition of an agent of the project.";
        route.told("change_agent", Tag::Agents, summary).fails(&[409, 422])
    });
    let one = one.delete_with(delete, |route| {
        let summary = "Stops an agent of the project, and removes its definition.";
        let route = route.told("delete_agent", Tag::Agents, summary).fails(&[409, 422]);
        route.answers(204, "", "It is gone.")
    });
    ApiRouter::new().api_route("/v1/agents", all).api_route("/v1/agents/{name}", one)
}

/// How much of an agent is shown.
#[derive(Clone, Copy)]
enum Much {
    AtAGlance,
    Whole,
}

fn detail(defined: &Defined, live: bool, much: Much) -> AgentDetail {
    let AgentDefinition { name, description, model, fallbacks, tools, agents, .. } =
        &*defined.definition;
    let definition = &defined.definition;
    AgentDetail {
        name: name.clone(),
        description: description.clone(),
        model: model.clone(),
        fallbacks: fallbacks.clone(),
        tools: tools.clone(),
        agents: agents.clone(),
        runtimes: definition.runtimes.iter().map(runtime).collect(),
        limits: definition.limits,
        intents: definition.intents.keys().cloned().collect(),
        output_schema: definition.output_schema.clone(),
        origin: defined.origin,
        path: defined.path.clone(),
        fault: defined.fault.clone(),
        live,
        context: match much {
            Much::AtAGlance => None,
            Much::Whole => Some(definition.context.clone()),
        },
    }
}

fn runtime(runtime: &Runtime) -> RunnerConfig {
    match runtime {
        Runtime::Local => RunnerConfig::new(runtime.kind()),
        Runtime::Runner(runner) => runner.clone(),
    }
}

async fn list(State(room): State<Arc<AppState>>) -> Result<axum::Json<AgentList>, ApiError> {
    let live = live(&room).await?;
    let shown = |defined: &Defined| {
        let is_live = live.contains(defined.definition.name.as_str());
        detail(defined, is_live, Much::AtAGlance)
    };
    Ok(axum::Json(AgentList { agents: room.doors.desk.defined().iter().map(shown).collect() }))
}

async fn show(
    State(room): State<Arc<AppState>>,
    Named(name): Named<AgentName>,
) -> Result<axum::Json<AgentDetail>, ApiError> {
    let defined = find(&room, &name)?;
    shown(&room, &defined).await.map(axum::Json)
}

async fn create(
    State(room): State<Arc<AppState>>,
    _: Decider,
    caller: Caller,
    headers: HeaderMap,
    Json(wire): Json<CreateAgent>,
) -> Result<(StatusCode, axum::Json<Value>), ApiError> {
    let key = idempotency::key(&caller, "http-agent", &headers)?;
    let name = AgentName::parse(&wire.name)
        .map_err(|error| ApiError::invalid(format!("`name`: {error}")))?;
    if FIXED_WORDS.contains(&name.as_str()) {
        let message = format!(
            "`name`: /v1/agents/{name} is a word of this API, so nobody could reach an agent of that \
             name: choose another"
        );
        return Err(ApiError::new(ErrorCode::DomainViolation, message));
    }
    let change: AgentChange = serde_json::from_value(Value::Object(wire.rest))
        .map_err(|error| ApiError::invalid(format!("the body: {error}")))?;
    let orchestrator = &room.doors.orchestrator;
    if let Some(key) = &key
        && let Some(answer) = orchestrator.recorded(key).await?
    {
        return Ok((StatusCode::OK, axum::Json(answer)));
    }
    let defined = room.doors.desk.create_agent(&name, change).await?;
    let answer = serde_json::to_value(shown(&room, &defined).await?)
        .map_err(|error| ApiError::new(ErrorCode::InternalError, error.to_string()))?;
    let answer = match key {
        None => answer,
        Some(key) => orchestrator.record(&format!("define agent {name}"), answer, key).await?,
    };
    Ok((StatusCode::CREATED, axum::Json(answer)))
}

async fn change(
    State(room): State<Arc<AppState>>,
    _: Decider,
    Named(name): Named<AgentName>,
    Json(change): Json<AgentChange>,
) -> Result<axum::Json<AgentDetail>, ApiError> {
    find(&room, &name)?;
    let defined = room.doors.desk.change_agent(&name, change).await?;
    shown(&room, &defined).await.map(axum::Json)
}

async fn delete(
    State(room): State<Arc<AppState>>,
    _: Decider,
    Named(name): Named<AgentName>,
) -> Result<StatusCode, ApiError> {
    let defined = find(&room, &name)?;
    if defined.origin == AgentOrigin::User {
        let path = &defined.path;
        let message = format!("`{name}` is the user's own, and not this project's: remove {path}");
        return Err(ApiError::new(ErrorCode::Forbidden, message));
    }
    room.doors.orchestrator.stop_agent(&name, None).await?;
    room.doors.desk.delete_agent(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn shown(room: &AppState, defined: &Defined) -> Result<AgentDetail, ApiError> {
    let is_live = live(room).await?.contains(defined.definition.name.as_str());
    Ok(detail(defined, is_live, Much::Whole))
}

/// The names of those who are there for what arrives.
async fn live(room: &AppState) -> Result<HashSet<String>, ApiError> {
    let live = live_agents(&room.doors.orchestrator).await?;
    Ok(live.into_values().map(|task| task.agent).collect())
}

fn find(room: &AppState, name: &AgentName) -> Result<Defined, ApiError> {
    let defined = room.doors.desk.defined();
    let found = defined.iter().find(|defined| defined.definition.name == *name);
    let known = || defined.iter().map(|known| known.definition.name.clone()).collect::<Vec<_>>();
    found.cloned().ok_or_else(|| unknown(name, &known()).into())
}
