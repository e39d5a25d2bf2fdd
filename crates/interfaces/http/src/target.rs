//! From a target of an invocation to the task it becomes, as the desk has it. What the desk cannot do
//! is refused with a word that says what.

use antiphon_core::{
    AgentDefinition, AgentRef, ErrorCode, Executor, ExecutorHint, RunnerConfig, Runtime, Target,
    TaskLimits, ToolPolicy,
};
use antiphon_runtime::{AD_HOC, NewTask};

use crate::api_error::ApiError;
use crate::caller::Caller;
use crate::on_behalf;
use crate::room::AppState;
use crate::said;
use crate::task_request::{NAMES_MAX, TaskRequest};

/// The tool that calls other agents: who lends tools lends it by its name.
const CALL_AGENT: &str = "call_agent";

/// What holds for all targets.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) executor: &'a ExecutorHint,
    pub(crate) tools: &'a ToolPolicy,
}

/// The task that a target becomes.
pub(crate) async fn task(
    room: &AppState,
    caller: &Caller,
    target: Target,
    terms: Terms<'_>,
) -> Result<NewTask, ApiError> {
    said::check("message", &target.message)?;
    let (agent, system_prompt, wanted) = match target.agent {
        AgentRef::Named { agent_id } => (Some(agent_id.trim().to_owned()), None, None),
        AgentRef::AdHoc { system_prompt, tools } => (None, Some(system_prompt), tools),
    };
    let definition = agent.as_deref().and_then(|name| defined(room, name));
    let Lent { tools, agents } = Lent::of(wanted, terms.tools)?;
    let whole_prompt = system_prompt.as_deref().map(|prompt| room.doors.desk.system_prompt(prompt));
    let request = TaskRequest {
        agent,
        model: None,
        message: target.message,
        history: Vec::new(),
        system_prompt,
        tools,
        agents,
        external_tools: Vec::new(),
        limits: TaskLimits { wall_clock_s_max: target.timeout_s, ..TaskLimits::default() },
        output_schema: target.output_schema,
        session_id: None,
    };
    let request = on_behalf::bounded(room, caller, request)?;
    let mut task = room.doors.desk.task(request).await?;
    if let Some(system_prompt) = whole_prompt {
        AD_HOC.clone_into(&mut task.agent);
        task.system_prompt = system_prompt;
    }
    match target.executor.as_ref().unwrap_or(terms.executor) {
        ExecutorHint::Auto => {}
        ExecutorHint::Force(executor) => {
            task.runner = forced(room, definition.as_deref(), executor)?;
        }
    }
    on_behalf::may_start(room, caller, &task)?;
    Ok(task)
}

fn defined(room: &AppState, name: &str) -> Option<std::sync::Arc<AgentDefinition>> {
    let defined = room.doors.desk.defined().into_iter().map(|defined| defined.definition);
    defined.into_iter().find(|defined| defined.name.as_str() == name)
}

/// The tools and the agents that a target may use, of those there are; all of them when absent.
struct Lent {
    tools: Option<Vec<String>>,
    agents: Option<Vec<String>>,
}

impl Lent {
    fn of(wanted: Option<Vec<String>>, policy: &ToolPolicy) -> Result<Self, ApiError> {
        let many = |names: &Vec<String>| names.len() > NAMES_MAX;
        let exact = match policy {
            ToolPolicy::None => {
                return Ok(Self { tools: Some(Vec::new()), agents: Some(Vec::new()) });
            }
            ToolPolicy::Inherit => None,
            ToolPolicy::Exact { tools } => Some(tools.clone()),
        };
        if wanted.as_ref().is_some_and(many) || exact.as_ref().is_some_and(many) {
            return Err(ApiError::invalid(format!("`tools`: {NAMES_MAX} at most")));
        }
        let agents = exact.as_ref().and_then(|exact| {
            let calls = exact.iter().any(|tool| tool == CALL_AGENT);
            (!calls).then(Vec::new)
        });
        let tools = match (wanted, exact) {
            (Some(wanted), Some(exact)) => {
                Some(wanted.into_iter().filter(|tool| exact.contains(tool)).collect())
            }
            (wanted, exact) => wanted.or(exact),
        };
        Ok(Self { tools, agents })
    }
}

/// Where a target runs that is to run there and nowhere else.
fn forced(
    room: &AppState,
    definition: Option<&AgentDefinition>,
    executor: &Executor,
) -> Result<Option<RunnerConfig>, ApiError> {
    let refuse = |reason: String| ApiError::new(ErrorCode::DomainViolation, reason);
    let wish = match executor {
        Executor::Local => Runtime::Local,
        Executor::Remote { runner } => Runtime::Runner(runner.clone()),
    };
    let runtimes = definition.map_or(&[] as &[_], |definition| &definition.runtimes);
    let fits = runtimes.is_empty() || runtimes.iter().any(|runtime| runtime.kind() == wish.kind());
    if !fits {
        let kinds: Vec<&str> = runtimes.iter().map(Runtime::kind).collect();
        let (kinds, kind) = (kinds.join(", "), wish.kind());
        return Err(refuse(format!("`executor`: it runs in {kinds}, and {kind} was asked for")));
    }
    let placed = room.doors.orchestrator.choose_runner(&[wish]);
    placed.map_err(|reason| refuse(format!("`executor`: {reason}")))
}
