//! Invocations: a request to dispatch 1..N targets, along four axes.
//!
//! | axis     | values                                   | question                            |
//! |----------|------------------------------------------|-------------------------------------|
//! | context  | `independent` `inherited` `shared`       | what does the child see first?      |
//! | join     | `single` `all` `detached` `any` `quorum` | how does the parent wait?           |
//! | executor | `auto` `force`                           | which orchestrator runs the loop?   |
//! | tools    | `inherit` `exact` `none`                 | which external tools of the parent may it use? |
//!
//! The axes are independent, except for `shared`: a task is handed over to one agent and
//! stays on its orchestrator.
//!
//! [`Invocation::validate`] turns one into a [`ValidInvocation`], once, at the entry. A valid
//! invocation has 1 to [`TARGETS_MAX`] targets, exactly one for `single`, enough for its quorum,
//! and every target names an agent.

use std::num::NonZeroU32;

use chrono::Utc;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

use crate::{RawJson, TaskId, UserMessage};

/// Most targets of one invocation.
pub const TARGETS_MAX: usize = 16_384;

/// A request to dispatch 1..N targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Invocation {
    /// Agents to dispatch, each with its message.
    pub targets: Vec<Target>,
    /// What the children see of the conversation.
    #[serde(default)]
    pub context: ContextScope,
    /// How the parent waits.
    #[serde(default)]
    pub join: Join,
    /// Which orchestrator runs the loop.
    #[serde(default)]
    pub executor: ExecutorHint,
    /// Which external tools of the parent the children may use.
    #[serde(default)]
    pub tools: ToolPolicy,
}

/// One agent to dispatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Target {
    /// Name or definition of the agent that gets the task.
    pub agent: AgentRef,
    /// Its task: a text, a user message, or `{role, parts}`.
    #[serde(deserialize_with = "message_or_text")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::MessageOrText"))]
    pub message: UserMessage,
    /// Executor of this target. Absent: the executor of the invocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ExecutorHint>,
    /// JSON Schema of its result. Absent: the schema of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<RawJson>,
    /// Seconds until it is canceled. Absent: no timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<NonZeroU32>,
    /// External tools of the parent that it may use. Absent: those of the invocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolPolicy>,
}

/// A tool that a dispatched agent was to have and does not get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOutTool {
    /// Task of the agent.
    pub task_id: TaskId,
    /// Name of the tool.
    pub tool: String,
    /// Why the agent does not get it.
    pub reason: String,
}

/// An agent to dispatch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentRef {
    /// A defined agent.
    Named {
        /// Name of the agent.
        agent_id: String,
    },
    /// An ad-hoc agent.
    AdHoc {
        /// System prompt, appended to the base prompt.
        system_prompt: String,
        /// Names of its tools. Absent: the tools of the caller.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<String>>,
    },
}

/// What the child sees of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ContextScope {
    /// Only its message.
    #[default]
    Independent,
    /// The parent's history, without calls that have no result yet.
    Inherited,
    /// The same task: the child takes over, its result is the parent's, the parent's loop ends.
    Shared,
}

/// How the parent waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// For the result of its one target.
    #[default]
    Single,
    /// For every result, in the order of the targets.
    All,
    /// Not at all: returns the task ids at once.
    Detached,
    /// For the first target that completes; the others are canceled.
    Any,
    /// For the first `n` targets that complete; the others are canceled.
    Quorum {
        /// Number of targets.
        n: NonZeroU32,
    },
}

impl Join {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::All => "all",
            Self::Detached => "detached",
            Self::Any => "any",
            Self::Quorum { .. } => "quorum",
        }
    }
}

/// Which orchestrator runs the loop.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ExecutorHint {
    /// Chosen from the agent's runtimes, the caller's and the available runners.
    #[default]
    Auto,
    /// The given executor.
    Force(Executor),
}

/// An orchestrator that runs the loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Executor {
    /// This orchestrator.
    Local,
    /// A runner; its events are relayed to the task.
    Remote {
        /// The runner and its configuration.
        runner: RunnerConfig,
    },
}

/// A runner and its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunnerConfig {
    /// Key of the runner registry: `loopback`, `sandbox`, `k8s`, …
    pub kind: String,
    /// Configuration; only that runner reads it.
    #[serde(default = "RunnerConfig::empty")]
    pub config: Value,
}

/// Which external tools of the parent the children may use. The tools of a child's own definition
/// are not touched by it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToolPolicy {
    /// All external tools.
    #[default]
    Inherit,
    /// The named tools.
    Exact {
        /// Names of the tools.
        tools: Vec<String>,
    },
    /// No external tools.
    None,
}

/// Why an invocation is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvocationError {
    /// There is no target.
    #[error("invocation requires at least one target")]
    NoTargets,
    /// `single` needs exactly one target.
    #[error("join `single` requires exactly 1 target, got {got}")]
    SingleNeedsOneTarget {
        /// Number of targets.
        got: usize,
    },
    /// An ad-hoc agent needs a system prompt.
    #[error("ad-hoc target with empty system_prompt")]
    AdHocEmptyPrompt,
    /// A named agent needs a name.
    #[error("named target with empty agent_id")]
    NamedEmptyAgentId,
    /// Over [`TARGETS_MAX`] targets.
    #[error("invocation may have {TARGETS_MAX} targets at most, got {got}")]
    TooManyTargets {
        /// Number of targets.
        got: usize,
    },
    /// The quorum is larger than the number of targets.
    #[error("join `quorum` of {n} requires at least {n} targets, got {got}")]
    QuorumNeedsTargets {
        /// The quorum.
        n: u32,
        /// Number of targets.
        got: usize,
    },
    /// `shared` hands the task over to exactly one agent.
    #[error("context `shared` requires join `single`, got `{join}`")]
    SharedNeedsSingle {
        /// Join of the invocation.
        join: &'static str,
    },
    /// `shared` stays on the orchestrator of the task.
    #[error("context `shared` stays in its own task: it cannot be run by a remote executor")]
    SharedNeedsLocal,
}

