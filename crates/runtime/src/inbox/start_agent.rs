//! Starts and stops resident agents. Each has a resident task, which is its inbox and its conversation.
//!
//! An agent has at most one that has not ended. Each one continues the conversation of the one before,
//! and takes over its unread messages.
//!
//! | the newest one | an interaction arrives                  | a user starts the agent                |
//! |----------------|-----------------------------------------|----------------------------------------|
//! | never existed  | it is started, unless an agent sends    | it is started                          |
//! | has not ended  | it reads the interaction                | nothing happens                        |
//! | was stopped    | the interaction is rejected             | it is started                          |
//! | has failed     | it is started, unless an agent sends    | it is started                          |

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{
    Append, Expected, IdempotencyKey, JournalError, TaskQuery, TaskSelector,
};
use antiphon_core::{
    AgentDefinition, AgentId, AgentName, AgentState, EventBody, HistoryRef, Provenance, Replied,
    ResponseStatus, StateChanged, StatusChanged, TaskCreated, TaskId, TaskLimits, TaskStatus,
    TaskSummary,
};
use serde_json::json;

use crate::budget::tree_usage;
use crate::inbox::admission::{self, StartPolicy};
use crate::inbox::arrival::Rejection;
use crate::inbox::inbox_prompt::system_prompt;
use crate::inbox::lifecycle;
use crate::inbox::residents::{ResidentTask, session_of};
use crate::orchestrator_error::OrchestratorError;
use crate::runner::choose_runner;
use crate::services::Services;
use crate::task::control::cancel;
use crate::task::schedule::supervise;
use crate::task::state::TaskState;

/// Why an agent without a model cannot start, and what to do.
const NO_MODEL: &str = "it names no model, and none is configured: set a key such as ANTHROPIC_API_KEY, run \
     `antiphon init`, or write `model:` into its file";

/// Default number of model answers for each wake-up of a resident agent.
pub const TURNS_DEFAULT: std::num::NonZeroU32 = std::num::NonZeroU32::new(1000).unwrap();

/// Maximum number of tasks of an agent's session that are searched for its resident task.
const SESSION_TASKS_MAX: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// Newest tasks of a session that are looked at first.
const NEWEST_TASKS: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// Result of starting an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedAgent {
    /// Id of its resident task.
    pub task_id: TaskId,
    /// Whether the agent was already started.
    pub already: bool,
}

/// The resident task of an agent, started if it may be.
pub(crate) async fn started_task(
    services: &Arc<Services>,
    name: &AgentName,
    starts: StartPolicy,
    provenance: &Provenance,
) -> Result<Result<TaskId, Rejection>, OrchestratorError> {
    if let Some(task_id) = services.residents.find(name) {
        return Ok(Ok(task_id));
    }
    let last = newest_resident(services, name).await?;
    let agent = name.to_string();
    match last.as_ref().map(|last| last.status) {
        Some(status) if !status.is_terminal() => {}
        Some(TaskStatus::Canceled) => return Ok(Err(Rejection::Stopped { agent })),
        Some(_) | None if starts == StartPolicy::OnlyStarted => {
            return Ok(Err(Rejection::NotStarted { agent }));
        }
        Some(_) | None => {}
    }
    match start_after(services, name, last, provenance).await {
        Ok(started) => Ok(Ok(started.task_id)),
        Err(OrchestratorError::CannotStart { agent, reason }) => {
            Ok(Err(Rejection::CannotStart { agent, why: reason }))
        }
        Err(error) => Err(error),
    }
}

/// Starts an agent, unless it is started.
pub(crate) async fn start_agent(
    services: &Arc<Services>,
    name: &AgentName,
    provenance: &Provenance,
) -> Result<StartedAgent, OrchestratorError> {
    let last = newest_resident(services, name).await?;
    start_after(services, name, last, provenance).await
}

