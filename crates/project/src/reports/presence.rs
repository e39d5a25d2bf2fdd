//! Live agents: resident agents, and agents that work on a task.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::num::NonZeroUsize;

use antiphon_api::AgentPresence;
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{AgentName, AgentState, TaskId, TaskStatus, TaskSummary};
use antiphon_runtime::{Orchestrator, OrchestratorError, Rejection, is_resident};
use serde_json::Value;

use crate::reports::queued_interactions::QUEUED_INTERACTIONS_MAX;

/// Live agents in one list, at most.
pub const LIVE_MAX: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// Unfinished tasks among which resident agents are searched, at most.
const TASKS_MAX: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

/// Live agents, ordered by name; at most [`LIVE_MAX`].
pub async fn agent_presences(
    orchestrator: &Orchestrator,
) -> Result<Vec<AgentPresence>, OrchestratorError> {
    let mut unfinished = unfinished_tasks(orchestrator).await?;
    let mut counts: HashMap<TaskId, usize> = HashMap::new();
    for queued in orchestrator.queued(QUEUED_INTERACTIONS_MAX).await? {
        *counts.entry(queued.task_id).or_default() += 1;
    }
    let waiting = |task_id: &TaskId| counts.get(task_id).copied().unwrap_or_default();
    let mut found = Vec::new();
    for live in orchestrator.agents(LIVE_MAX).await? {
        let task = unfinished.remove(&live.task_id);
        // A program in a terminal has no turns.
        let may_wait = |task: &&TaskSummary| {
            let is_silent = is_resident(task) && live.status.messages_processed == 0;
            is_silent || task.wait.is_some()
        };
        let reason = match task.as_ref().filter(may_wait) {
            Some(task) => waits(orchestrator, task).await?,
            None => None,
        };
        found.push(AgentPresence {
            standing: task.as_ref().is_some_and(is_resident),
            waiting: waiting(&live.task_id),
            agent: live.agent,
            task_id: live.task_id,
            id: Some(live.status.id),
            state: live.status.state,
            last_activity: live.status.last_activity,
            messages_processed: live.status.messages_processed,
            waits: reason,
            waiting_for: task.as_ref().and_then(|task| task.waiting_for),
            wait: task.and_then(|task| task.wait),
        });
    }
    // Residents that an earlier version started and that have received nothing yet.
    for task in unfinished.into_values().filter(is_resident) {
        found.push(AgentPresence {
            standing: true,
            waiting: waiting(&task.task_id),
            waits: waits(orchestrator, &task).await?,
            waiting_for: task.waiting_for,
            wait: task.wait,
            agent: task.agent,
            task_id: task.task_id,
            id: None,
            state: AgentState::Idle,
            last_activity: task.last_event_at,
            messages_processed: 0,
        });
    }
    found.sort_by(|one, other| (&one.agent, &one.task_id).cmp(&(&other.agent, &other.task_id)));
    found.truncate(LIVE_MAX.get());
    Ok(found)
}

/// Why a task does not go on: its model or its peer does not answer, the journal cannot be written, or its runner has recorded why a program in a
/// terminal does not get its next message.
async fn waits(
    orchestrator: &Orchestrator,
    task: &TaskSummary,
) -> Result<Option<String>, OrchestratorError> {
    if task.status != TaskStatus::Running {
        return Ok(None);
    }
    if let Some(wait) = &task.wait {
        return Ok(Some(wait.error.clone()));
    }
    let status = orchestrator.last_status(&task.task_id).await?;
    let detail = status.and_then(|status| status.detail);
    let waits = detail.as_ref().and_then(|detail| detail.get("waits")).and_then(Value::as_str);
    Ok(waits.map(str::to_owned))
}

/// Live agents of a journal that no server works on, all idle: resident agents, and agents of suspended
/// tasks. The agent of an interrupted task is not live: it ended with the process that ran it.
pub async fn idle_agents(
    orchestrator: &Orchestrator,
) -> Result<Vec<AgentPresence>, OrchestratorError> {
    let query = TaskQuery { which: TaskSelector::Unfinished, limit: TASKS_MAX };
    let unfinished = orchestrator.tasks(query).await?;
    let suspended = unfinished.into_iter().filter(|task| task.status == TaskStatus::InputRequired);
    let suspended: HashSet<TaskId> = suspended.map(|task| task.task_id).collect();
    let mut agents = agent_presences(orchestrator).await?;
    agents.retain(|agent| agent.standing || suspended.contains(&agent.task_id));
    for agent in &mut agents {
        agent.state = AgentState::Idle;
    }
    Ok(agents)
}

/// The tasks of resident agents that have not ended, by task id.
pub async fn live_agents(
    orchestrator: &Orchestrator,
) -> Result<HashMap<TaskId, TaskSummary>, OrchestratorError> {
    let mut tasks = unfinished_tasks(orchestrator).await?;
    tasks.retain(|_, task| is_resident(task));
    Ok(tasks)
}

async fn unfinished_tasks(
    orchestrator: &Orchestrator,
) -> Result<HashMap<TaskId, TaskSummary>, OrchestratorError> {
    let query = TaskQuery { which: TaskSelector::Unfinished, limit: TASKS_MAX };
    let unfinished = orchestrator.tasks(query).await?;
    Ok(unfinished.into_iter().map(|task| (task.task_id.clone(), task)).collect())
}

/// The rejection of a request to an agent that is not defined. It lists those that are.
pub fn unknown_agent(name: impl fmt::Display, known: &[AgentName]) -> Rejection {
    let known = known.iter().map(AgentName::to_string).collect();
    Rejection::UnknownAgent { agent: name.to_string(), known }
}