impl InvocationError {
    /// The field of the invocation that is to be changed.
    pub fn field(&self) -> &'static str {
        match self {
            Self::NoTargets
            | Self::AdHocEmptyPrompt
            | Self::NamedEmptyAgentId
            | Self::TooManyTargets { .. } => "targets",
            Self::SingleNeedsOneTarget { .. } | Self::QuorumNeedsTargets { .. } => "join",
            Self::SharedNeedsSingle { .. } | Self::SharedNeedsLocal => "context",
        }
    }
}

/// An invocation that passed [`Invocation::validate`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ValidInvocation(Invocation);

impl Invocation {
    /// One target, and its result.
    pub fn single(target: Target) -> Self {
        Self::of(vec![target], Join::Single)
    }

    /// Several targets, and all results.
    pub fn all(targets: Vec<Target>) -> Self {
        Self::of(targets, Join::All)
    }

    /// Several targets, and their task ids at once.
    pub fn detached(targets: Vec<Target>) -> Self {
        Self::of(targets, Join::Detached)
    }

    /// The same with another context.
    pub fn with_context(self, context: ContextScope) -> Self {
        Self { context, ..self }
    }

    /// The same with another executor.
    pub fn with_executor(self, executor: ExecutorHint) -> Self {
        Self { executor, ..self }
    }

    /// The same with another tool policy.
    pub fn with_tools(self, tools: ToolPolicy) -> Self {
        Self { tools, ..self }
    }

    /// Checks the invocation. Blank text counts as empty.
    pub fn validate(self) -> Result<ValidInvocation, InvocationError> {
        if self.targets.is_empty() {
            return Err(InvocationError::NoTargets);
        }
        let got = self.targets.len();
        if self.join == Join::Single && got != 1 {
            return Err(InvocationError::SingleNeedsOneTarget { got });
        }
        if got > TARGETS_MAX {
            return Err(InvocationError::TooManyTargets { got });
        }
        if let Join::Quorum { n } = self.join
            && n.get() as usize > got
        {
            return Err(InvocationError::QuorumNeedsTargets { n: n.get(), got });
        }
        if self.context == ContextScope::Shared {
            self.check_shared()?;
        }
        for target in &self.targets {
            match &target.agent {
                AgentRef::Named { agent_id } if agent_id.trim().is_empty() => {
                    return Err(InvocationError::NamedEmptyAgentId);
                }
                AgentRef::AdHoc { system_prompt, .. } if system_prompt.trim().is_empty() => {
                    return Err(InvocationError::AdHocEmptyPrompt);
                }
                AgentRef::Named { .. } | AgentRef::AdHoc { .. } => {}
            }
        }
        Ok(ValidInvocation(self))
    }

    fn check_shared(&self) -> Result<(), InvocationError> {
        if self.join != Join::Single {
            return Err(InvocationError::SharedNeedsSingle { join: self.join.as_str() });
        }
        let mut hints =
            self.targets.iter().map(|target| target.executor.as_ref().unwrap_or(&self.executor));
        if hints.any(|hint| matches!(hint, ExecutorHint::Force(Executor::Remote { .. }))) {
            return Err(InvocationError::SharedNeedsLocal);
        }
        Ok(())
    }

    fn of(targets: Vec<Target>, join: Join) -> Self {
        Self {
            targets,
            context: ContextScope::default(),
            join,
            executor: ExecutorHint::default(),
            tools: ToolPolicy::default(),
        }
    }
}

impl ValidInvocation {
    /// The invocation.
    pub fn get(&self) -> &Invocation {
        &self.0
    }

    /// The invocation, by value.
    pub fn into_inner(self) -> Invocation {
        self.0
    }
}

impl Target {
    /// A defined agent.
    pub fn named(agent_id: impl Into<String>, message: UserMessage) -> Self {
        Self::of(AgentRef::Named { agent_id: agent_id.into() }, message)
    }

    /// An ad-hoc agent.
    pub fn ad_hoc(system_prompt: impl Into<String>, message: UserMessage) -> Self {
        Self::of(AgentRef::AdHoc { system_prompt: system_prompt.into(), tools: None }, message)
    }

    fn of(agent: AgentRef, message: UserMessage) -> Self {
        Self { agent, message, executor: None, output_schema: None, timeout_s: None, tools: None }
    }
}

impl RunnerConfig {
    /// A runner without configuration.
    pub fn new(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), config: Self::empty() }
    }

    /// The same with this configuration.
    pub fn with_config(self, config: Value) -> Self {
        Self { config, ..self }
    }

    /// Name of the peer that the configuration names, for runners whose tasks run on a peer.
    pub fn peer(&self) -> Option<&str> {
        self.config.get("peer").and_then(Value::as_str)
    }

    fn empty() -> Value {
        Value::Object(serde_json::Map::new())
    }
}

fn message_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<UserMessage, D::Error> {
    let json = Value::deserialize(deserializer)?;
    UserMessage::from_input(json, Utc::now()).map_err(de::Error::custom)
}
