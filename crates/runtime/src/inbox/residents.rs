//! The resident agents of this process: which agent has which resident task.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon_core::{AgentName, CallableAgents, Seq, SessionId, TaskId, TaskStatus, TaskSummary};

use crate::orchestrator_error::OrchestratorError;

/// The resident agents of this process.
#[derive(Debug, Default)]
pub(crate) struct Residents(Mutex<ResidentTable>);

#[derive(Debug, Default)]
struct ResidentTable {
    agents: HashMap<AgentName, ResidentTask>,
    /// The agent of each task, because every ended task is looked up.
    tasks: HashMap<TaskId, AgentName>,
}

#[derive(Debug, Clone)]
pub(crate) struct ResidentTask {
    pub(crate) task_id: TaskId,
    /// The agents it may message.
    pub(crate) agents: CallableAgents,
}

impl Residents {
    fn table(&self) -> MutexGuard<'_, ResidentTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, name: &AgentName) -> Option<TaskId> {
        self.table().agents.get(name).map(|live| live.task_id.clone())
    }

    pub(crate) fn insert(&self, name: AgentName, live: ResidentTask) {
        let mut table = self.table();
        table.tasks.insert(live.task_id.clone(), name.clone());
        if let Some(before) = table.agents.insert(name.clone(), live.clone())
            && before.task_id != live.task_id
        {
            table.tasks.remove(&before.task_id);
        }
    }

    pub(crate) fn all(&self) -> Vec<ResidentTask> {
        self.table().agents.values().cloned().collect()
    }

    /// Removes an ended task. Returns the name of its agent.
    pub(crate) fn remove(&self, task_id: &TaskId) -> Option<AgentName> {
        let mut table = self.table();
        let name = table.tasks.remove(task_id)?;
        table.agents.remove(&name);
        Some(name)
    }

    /// The tasks of agents that name this agent as a peer.
    pub(crate) fn peers_of(&self, name: &AgentName) -> Vec<TaskId> {
        let names = |agents: &CallableAgents| match agents {
            CallableAgents::Any => false,
            CallableAgents::Only(names) => names.iter().any(|known| known == name.as_str()),
        };
        let table = self.table();
        let peers =
            table.agents.iter().filter(|(other, live)| *other != name && names(&live.agents));
        peers.map(|(_, live)| live.task_id.clone()).collect()
    }
}

/// The session of a resident agent.
pub fn session_of(name: &AgentName) -> Result<SessionId, OrchestratorError> {
    let text = format!("agent:{}", name.as_str().replace(' ', "%20"));
    SessionId::parse(&text).map_err(|error| OrchestratorError::CannotStart {
        agent: name.to_string(),
        reason: error.to_string(),
    })
}

/// Number of events that start a resident task: its creation, and the state of its agent.
const STARTING_EVENTS: Seq = Seq(2);

/// Whether nothing has ever reached a resident task that runs here, judged by its summary alone: there is nothing to do for it.
pub(crate) fn is_untouched(task: &TaskSummary) -> bool {
    let begins = task.status == TaskStatus::Pending && task.seq == STARTING_EVENTS;
    begins && task.runs_on.is_local() && is_resident(task)
}

/// Whether a task is an agent's resident task, judged by its summary alone.
pub fn is_resident(task: &TaskSummary) -> bool {
    let named = AgentName::parse(&task.agent).ok().and_then(|name| session_of(&name).ok());
    task.parent.is_none() && named.is_some_and(|session_id| session_id == task.session_id)
}