/// The newest resident task of an agent.
pub(crate) async fn newest_resident(
    services: &Services,
    name: &AgentName,
) -> Result<Option<TaskSummary>, OrchestratorError> {
    let (which, mut seen) = (TaskSelector::Session(session_of(name)?), 0);
    // It is among the newest, unless many other tasks continue the session.
    for limit in [NEWEST_TASKS, SESSION_TASKS_MAX] {
        let tasks = services.deps.journal.tasks(TaskQuery { which: which.clone(), limit }).await?;
        let is_all = tasks.len() < limit.get();
        for task in tasks.into_iter().skip(seen) {
            let own = task.parent.is_none() && task.agent == name.as_str();
            let creation = tree_usage::creation(&task.task_id, &*services.deps.journal);
            if own && creation.await?.0.resident {
                return Ok(Some(task));
            }
        }
        if is_all {
            break;
        }
        seen = limit.get();
    }
    Ok(None)
}

async fn start_after(
    services: &Arc<Services>,
    name: &AgentName,
    last: Option<TaskSummary>,
    provenance: &Provenance,
) -> Result<StartedAgent, OrchestratorError> {
    if let Some(last) = last.as_ref().filter(|last| !last.status.is_terminal()) {
        let (created, _) = tree_usage::creation(&last.task_id, &*services.deps.journal).await?;
        let live = ResidentTask { task_id: last.task_id.clone(), agents: created.agents };
        services.residents.insert(name.clone(), live);
        supervise::start(services, &last.task_id);
        return Ok(StartedAgent { task_id: last.task_id.clone(), already: true });
    }
    let created = TaskCreated {
        provenance: provenance.clone(),
        ..resident_creation(services, name, last.as_ref())?
    };
    // It has an id and counts before its first message.
    let agent_id = AgentId::from(services.deps.ids.random());
    let idle = StateChanged::new(agent_id, AgentState::Idle, AgentState::Idle);
    let mut events: Vec<EventBody> = vec![created.clone().into(), idle.into()];
    let starting = events.len();
    if let Some(last) = &last {
        let left = services.reader.load_without_messages(&last.task_id).await?;
        // No call waits for these requests any more, but their answers are read.
        events.extend(left.sent().map(EventBody::from));
        events.extend(left.queue.into_iter().map(EventBody::from));
    }
    // Otherwise it stays a row until something arrives. A runner starts what works on it.
    let has_work = created.runner.is_some() || events.len() > starting;
    let behind = last.as_ref().map_or("first", |last| last.task_id.as_str());
    let append = Append {
        task_id: TaskId::from(services.deps.ids.next()),
        expected: Expected::NoTask,
        at: services.deps.clock.now(),
        events,
        // Concurrent starts create one task.
        key: Some(IdempotencyKey(format!("standing:{name}:{behind}"))),
    };
    let (shared, name) = (Arc::clone(services), name.clone());
    services
        .background
        .run_detached(async move {
            let appended = shared.append(append).await?;
            let task_id = appended.task_id.clone();
            if appended.deduplicated && shared.reader.summary(&task_id).await?.status.is_terminal()
            {
                let reason = "it was started and has ended since: try again".to_owned();
                return Err(OrchestratorError::CannotStart { agent: name.to_string(), reason });
            }
            let live = ResidentTask { task_id: task_id.clone(), agents: created.agents };
            shared.residents.insert(name.clone(), live);
            if has_work || appended.deduplicated {
                supervise::start(&shared, &task_id);
            }
            if !appended.deduplicated {
                lifecycle::notify_peers(
                    &shared,
                    &name,
                    &task_id,
                    lifecycle::LifecycleNotice::Added,
                )
                .await?;
            }
            Ok(StartedAgent { task_id, already: appended.deduplicated })
        })
        .await
}

