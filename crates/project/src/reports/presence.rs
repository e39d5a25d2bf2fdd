//! Live agents: resident agents, and agents that work on a task.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::num::NonZeroUsize;

use antiphon_api::AgentPresence;
use antiphon_core::port::{AgentQuery, TaskQuery, TaskSelector};
use antiphon_core::{AgentName, AgentState, TaskId, TaskStatus, TaskSummary, WaitingFor};
use antiphon_runtime::{Orchestrator, OrchestratorError, Rejection, is_resident};
use serde_json::Value;

use crate::error::ProjectError;
use crate::reports::queued_interactions::QUEUED_INTERACTIONS_MAX;

/// Live agents in one page, at most.
pub const LIVE_MAX: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

/// Unfinished tasks among which resident agents are searched, at most.
const TASKS_MAX: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

/// Live agents, the one with the newest task first: a page of them, at most [`LIVE_MAX`].
pub async fn agent_presences(
    orchestrator: &Orchestrator,
    page: AgentQuery,
) -> Result<Vec<AgentPresence>, OrchestratorError> {
    let live = live_page(orchestrator, page).await?;
    Ok(live.into_iter().map(|(presence, _)| presence).collect())
}

/// The same, each with the row of its task.
async fn live_page(
    orchestrator: &Orchestrator,
    page: AgentQuery,
) -> Result<Vec<(AgentPresence, TaskSummary)>, OrchestratorError> {
    let page = AgentQuery { limit: page.limit.min(LIVE_MAX), ..page };
    let (is_first, limit) = (page.before.is_none(), page.limit.get());
    let mut counts: HashMap<TaskId, usize> = HashMap::new();
    for queued in orchestrator.queued(QUEUED_INTERACTIONS_MAX).await? {
        *counts.entry(queued.task_id).or_default() += 1;
    }
    let mut found = Vec::new();
    for live in orchestrator.agents(page).await? {
        let which = TaskSelector::One(live.task_id.clone());
        let rows = orchestrator.tasks(TaskQuery { which, limit: NonZeroUsize::MIN }).await?;
        // It may have ended since.
        let Some(task) = rows.into_iter().next() else { continue };
        let waiting = counts.get(&live.task_id).copied().unwrap_or_default();
        // The start or a message of a program in a terminal can wait. One look for each of the others is saved.
        let may_rest = waiting > 0 || live.status.messages_processed == 0;
        let may_wait = (is_resident(&task) && may_rest) || task.wait.is_some();
        let waits = if may_wait { waits(orchestrator, &task).await? } else { None };
        let presence = AgentPresence {
            resident: is_resident(&task),
            waiting,
            agent: live.agent,
            task_id: live.task_id,
            id: Some(live.status.id),
            state: live.status.state,
            last_activity: live.status.last_activity,
            messages_processed: live.status.messages_processed,
            waits,
            waiting_for: task.waiting_for,
            wait: task.wait.clone(),
        };
        found.push((presence, task));
    }
    if !is_first || found.len() >= limit {
        return Ok(found);
    }
    // At the beginning: the cursor is the last one.
    let mut all = without_id(orchestrator, &found).await?;
    all.truncate(limit - found.len());
    all.append(&mut found);
    Ok(all)
}

/// The live agents that a list of agents shows: a task that a person paused is in the list of tasks, unless its agent
/// is resident.
pub fn listed_agents(mut agents: Vec<AgentPresence>) -> Vec<AgentPresence> {
    agents.retain(|live| live.resident || live.waiting_for != Some(WaitingFor::Resume));
    agents
}

/// Checks that an agent can be stopped without a server: its task does not run on a peer.
pub fn check_stops_here(last: &TaskSummary) -> Result<(), ProjectError> {
    if last.status.is_terminal() || last.runs_on.peer.is_none() {
        return Ok(());
    }
    Err(ProjectError::Refused(
        "it runs on a peer, which only a server can reach: start `antiphon serve`, then stop it"
            .to_owned(),
    ))
}

/// Residents that an earlier version started and that have received nothing yet, among the newest tasks.
async fn without_id(
    orchestrator: &Orchestrator,
    live: &[(AgentPresence, TaskSummary)],
) -> Result<Vec<(AgentPresence, TaskSummary)>, OrchestratorError> {
    let known: HashSet<&TaskId> = live.iter().map(|(presence, _)| &presence.task_id).collect();
    let query = TaskQuery { which: TaskSelector::Unfinished, limit: LIVE_MAX };
    let mut found = Vec::new();
    for task in orchestrator.tasks(query).await? {
        if !is_resident(&task) || known.contains(&task.task_id) {
            continue;
        }
        let presence = AgentPresence {
            resident: true,
            waiting: 0,
            waits: waits(orchestrator, &task).await?,
            waiting_for: task.waiting_for,
            wait: task.wait.clone(),
            agent: task.agent.clone(),
            task_id: task.task_id.clone(),
            id: None,
            state: AgentState::Idle,
            last_activity: task.last_event_at,
            messages_processed: 0,
        };
        found.push((presence, task));
    }
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

/// Live agents of a journal that no server works on, all idle, ordered by name: resident agents, and agents of
/// suspended tasks. The agent of an interrupted task is not live: it ended with the process that ran it.
pub async fn idle_agents(
    orchestrator: &Orchestrator,
) -> Result<Vec<AgentPresence>, OrchestratorError> {
    let (mut agents, mut before) = (Vec::new(), None);
    loop {
        let page = live_page(orchestrator, AgentQuery { before, limit: LIVE_MAX }).await?;
        // A page may be shorter than its limit: an agent may have ended meanwhile.
        let is_last = page.is_empty();
        before = page.last().map(|(last, _)| last.task_id.clone());
        for (presence, task) in page {
            if presence.resident || task.status == TaskStatus::InputRequired {
                agents.push(AgentPresence { state: AgentState::Idle, ..presence });
            }
        }
        if is_last {
            sort_by_name(&mut agents);
            return Ok(agents);
        }
    }
}

/// Orders live agents by name.
pub fn sort_by_name(agents: &mut [AgentPresence]) {
    agents.sort_by(|one, other| (&one.agent, &one.task_id).cmp(&(&other.agent, &other.task_id)));
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
