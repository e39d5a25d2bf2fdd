//! The life of a task: created, restored, and its statuses.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::waiting_for::WaitingFor;
use crate::event::Seq;
use crate::event::defaults::{any_agent, is_any_agent, is_false, is_zero, present};
use crate::port::BootTime;
use crate::{
    AgentId, AgentState, CallableAgents, CanonicalHeader, ModelOptions, ModelRef, Provenance,
    RawJson, RunnerConfig, SessionId, TaskAccess, TaskId, TaskLimits, TaskStatus, TodoItem, Tool,
};

event_structs! {
    /// The orchestrator accepted a task. Always the first event of its task.
    TaskCreated {
        /// Name of the agent that works on the task.
        agent: String,
        /// Id of the session the task belongs to.
        session_id: SessionId,
        /// Id of the task that dispatched it. Absent for a root task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<TaskId>,
        /// Id of the root of its tree. Absent: the task is the root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<TaskId>,
        /// Number of tasks above it; 0 for a root task.
        #[serde(default, skip_serializing_if = "is_zero")]
        depth: u32,
        /// Messages of another task that come before its own. Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        history: Option<HistoryRef>,
        /// Model of the task; a resumed task uses the same. Absent: the task needs no model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<ModelRef>,
        /// Models to use, in order, when the first one is not available.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fallbacks: Vec<ModelRef>,
        /// System prompt of the agent. Absent: empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        system_prompt: String,
        /// Names of the tools the agent may use. Absent: every tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<String>>,
        /// Names of tools that change something and whose calls of one answer run side by side.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parallel_tools: Vec<String>,
        /// Tools that the client offered and runs itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        external_tools: Vec<Arc<Tool>>,
        /// Whether agents that it calls get none of the client's tools. Absent: `false`.
        #[serde(default, skip_serializing_if = "is_false")]
        keeps_client_tools: bool,
        /// Agents the agent may call. Absent: any agent.
        #[serde(default = "any_agent", skip_serializing_if = "is_any_agent")]
        agents: CallableAgents,
        /// Runner that works on the task. Absent: this orchestrator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runner: Option<RunnerConfig>,
        /// Whether the task is a resident task: it reads the inbox of its agent, and ends only when
        /// it is stopped. Absent: `false`.
        #[serde(alias = "standing", default, skip_serializing_if = "is_false")]
        resident: bool,
        /// Limits of the task. Absent: no limit.
        #[serde(default, skip_serializing_if = "TaskLimits::is_none")]
        limits: TaskLimits,
        /// JSON Schema of the result. Absent: any result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_schema: Option<RawJson>,
        /// Options of the model calls. Absent: the defaults of the provider.
        #[serde(alias = "manner", default, skip_serializing_if = "ModelOptions::is_default")]
        model_options: ModelOptions,
        /// Id of the API key that pays for the task and for every task below it. Absent: the owner
        /// pays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payer: Option<String>,
        /// How the program that accepted the task reaches its model: a script, a recording. A
        /// resumed task uses the same. Absent: as configured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        route: Option<RawJson>,
        /// Where the order to start it came from, stamped when it was accepted. Absent: unknown.
        #[serde(default, skip_serializing_if = "Provenance::is_unknown")]
        provenance: Provenance,
        /// The canonical messages that the task was given, in their order and without content. Absent: none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        canonical: Vec<CanonicalHeader>,
        /// Whether the client asked that nothing can be looked up as a response or continued behind it. Absent: `false`.
        #[serde(default, skip_serializing_if = "is_false")]
        unstored: bool,
        /// Times of the conversation that was imported into the task, as its file says. Absent: it was not imported.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        imported: Option<ImportedTimes>,
        /// The moment of the creation by a clock that cannot be set, for a task with a time limit.
        /// Absent: unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_time: Option<BootTime>,
        /// Whether the client that created it follows it: after a restart, it and the tasks below it go on when
        /// that client follows it again. Absent: `false`.
        #[serde(default, skip_serializing_if = "is_false")]
        followed: bool,
        /// The task on a peer that this one cancels there. Such a task has no model. Absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cancels: Option<PeerCancel>,
        /// What it may do within its permissions. Absent: what they allow.
        #[serde(default, skip_serializing_if = "TaskAccess::is_permitted")]
        access: TaskAccess,
    }
    /// The task came from a file with `antiphon restore`. Its route, its runner, the rules that were
    /// allowed for it, the answers to its approvals and its open requests no longer count, and who sent the
    /// messages before this event is unknown: another user may have made them.
    TaskRestored {
        /// Name of the file.
        file: String,
    }
    /// A task got a new status. No event of the task follows a terminal status.
    StatusChanged {
        /// The new status.
        status: TaskStatus,
        /// The result of a completed task, or the reason of another status. Absent: none. `null` is
        /// a result.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        detail: Option<Value>,
        /// What the task waits for: an `input_required` task for a person or a client, a `running`
        /// task for its `model`. Absent otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waiting_for: Option<WaitingFor>,
    }
    /// A live agent changed its state, once or several times in a row.
    StateChanged {
        /// Id of the live agent.
        agent_id: AgentId,
        /// State before the change.
        from: AgentState,
        /// States between `from` and `to` that it passed through at the same moment, in order. Absent: none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        through: Vec<AgentState>,
        /// State after the change.
        to: AgentState,
    }
    /// The result of the model does not fit the output schema of the task. The model tries again.
    OutputRejected {
        /// What is wrong with the result; the model reads it.
        reason: String,
    }
    /// The agent replaced the list of things to do that it keeps.
    TodoChanged {
        /// The list.
        items: Vec<TodoItem>,
    }
}

