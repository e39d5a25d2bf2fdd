//! Definitions of agents: looked at by anybody, written by a person with level `admin`.
//!
//! Who writes a definition says which tools an agent has, and thereby widens what it may do: an agent's
//! key never does. Only files of the project are written; a user's own agents are theirs to edit.

use std::collections::HashSet;
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use antiphon_core::{
    AgentDefinition, AgentName, CallableAgents, ErrorCode, ModelRef, RawJson, RunnerConfig,
    Runtime, TaskLimits,
};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::agent_change::AgentChange;
use crate::api_error::ApiError;
use crate::caller::{Caller, Decider};
use crate::desk::{Defined, Origin};
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
            route.fails(&[409, 422]).response_with::<200, axum::Json<AgentShown>, _>(|told| {
                told.description("The `Idempotency-Key` was used before: the agent that it made.")
            });
        route.response::<201, axum::Json<AgentShown>>()
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

/// An agent, as it is defined.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Agent")]
pub(crate) struct AgentShown {
    /// What others call it.
    name: AgentName,
    /// What it is good for.
    description: String,
    /// Who answers; the caller's model when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<ModelRef>,
    /// Who answers when that one cannot, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fallbacks: Vec<ModelRef>,
    /// The tools it gets; all that its caller has when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<String>>,
    /// The agents it may call.
    agents: CallableAgents,
    /// Where it may run, the best first; here when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    runtimes: Vec<RunnerConfig>,
    /// How far it may go.
    #[serde(default, skip_serializing_if = "TaskLimits::is_none")]
    limits: TaskLimits,
    /// What it can be asked for that has a schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    intents: Vec<String>,
    /// JSON Schema of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<RawJson>,
    /// Whose it is.
    origin: Origin,
    /// Its file.
    path: String,
    /// What is wrong with the file now, when this is what it said before.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    /// Whether it is there for what arrives.
    live: bool,
    /// What it is told before anything else; only where one agent is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<String>,
}

/// How much of an agent is shown.
#[derive(Clone, Copy)]
enum Much {
    AtAGlance,
    Whole,
}

impl AgentShown {
    fn of(defined: &Defined, live: bool, much: Much) -> Self {
        let AgentDefinition { name, description, model, fallbacks, tools, agents, .. } =
            &*defined.definition;
        let definition = &defined.definition;
        Self {
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
}

fn runtime(runtime: &Runtime) -> RunnerConfig {
    match runtime {
        Runtime::Local => RunnerConfig::new(runtime.kind()),
        Runtime::Runner(runner) => runner.clone(),
    }
}

/// Agents that are defined.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Agents {
    /// By name.
    agents: Vec<AgentShown>,
}

async fn list(State(room): State<Arc<AppState>>) -> Result<axum::Json<Agents>, ApiError> {
    let live = live(&room).await?;
    let shown = |defined: &Defined| {
        let is_live = live.contains(defined.definition.name.as_str());
        AgentShown::of(defined, is_live, Much::AtAGlance)
    };
    Ok(axum::Json(Agents { agents: room.doors.desk.defined().iter().map(shown).collect() }))
}

async fn show(
    State(room): State<Arc<AppState>>,
    Named(name): Named<AgentName>,
) -> Result<axum::Json<AgentShown>, ApiError> {
    let defined = find(&room, &name)?;
    shown(&room, &defined).await.map(axum::Json)
}

/// A new agent.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "NewAgent")]
#[schemars(example = json!({ "name": "tester", "description": "Writes tests.", "context": "You write tests." }))]
pub(crate) struct NewAgentWire {
    /// What to call it: also the name of its file.
    name: String,
    #[serde(flatten)]
    #[schemars(with = "AgentChange")]
    rest: Map<String, Value>,
}

async fn create(
    State(room): State<Arc<AppState>>,
    _: Decider,
    caller: Caller,
    headers: HeaderMap,
    Json(wire): Json<NewAgentWire>,
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
) -> Result<axum::Json<AgentShown>, ApiError> {
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
    if defined.origin == Origin::User {
        let path = &defined.path;
        let message = format!("`{name}` is the user's own, and not this project's: remove {path}");
        return Err(ApiError::new(ErrorCode::Forbidden, message));
    }
    room.doors.orchestrator.stop_agent(&name, None).await?;
    room.doors.desk.delete_agent(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn shown(room: &AppState, defined: &Defined) -> Result<AgentShown, ApiError> {
    let is_live = live(room).await?.contains(defined.definition.name.as_str());
    Ok(AgentShown::of(defined, is_live, Much::Whole))
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
