//! Rights of the holder of an agent's API key: less than a person, and never in a person's name.
//!
//! | part of a requested task                                    | with an agent's key                          |
//! |-------------------------------------------------------------|----------------------------------------------|
//! | prompt                                                      | read as data, labeled with the agent's name  |
//! | system prompt, history, session, external tools             | refused: the model would read them as ours   |
//! | agent                                                       | the key's agent, or one that it may call     |
//! | tools and agents                                            | at most those of the key's agent; those of its own definition for one that it may call |
//! | limits                                                      | at most those of the key's agent             |
//! | a runner without limits of its own                          | refused: only a person may start it          |
//!
//! A message to a task or to an inbox starts no agent. It is refused when the receiver runs in a runner
//! without limits, because the receiver may execute what it reads.
//!
//! The key of an agent that is no longer defined is refused.

use std::sync::Arc;

use antiphon_core::port::{Clock, IdSource, RandomIds, SystemClock};
use antiphon_core::{
    AgentDefinition, AgentName, CallableAgents, ErrorResponse, Interaction, InteractionId,
    MessageQueued, RunnerConfig, Sender, SilentIntents, TaskId, TaskLimits, UserMessage, classify,
};
use antiphon_runtime::{NewTask, Orchestrator};

use crate::request::principal::Principal;
use crate::request::request_error::{RequestError, forbidden};
use crate::request::task_factory::TaskFactory;
use crate::request::task_request::TaskRequest;

/// The request within what its principal may ask for. A person's request is returned as it is.
pub fn restrict_to_agent(
    task_factory: &dyn TaskFactory,
    principal: &Principal,
    request: TaskRequest,
) -> Result<TaskRequest, ErrorResponse> {
    let Some(agent) = &principal.agent else { return Ok(request) };
    for (field, is_present) in [
        ("system_prompt", request.system_prompt.is_some()),
        ("history", !request.history.is_empty()),
        ("session_id", request.session_id.is_some()),
        ("external_tools", !request.external_tools.is_empty()),
    ] {
        if is_present {
            return Err(forbidden(format!(
                "`{field}` is not allowed with an agent's key; omit it"
            )));
        }
    }
    let own = definition(task_factory, agent)?;
    let may_call = |name: &str| match &own.agents {
        CallableAgents::Any => true,
        CallableAgents::Only(names) => names.iter().any(|known| known == name),
    };
    if let Some(requested) = request.agent.as_deref().map(str::trim)
        && requested != agent.as_str()
        && !may_call(requested)
    {
        return Err(forbidden(format!(
            "`agent`: this is a key of agent `{agent}`, which may not call `{requested}`"
        )));
    }
    // Another agent has the tools and agents of its own definition, as when the agent calls it.
    let is_itself = request.agent.as_deref().is_none_or(|name| name.trim() == agent.as_str());
    let (tools, agents) = if is_itself {
        let agents = match &own.agents {
            CallableAgents::Any => request.agents,
            CallableAgents::Only(agents) => at_most(Some(agents), request.agents),
        };
        (at_most(own.tools.as_ref(), request.tools), agents)
    } else {
        (request.tools, request.agents)
    };
    Ok(TaskRequest {
        message: labeled(principal.sender()?, request.message),
        tools,
        agents,
        limits: lower(&own.limits, &request.limits),
        ..request
    })
}

/// Refuses a task that only a person may start.
pub fn check_start_allowed(
    orchestrator: &Orchestrator,
    principal: &Principal,
    task: &NewTask,
) -> Result<(), ErrorResponse> {
    match (&principal.agent, unlimited_runner(orchestrator, task.runner.as_ref())) {
        (Some(_), Some(kind)) => {
            let agent = &task.agent;
            Err(forbidden(format!("`{agent}` runs in {kind}: only a person may start it")))
        }
        (Some(_) | None, _) => Ok(()),
    }
}

/// Refuses a message to a task that only a person may write to.
pub async fn check_message_allowed(
    orchestrator: &Orchestrator,
    principal: &Principal,
    task_id: &TaskId,
) -> Result<(), RequestError> {
    if principal.agent.is_none() {
        return Ok(());
    }
    let created = orchestrator.task_alone(task_id).await?.created;
    match unlimited_runner(orchestrator, created.runner.as_ref()) {
        Some(kind) => Err(message_refused(&created.agent, kind).into()),
        None => Ok(()),
    }
}

