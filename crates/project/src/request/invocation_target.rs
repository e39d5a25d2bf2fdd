//! The task of one target of an invocation. A target that cannot become a task is refused with the name of
//! the field that has to change.

use std::sync::Arc;

use antiphon_api::NAMES_MAX;
use antiphon_core::{
    AgentDefinition, AgentRef, ErrorCode, ErrorResponse, Executor, ExecutorHint, RunnerConfig,
    Runtime, Target, TaskLimits, ToolPolicy,
};
use antiphon_runtime::{AD_HOC, NewTask, Orchestrator};

use crate::request::on_behalf::{check_start_allowed, restrict_to_agent};
use crate::request::principal::Principal;
use crate::request::request_error::{invalid_request, refused};
use crate::request::task_factory::TaskFactory;
use crate::request::task_request::TaskRequest;
use crate::request::tool_names::check_tools;
use crate::request::user_input::check_message;

/// The tool that calls other agents. An ad-hoc agent has it when its tools name it.
const CALL_AGENT: &str = "call_agent";

/// What holds for all targets of an invocation.
#[derive(Clone, Copy)]
pub(crate) struct SharedTerms<'a> {
    pub(crate) executor: &'a ExecutorHint,
    pub(crate) tools: &'a ToolPolicy,
}

/// The task that a target becomes.
pub(crate) async fn target_task(
    orchestrator: &Orchestrator,
    task_factory: &dyn TaskFactory,
    principal: &Principal,
    target: Target,
    terms: SharedTerms<'_>,
) -> Result<NewTask, ErrorResponse> {
    check_message("message", &target.message)?;
    let (agent, system_prompt, requested) = match target.agent {
        AgentRef::Named { agent_id } => (Some(agent_id.trim().to_owned()), None, None),
        AgentRef::AdHoc { system_prompt, tools } => (None, Some(system_prompt), tools),
    };
    let definition = agent.as_deref().and_then(|name| definition(task_factory, name));
    let policy = target.tools.as_ref().unwrap_or(terms.tools);
    let Grants { tools, agents } = Grants::of(orchestrator, requested, policy)?;
    let whole_prompt = system_prompt.as_deref().map(|prompt| task_factory.system_prompt(prompt));
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
    let request = restrict_to_agent(task_factory, principal, request)?;
    let mut task = task_factory.task(request).await?;
    if let Some(system_prompt) = whole_prompt {
        AD_HOC.clone_into(&mut task.agent);
        task.system_prompt = system_prompt;
    }
    match target.executor.as_ref().unwrap_or(terms.executor) {
        ExecutorHint::Auto => {}
        ExecutorHint::Force(executor) => {
            task.runner = forced_runner(orchestrator, definition.as_deref(), executor)?;
        }
    }
    check_start_allowed(orchestrator, principal, &task)?;
    Ok(task)
}

fn definition(task_factory: &dyn TaskFactory, name: &str) -> Option<Arc<AgentDefinition>> {
    let defined = task_factory.defined().into_iter().map(|defined| defined.definition);
    defined.into_iter().find(|defined| defined.name.as_str() == name)
}

/// The tools and agents that a target may use; the agent's own when absent. At the top there is no client whose
/// tools a policy could lend, so it changes neither. A tool that does not exist is refused.
struct Grants {
    tools: Option<Vec<String>>,
    agents: Option<Vec<String>>,
}

impl Grants {
    fn of(
        orchestrator: &Orchestrator,
        requested: Option<Vec<String>>,
        policy: &ToolPolicy,
    ) -> Result<Self, ErrorResponse> {
        let exact: &[String] = match policy {
            ToolPolicy::Inherit | ToolPolicy::None => &[],
            ToolPolicy::Exact { tools } => tools,
        };
        let names = requested.as_deref().unwrap_or_default();
        if names.len() > NAMES_MAX || exact.len() > NAMES_MAX {
            return Err(invalid_request(format!("`tools`: at most {NAMES_MAX}")));
        }
        check_tools(orchestrator, &[], names.iter().chain(exact))?;
        let calls_agents = names.iter().any(|tool| tool == CALL_AGENT);
        let agents = requested.as_ref().filter(|_| !calls_agents).map(|_| Vec::new());
        Ok(Self { tools: requested, agents })
    }
}

/// The runner of a target whose executor is fixed.
fn forced_runner(
    orchestrator: &Orchestrator,
    definition: Option<&AgentDefinition>,
    executor: &Executor,
) -> Result<Option<RunnerConfig>, ErrorResponse> {
    let refuse = |reason: String| refused(ErrorCode::DomainViolation, reason);
    let requested = match executor {
        Executor::Local => Runtime::Local,
        Executor::Remote { runner } => Runtime::Runner(runner.clone()),
    };
    let runtimes = definition.map_or(&[] as &[_], |definition| &definition.runtimes);
    let is_allowed =
        runtimes.is_empty() || runtimes.iter().any(|runtime| runtime.kind() == requested.kind());
    if !is_allowed {
        let kinds: Vec<&str> = runtimes.iter().map(Runtime::kind).collect();
        let (kinds, kind) = (kinds.join(", "), requested.kind());
        return Err(refuse(format!("`executor`: the agent runs in {kinds}, not in {kind}")));
    }
    let placed = orchestrator.choose_runner(&[requested]);
    placed.map_err(|reason| refuse(format!("`executor`: {reason}")))
}
