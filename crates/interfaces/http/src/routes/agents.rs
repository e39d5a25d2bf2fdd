//! Agent definitions: read by any caller, written by a person with level `admin`.
//!
//! A definition decides which tools an agent has, so writing one can widen permissions: an agent's key never
//! may. The API writes only files of the project, never the user's own agents.

pub(crate) mod inbox;
pub(crate) mod live;
pub(crate) mod requests;

use std::collections::HashSet;
use std::sync::Arc;

use antiphon_core::{
    AgentDefinition, AgentName, CallableAgents, ErrorCode, ModelRef, RawJson, RunnerConfig,
    Runtime, TaskLimits,
};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with};
use antiphon_interface_transport::{
    ApiError, AppState, Caller, Decider, Json, PathId, idempotency,
};
use antiphon_project::{AgentChange, DefinedAgent, Origin, live_agents, unknown_agent};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;

/// Path segments of the API in place of a name. An agent of such a name could not be reached.
const RESERVED_NAMES: [&str; 1] = ["status"];

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
            route.fails(&[409, 422]).response_with::<200, axum::Json<AgentShown>, _>(|response| {
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

/// An agent definition.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Agent")]
pub(crate) struct AgentShown {
    /// Name of the agent.
    name: AgentName,
    /// What the agent is for.
    description: String,
    /// The model, as `PROVIDER/MODEL`; the caller's model when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<ModelRef>,
    /// Models that are tried in order when the model fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fallbacks: Vec<ModelRef>,
    /// Names of its tools; all tools of its caller when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<String>>,
    /// Agents that it may call.
    agents: CallableAgents,
    /// Runtimes, the preferred one first; local when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    runtimes: Vec<RunnerConfig>,
    /// Limits of its tasks.
    #[serde(default, skip_serializing_if = "TaskLimits::is_none")]
    limits: TaskLimits,
    /// Intents of requests that have a schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    intents: Vec<String>,
    /// JSON Schema that the result of its tasks has to match.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<RawJson>,
    /// `project`, or `user` for an agent of the user, which the API cannot change.
    origin: Origin,
    /// Path of its file.
    path: String,
    /// What is wrong with the file now, while this definition from before is still in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    /// Whether the agent is resident and live.
    live: bool,
    /// Instructions of the agent; absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<String>,
}

/// Whether an agent is shown with its instructions.
#[derive(Clone, Copy)]
enum Detail {
    Summary,
    Full,
}

impl AgentShown {
    fn of(defined: &DefinedAgent, live: bool, detail: Detail) -> Self {
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
            context: match detail {
                Detail::Summary => None,
                Detail::Full => Some(definition.context.clone()),
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

/// Agent definitions.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Agents {
    /// Ordered by name.
    agents: Vec<AgentShown>,
}

async fn list(State(state): State<Arc<AppState>>) -> Result<axum::Json<Agents>, ApiError> {
    let live = live(&state).await?;
    let shown = |defined: &DefinedAgent| {
        let is_live = live.contains(defined.definition.name.as_str());
        AgentShown::of(defined, is_live, Detail::Summary)
    };
    Ok(axum::Json(Agents { agents: state.deps.task_factory.defined().iter().map(shown).collect() }))
}

async fn show(
    State(state): State<Arc<AppState>>,
    PathId(name): PathId<AgentName>,
) -> Result<axum::Json<AgentShown>, ApiError> {
    let defined = find(&state, &name)?;
    shown(&state, &defined).await.map(axum::Json)
}

/// A new agent definition.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "NewAgent")]
#[schemars(example = json!({ "name": "tester", "description": "Writes tests.", "context": "You write tests." }))]
pub(crate) struct NewAgentWire {
    /// Name of the agent, and of its file.
    name: String,
    #[serde(flatten)]
    #[schemars(with = "AgentChange")]
    rest: Map<String, Value>,
}

async fn create(
    State(state): State<Arc<AppState>>,
    _: Decider,
    caller: Caller,
    headers: HeaderMap,
    Json(wire): Json<CreateAgent>,
) -> Result<(StatusCode, axum::Json<Value>), ApiError> {
    let key = idempotency::key(&caller, "http-agent", &headers)?;
    let name = AgentName::parse(&wire.name)
        .map_err(|error| ApiError::invalid(format!("`name`: {error}")))?;
    if RESERVED_NAMES.contains(&name.as_str()) {
        let message =
            format!("`name`: /v1/agents/{name} is a route of this API: choose another name");
        return Err(ApiError::new(ErrorCode::DomainViolation, message));
    }
    let change: AgentChange = serde_json::from_value(Value::Object(wire.rest))
        .map_err(|error| ApiError::invalid(format!("the body: {error}")))?;
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
) -> Result<axum::Json<AgentShown>, ApiError> {
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
    if defined.origin == Origin::User {
        let path = &defined.path;
        let message =
            format!("`{name}` is an agent of the user, not of this project: delete {path}");
        return Err(ApiError::new(ErrorCode::Forbidden, message));
    }
    state.deps.orchestrator.stop_agent(&name, None).await?;
    state.deps.task_factory.delete_agent(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn shown(state: &AppState, defined: &DefinedAgent) -> Result<AgentShown, ApiError> {
    let is_live = live(state).await?.contains(defined.definition.name.as_str());
    Ok(AgentShown::of(defined, is_live, Detail::Full))
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