/// Refuses an interaction for an agent that only a person may write to, as it runs now or as it would run
/// when started.
pub async fn check_send_allowed(
    orchestrator: &Orchestrator,
    task_factory: &dyn TaskFactory,
    principal: &Principal,
    to: &AgentName,
) -> Result<(), RequestError> {
    if principal.agent.is_none() {
        return Ok(());
    }
    let defined = task_factory.defined().into_iter().map(|defined| defined.definition);
    let receiver = defined.into_iter().find(|defined| defined.name == *to);
    // An agent without any runner that is available is not started either.
    let runner =
        receiver.and_then(|agent| orchestrator.choose_runner(&agent.runtimes).ok().flatten());
    if let Some(kind) = unlimited_runner(orchestrator, runner.as_ref()) {
        return Err(message_refused(to.as_str(), kind).into());
    }
    match orchestrator.agent_task(to).await? {
        Some(task) => check_message_allowed(orchestrator, principal, &task.task_id).await,
        None => Ok(()),
    }
}

/// The kind of a runner that enforces no limits, if it is one.
fn unlimited_runner<'a>(
    orchestrator: &Orchestrator,
    runner: Option<&'a RunnerConfig>,
) -> Option<&'a str> {
    let unlimited = runner.filter(|runner| orchestrator.is_unrestricted(runner));
    unlimited.map(|runner| runner.kind.as_str())
}

fn message_refused(agent: &str, kind: &str) -> ErrorResponse {
    forbidden(format!("`{agent}` runs in {kind}: only a person may send messages to it"))
}

/// The message as the agent reads it: data with the name of its sender.
pub fn labeled(from: Sender, message: UserMessage) -> UserMessage {
    let interaction = Interaction {
        id: InteractionId::from(RandomIds.next()),
        from,
        content: message.into(),
        handling_mode: antiphon_core::HandlingMode::Queue,
        render_metadata: None,
    };
    MessageQueued::of(classify(interaction, &SilentIntents::default()))
        .user_message(SystemClock.now())
}

/// The definition of the agent that a key was issued to.
fn definition(
    task_factory: &dyn TaskFactory,
    agent: &AgentName,
) -> Result<Arc<AgentDefinition>, ErrorResponse> {
    let defined = task_factory.defined().into_iter().map(|defined| defined.definition);
    defined.into_iter().find(|defined| defined.name == *agent).ok_or_else(|| {
        forbidden(format!("this is a key of agent `{agent}`, which is no longer defined"))
    })
}

/// The lower of each limit.
fn lower(own: &TaskLimits, requested: &TaskLimits) -> TaskLimits {
    fn least<T: Ord + Copy>(own: Option<T>, requested: Option<T>) -> Option<T> {
        own.into_iter().chain(requested).min()
    }
    TaskLimits {
        turns_max: least(own.turns_max, requested.turns_max),
        answer_tokens_max: least(own.answer_tokens_max, requested.answer_tokens_max),
        tool_calls_max: least(own.tool_calls_max, requested.tool_calls_max),
        tokens_max: least(own.tokens_max, requested.tokens_max),
        cost_nano_usd_max: least(own.cost_nano_usd_max, requested.cost_nano_usd_max),
        wall_clock_s_max: least(own.wall_clock_s_max, requested.wall_clock_s_max),
        depth_max: least(own.depth_max, requested.depth_max),
        fan_out_max: least(own.fan_out_max, requested.fan_out_max),
        tasks_max: least(own.tasks_max, requested.tasks_max),
    }
}

/// The requested names that are among `own`; all of `own` when none is requested.
fn at_most(own: Option<&Vec<String>>, requested: Option<Vec<String>>) -> Option<Vec<String>> {
    match (own, requested) {
        (Some(own), Some(requested)) => {
            Some(requested.into_iter().filter(|name| own.contains(name)).collect())
        }
        (own, requested) => requested.or_else(|| own.cloned()),
    }
}