impl StateChanged {
    /// A change from one state to another.
    pub fn new(agent_id: AgentId, from: AgentState, to: AgentState) -> Self {
        Self { agent_id, from, through: Vec::new(), to }
    }

    /// The changes in order, each as the state before it and the state after it.
    pub fn moves(&self) -> impl Iterator<Item = (AgentState, AgentState)> {
        let states = self.through.iter().copied();
        let before = std::iter::once(self.from).chain(states.clone());
        before.zip(states.chain(std::iter::once(self.to)))
    }

    /// Whether the agent enters a state, if only to leave it at once.
    pub fn enters(&self, state: AgentState) -> bool {
        self.to == state || self.through.contains(&state)
    }

    /// Adds the next change of the same agent, so that one event says both. Returns false when it does not follow.
    pub fn join(&mut self, next: &Self) -> bool {
        if self.agent_id != next.agent_id || self.to != next.from {
            return false;
        }
        self.through.push(self.to);
        self.through.extend(&next.through);
        self.to = next.to;
        true
    }
}

impl TaskCreated {
    /// A root task without model, limits or history.
    pub fn new(agent: impl Into<String>, session_id: SessionId) -> Self {
        Self {
            agent: agent.into(),
            session_id,
            parent: None,
            root: None,
            depth: 0,
            history: None,
            model: None,
            fallbacks: Vec::new(),
            system_prompt: String::new(),
            tools: None,
            parallel_tools: Vec::new(),
            external_tools: Vec::new(),
            keeps_client_tools: false,
            agents: CallableAgents::Any,
            runner: None,
            resident: false,
            limits: TaskLimits::default(),
            output_schema: None,
            model_options: ModelOptions::default(),
            payer: None,
            route: None,
            provenance: Provenance::Unknown,
            canonical: Vec::new(),
            unstored: false,
            imported: None,
            boot_time: None,
            followed: false,
            cancels: None,
            access: TaskAccess::Permitted,
        }
    }
}

impl StatusChanged {
    /// A new status without detail.
    pub fn new(status: TaskStatus) -> Self {
        Self { status, detail: None, waiting_for: None }
    }
}

/// The messages of another task, up to one of its events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRef {
    /// Id of the other task.
    pub task_id: TaskId,
    /// Seq of the last event that counts.
    pub seq: Seq,
}

/// The cancellation of a task on a peer, which the peer has to get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerCancel {
    /// Id of the task here.
    pub task_id: TaskId,
    /// Id of the task on the peer. Absent: the peer has not confirmed that it created one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_task_id: Option<TaskId>,
}

/// When a conversation began and was last changed before it was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportedTimes {
    /// When it began.
    pub created_at: DateTime<Utc>,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
}
