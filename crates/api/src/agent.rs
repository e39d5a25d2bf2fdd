//! Agents: their definitions, and the live ones.

use std::fmt;
use std::num::NonZeroUsize;

use antiphon_core::{
    AgentId, AgentName, AgentState, CallableAgents, ModelRef, OutageWait, Profile, RawJson,
    RunnerConfig, SilentIntents, TaskId, TaskLimits, WaitingFor,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[cfg(feature = "schema")]
use crate::task::LISTED_MAX;

/// The definition of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Agent"))]
pub struct AgentDetail {
    /// Name of the agent, unique in the project.
    pub name: AgentName,
    /// What the agent does, for its callers.
    pub description: String,
    /// How the agent runs.
    #[serde(default)]
    pub profile: Profile,
    /// Model that answers; the caller's model when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Models to try when the model does not answer, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<ModelRef>,
    /// Names of its tools; every tool when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Names of tools that change something and whose calls of one answer run side by side.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parallel_tools: Vec<String>,
    /// The agents it may call.
    pub agents: CallableAgents,
    /// Runners to try, in order of preference; this process when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runtimes: Vec<RunnerConfig>,
    /// Limits of its tasks.
    #[serde(default, skip_serializing_if = "TaskLimits::is_none")]
    pub limits: TaskLimits,
    /// Intents of requests that have a JSON Schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intents: Vec<String>,
    /// Intents of requests that never wake the agent.
    #[serde(default, skip_serializing_if = "has_no_intents")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub silent_intents: SilentIntents,
    /// JSON Schema of its results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<RawJson>,
    /// Where the definition comes from.
    pub origin: AgentOrigin,
    /// Path of its file.
    pub path: String,
    /// Paths of files of the same name that this one replaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadows: Vec<String>,
    /// What is wrong with the file now; the rest is then the last valid definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// The program its file was written for, when that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<ImportedFrom>,
    /// `true` when the agent is started and reads its inbox.
    pub live: bool,
    /// Its system prompt; absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Names of all tools of the project, of which the agent gets those in `tools`; absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_tools: Option<Vec<String>>,
}

fn has_no_intents(intents: &SilentIntents) -> bool {
    *intents == SilentIntents::default()
}

/// Where the definition of an agent comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Origin"))]
#[serde(rename_all = "snake_case")]
pub enum AgentOrigin {
    /// A file of the project, which the API can change.
    Project,
    /// A file of the user, for all projects. The API does not change it.
    User,
}

/// The program that the file of an agent was written for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImportedFrom {
    /// Name of the program, such as `claude`. The API does not change its file.
    pub program: String,
    /// What the file says and is not used, and why, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
}

/// All agents that are defined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Agents"))]
pub struct AgentList {
    /// Agents, sorted by name.
    pub agents: Vec<AgentDetail>,
    /// Files and folders of agents that are not valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<AgentProblem>,
}

/// A file or folder of agents that is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentProblem {
    /// Path of the file or folder.
    pub path: String,
    /// Line number, from 1; absent when the whole file or folder is concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What is wrong.
    pub reason: String,
    /// `true` when the last valid definition is still in use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_force: bool,
}

impl fmt::Display for AgentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.reason)?;
        if self.in_force {
            f.write_str(" (what it said before stays in force)")?;
        }
        Ok(())
    }
}

/// An agent to define.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(
        rename = "NewAgent",
        example = serde_json::json!({ "name": "tester", "description": "Writes tests.", "context": "You write tests." })
    )
)]
pub struct CreateAgent {
    /// Name of the agent, which is also the name of its file.
    pub name: String,
    /// The fields of an [`AgentChange`](crate::AgentChange).
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "crate::AgentChange"))]
    pub rest: Map<String, Value>,
}

/// Which live agents to list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PresenceQuery {
    /// Only agents whose task is older than this one: the `task_id` of the last agent of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<TaskId>,
    /// Number of agents, at most; 1000 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = LISTED_MAX)))]
    pub limit: Option<NonZeroUsize>,
}

/// A live agent: it works on a task, or waits for interactions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentPresence {
    /// Name of the agent.
    pub agent: String,
    /// Id of the task it works on. The task of a resident agent reads its inbox.
    pub task_id: TaskId,
    /// Id of the live agent, the same until it is stopped; absent for one that an earlier version started and
    /// that has received nothing yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<AgentId>,
    /// Its state in the state machine of agents.
    pub state: AgentState,
    /// Time of its last change of state.
    pub last_activity: DateTime<Utc>,
    /// Number of messages it has read.
    pub messages_processed: u64,
    /// `true` for a resident agent: it stays live after its turn and reads its inbox.
    #[serde(alias = "standing")]
    pub resident: bool,
    /// Number of interactions in its inbox.
    pub waiting: usize,
    /// Why it does not go on: its model or its peer does not answer, the journal cannot be written, or a program in a
    /// terminal does not get its next message. Absent when nothing waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    /// What its task waits for; absent when it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<WaitingFor>,
    /// The wait for its model, its peer or the journal: cause, failed attempts and the time of the next one. Absent
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<OutageWait>,
}

/// An agent that is live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Started"))]
pub struct AgentStarted {
    /// Name of the agent.
    pub agent: AgentName,
    /// Id of the task that reads its inbox.
    pub task_id: TaskId,
    /// `true` when the agent was live before the request.
    pub already: bool,
}

/// An agent that is not live any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Stopped"))]
pub struct AgentStopped {
    /// Name of the agent.
    pub agent: AgentName,
    /// Id of the task that ended; absent when the agent was not live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
}