/// The creation event of an agent's resident task, by its current definition.
fn resident_creation(
    services: &Services,
    name: &AgentName,
    last: Option<&TaskSummary>,
) -> Result<TaskCreated, OrchestratorError> {
    let refuse =
        |reason: String| OrchestratorError::CannotStart { agent: name.to_string(), reason };
    let definition = admission::definition_of(services, name)
        .map_err(|rejection| refuse(rejection.to_string()))?;
    let runner =
        choose_runner::choose(&definition.runtimes, &services.deps.runners).map_err(refuse)?;
    if services.deps.is_orchestrated(runner.as_ref()) {
        let reason = "a peer does not read its inbox here: start the agent at the peer, or give it another \
                      runtime";
        return Err(refuse(reason.to_owned()));
    }
    let model = definition.model.clone().or_else(|| services.deps.models.default_model());
    let limits = limits_of(&definition);
    let created = TaskCreated {
        history: last.map(|last| HistoryRef { task_id: last.task_id.clone(), seq: last.seq }),
        model,
        fallbacks: definition.fallbacks.clone(),
        system_prompt: system_prompt(services, &definition),
        tools: definition.tools.clone(),
        parallel_tools: definition.parallel_tools.clone(),
        agents: definition.agents.clone(),
        runner,
        resident: true,
        boot_time: services.deps.boot_time(&limits),
        limits,
        ..TaskCreated::new(name.as_str(), session_of(name)?)
    };
    if services.deps.uses_run_provider(created.runner.as_ref()) {
        let none = || refuse(NO_MODEL.to_owned());
        let model = created.model.as_ref().ok_or_else(none)?;
        let known = services.deps.models.provider(model, &created.fallbacks, None);
        known.map(drop).map_err(refuse)?;
    }
    Ok(created)
}

/// Stops an agent: its turn, its open requests, its task. Returns the id of that task, if one ran.
/// With a `key`, a repeated call stops the same task.
pub(crate) async fn stop_agent(
    services: &Arc<Services>,
    name: &AgentName,
    key: Option<IdempotencyKey>,
) -> Result<Option<TaskId>, OrchestratorError> {
    let first = match &key {
        Some(key) => services.deps.journal.answered(key).await?,
        None => None,
    };
    let task_id = match first {
        // A repeated call means this task, not one that was started since.
        Some(first) if services.reader.summary(&first.task_id).await?.agent == name.as_str() => {
            first.task_id
        }
        Some(_) => {
            let reason = "the key was used for another command: use a new one".to_owned();
            return Err(OrchestratorError::CannotStart { agent: name.to_string(), reason });
        }
        None => {
            match newest_resident(services, name).await?.filter(|last| !last.status.is_terminal()) {
                Some(last) => {
                    record_stop(services, &last, key).await?;
                    last.task_id
                }
                None => return Ok(None),
            }
        }
    };
    cancel::cancel_one(services, &task_id).await?;
    cancel::cancel_descendants(services, &task_id).await?;
    Ok(Some(task_id))
}

/// Records which task is about to be stopped, under the key.
async fn record_stop(
    services: &Arc<Services>,
    last: &TaskSummary,
    key: Option<IdempotencyKey>,
) -> Result<(), OrchestratorError> {
    if key.is_none() {
        return Ok(());
    }
    let pending = last.status == TaskStatus::Pending;
    let status = if pending { TaskStatus::Running } else { last.status };
    let detail = Some(json!({ "stopping": true }));
    let append = Append {
        task_id: last.task_id.clone(),
        expected: Expected::Exists,
        at: services.deps.clock.now(),
        events: vec![StatusChanged { status, detail, waiting_for: last.waiting_for }.into()],
        key,
    };
    match services.append(append).await {
        Ok(_) | Err(JournalError::Ended { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The replies to open requests that are recorded before a task ends. Unread messages stay for the
/// next task.
pub(crate) fn final_replies(state: &TaskState, status: TaskStatus) -> Vec<Replied> {
    let why = if status == TaskStatus::Canceled { "stopped" } else { "failed" };
    let result = json!({ "code": why, "error": format!("the agent has {why}") });
    let unread =
        state.queue.iter().filter(|queued| queued.expects_answer()).map(|queued| queued.id);
    let requests = state.inbound_requests.keys().copied().chain(unread);
    requests.filter_map(|id| state.answer(id, ResponseStatus::Failed, result.clone())).collect()
}

/// The limits of a resident agent. It has no wall-clock limit.
fn limits_of(definition: &AgentDefinition) -> TaskLimits {
    let own = definition.limits;
    let turns_max = Some(own.turns_max.unwrap_or(TURNS_DEFAULT));
    TaskLimits { turns_max, wall_clock_s_max: None, ..own }
}
