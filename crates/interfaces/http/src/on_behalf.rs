//! What somebody with an agent's key may ask for: less than a person, and never as one.
//!
//! | of a task it gives                          | becomes                                          |
//! |---------------------------------------------|--------------------------------------------------|
//! | what to do                                  | data, with a label that names the agent          |
//! | a scene, a history, a session, own tools    | refused with 403: they would be read as ours     |
//! | who works on it                             | the agent or one that it may call, or else 403   |
//! | tools, agents and limits                    | those that the agent itself has, at most         |
//! | a place that nothing bounds                 | refused with 403: only a person may start it     |
//!
//! What it says to a task or puts into an inbox starts nobody, and is refused with 403 where whoever
//! would hear it runs in such a place: what is said there may be run.
//!
//! An agent that is not defined any more has nothing to give, and is refused.

use antiphon_core::port::{Clock, IdSource, RandomIds, SystemClock};
use antiphon_core::{
    AgentDefinition, AgentName, CallableAgents, ErrorCode, Interaction, InteractionId,
    MessageQueued, RunnerConfig, Sender, SilentIntents, TaskId, TaskLimits, UserMessage, classify,
};
use antiphon_runtime::NewTask;

use crate::api_error::ApiError;
use crate::caller::Caller;
use crate::room::AppState;
use crate::task_request::TaskRequest;

/// What of a request its caller may ask for.
pub(crate) fn bounded(
    room: &AppState,
    caller: &Caller,
    request: TaskRequest,
) -> Result<TaskRequest, ApiError> {
    let Some(agent) = caller.agent() else { return Ok(request) };
    for (field, is_there) in [
        ("system_prompt", request.system_prompt.is_some()),
        ("history", !request.history.is_empty()),
        ("session_id", request.session_id.is_some()),
        ("external_tools", !request.external_tools.is_empty()),
    ] {
        if is_there {
            return Err(forbidden(format!(
                "`{field}`: an agent's key gives a task, and does not say who works on it or what was \
                 said before: leave it out"
            )));
        }
    }
    let own = definition(room, agent)?;
    let may_call = |name: &str| match &own.agents {
        CallableAgents::Any => true,
        CallableAgents::Only(names) => names.iter().any(|known| known == name),
    };
    if let Some(asked) = request.agent.as_deref().map(str::trim)
        && asked != agent.as_str()
        && !may_call(asked)
    {
        return Err(forbidden(format!(
            "`agent`: `{agent}` may not call `{asked}`, so its key gives it no task"
        )));
    }
    Ok(TaskRequest {
        message: labeled(caller.speaks_as()?, request.message),
        tools: at_most(own.tools.as_ref(), request.tools),
        agents: match &own.agents {
            CallableAgents::Any => request.agents,
            CallableAgents::Only(agents) => at_most(Some(agents), request.agents),
        },
        limits: lower(&own.limits, &request.limits),
        ..request
    })
}

/// Whether its caller may start a task where it would run.
pub(crate) fn may_start(room: &AppState, caller: &Caller, task: &NewTask) -> Result<(), ApiError> {
    match (caller.agent(), unbound(room, task.runner.as_ref())) {
        (Some(_), Some(kind)) => {
            Err(forbidden(format!("`{}` runs in {kind}: only a person may start it", task.agent)))
        }
        (Some(_) | None, _) => Ok(()),
    }
}

/// Whether its caller may say something to a task where it runs.
pub(crate) async fn may_say(
    room: &AppState,
    caller: &Caller,
    task_id: &TaskId,
) -> Result<(), ApiError> {
    if caller.agent().is_none() {
        return Ok(());
    }
    let created = room.doors.orchestrator.task(task_id).await?.created;
    unbound(room, created.runner.as_ref()).map_or(Ok(()), |kind| Err(unheard(&created.agent, kind)))
}

/// Whether its caller may send something to an agent where it runs, or would if it were started.
pub(crate) async fn may_send(
    room: &AppState,
    caller: &Caller,
    to: &AgentName,
) -> Result<(), ApiError> {
    if caller.agent().is_none() {
        return Ok(());
    }
    let orchestrator = &room.doors.orchestrator;
    let defined = room.doors.desk.defined().into_iter().map(|defined| defined.definition);
    let placed = defined.into_iter().find(|defined| defined.name == *to);
    // One that can run nowhere is not started either.
    let placed = placed.and_then(|defined| orchestrator.place(&defined.runtimes).ok().flatten());
    if let Some(kind) = unbound(room, placed.as_ref()) {
        return Err(unheard(to.as_str(), kind));
    }
    match orchestrator.agent_task(to).await? {
        Some(task) => may_say(room, caller, &task.task_id).await,
        None => Ok(()),
    }
}

/// The kind of a place that nothing bounds, if it is one.
fn unbound<'a>(room: &AppState, runner: Option<&'a RunnerConfig>) -> Option<&'a str> {
    let unbound = runner.filter(|runner| room.doors.orchestrator.is_unrestricted(runner));
    unbound.map(|runner| runner.kind.as_str())
}

fn unheard(agent: &str, kind: &str) -> ApiError {
    forbidden(format!("`{agent}` runs in {kind}: only a person may say something to it"))
}

/// What somebody says, as whoever works on it reads it.
pub(crate) fn labeled(from: Sender, message: UserMessage) -> UserMessage {
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

pub(crate) fn forbidden(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::Forbidden, message)
}

/// Who the agent of a key is.
fn definition(
    room: &AppState,
    agent: &AgentName,
) -> Result<std::sync::Arc<AgentDefinition>, ApiError> {
    let defined = room.doors.desk.defined().into_iter().map(|defined| defined.definition);
    defined.into_iter().find(|defined| defined.name == *agent).ok_or_else(|| {
        forbidden(format!("this key is of agent `{agent}`, which is not defined any more"))
    })
}

/// Of two limits the lower one.
fn lower(own: &TaskLimits, asked: &TaskLimits) -> TaskLimits {
    fn least<T: Ord + Copy>(own: Option<T>, asked: Option<T>) -> Option<T> {
        own.into_iter().chain(asked).min()
    }
    TaskLimits {
        turns_max: least(own.turns_max, asked.turns_max),
        answer_tokens_max: least(own.answer_tokens_max, asked.answer_tokens_max),
        tool_calls_max: least(own.tool_calls_max, asked.tool_calls_max),
        tokens_max: least(own.tokens_max, asked.tokens_max),
        cost_nano_usd_max: least(own.cost_nano_usd_max, asked.cost_nano_usd_max),
        wall_clock_s_max: least(own.wall_clock_s_max, asked.wall_clock_s_max),
        depth_max: least(own.depth_max, asked.depth_max),
        fan_out_max: least(own.fan_out_max, asked.fan_out_max),
        tasks_max: least(own.tasks_max, asked.tasks_max),
    }
}

/// What was asked for, of what there is; all of that when nothing was.
fn at_most(own: Option<&Vec<String>>, asked: Option<Vec<String>>) -> Option<Vec<String>> {
    match (own, asked) {
        (Some(own), Some(asked)) => {
            Some(asked.into_iter().filter(|name| own.contains(name)).collect())
        }
        (own, asked) => asked.or_else(|| own.cloned()),
    }
}
