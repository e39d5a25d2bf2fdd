//! Invocations: a request to dispatch 1..N targets, along four axes.
//!
//! | axis     | values                                   | question                            |
//! |----------|------------------------------------------|-------------------------------------|
//! | context  | `independent` `inherited` `shared`       | what does the child see first?      |
//! | join     | `single` `all` `detached` `any` `quorum` | how does the parent wait?           |
//! | executor | `auto` `force`                           | which orchestrator runs the loop?   |
//! | tools    | `inherit` `exact` `none`                 | what may it borrow of the parent's? |
//!
//! The axes know nothing of each other, but for `shared`: a task is handed over to one agent, and
//! stays where it is.
//!
//! [`Invocation::validate`] turns one into a [`ValidInvocation`], once, at the entry. Behind
//! that door there are targets and not too many, `single` has exactly one, a quorum can be met,
//! and every target names an agent.

use std::fmt;
use std::num::NonZeroU32;

use chrono::Utc;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{RawJson, UserMessage};

/// Most targets of one invocation.
pub const TARGETS_MAX: usize = 16_384;

/// A request to dispatch 1..N targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Invocation {
    /// Who shall do what.
    pub targets: Vec<Target>,
    /// What the children see first.
    #[serde(default)]
    pub context: ContextScope,
    /// How the parent waits.
    #[serde(default)]
    pub join: Join,
    /// Which orchestrator runs the loop.
    #[serde(default)]
    pub executor: ExecutorHint,
    /// What the children may borrow.
    #[serde(default)]
    pub tools: ToolPolicy,
}

/// One of the agents to dispatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Target {
    /// Which agent.
    pub agent: AgentRef,
    /// What it is told. A plain string is read as a message of that text.
    #[serde(deserialize_with = "message_or_text")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::MessageOrText"))]
    pub message: UserMessage,
    /// In place of the invocation's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ExecutorHint>,
    /// JSON Schema of its result, in place of the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<RawJson>,
    /// It is given up after so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<NonZeroU32>,
}

/// Which agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentRef {
    /// One that is defined.
    Named {
        /// Its name.
        agent_id: String,
    },
    /// One made on the spot.
    AdHoc {
        /// Appended to the base prompt.
        system_prompt: String,
        /// In place of the base's tools.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<String>>,
    },
}

/// What the child sees first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ContextScope {
    /// Its message, and nothing else.
    #[default]
    Independent,
    /// The parent's history up to here, without calls that have no result yet.
    Inherited,
    /// The same task: the child takes over, its result is the parent's, the parent's loop ends.
    Shared,
}

/// How the parent waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// For the one target's result.
    #[default]
    Single,
    /// For every result, in the order of the targets.
    All,
    /// Not at all: task ids at once.
    Detached,
    /// For the first that completes; the others are canceled.
    Any,
    /// For the first so many that complete; the others are canceled.
    Quorum {
        /// How many.
        n: NonZeroU32,
    },
}

impl Join {
    /// The word used in JSON.
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
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ExecutorHint {
    /// Resolved from the agent's runtimes, the caller's and the runners there are.
    #[default]
    Auto,
    /// This one.
    Force(Executor),
}

/// An orchestrator that runs the loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Executor {
    /// This one.
    Local,
    /// Another one; its events are relayed onto our task.
    Remote {
        /// How to reach it.
        runner: RunnerConfig,
    },
}

/// How to start a remote runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunnerConfig {
    /// Key of the runner registry: `loopback`, `sandbox`, `k8s`, …
    pub kind: String,
    /// For that runner alone; nobody else reads it.
    #[serde(default = "RunnerConfig::empty")]
    pub config: Value,
}

/// What the children may borrow of the parent's external tools.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToolPolicy {
    /// All of them.
    #[default]
    Inherit,
    /// These.
    Exact {
        /// Their names.
        tools: Vec<String>,
    },
    /// None.
    None,
}

/// Why an invocation is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvocationError {
    /// There is nobody to dispatch.
    #[error("invocation requires at least one target")]
    NoTargets,
    /// `single` joins one result.
    #[error("join `single` requires exactly 1 target, got {got}")]
    SingleNeedsOneTarget {
        /// How many there are.
        got: usize,
    },
    /// An ad-hoc agent is its prompt.
    #[error("ad-hoc target with empty system_prompt")]
    AdHocEmptyPrompt,
    /// A named agent is its name.
    #[error("named target with empty agent_id")]
    NamedEmptyAgentId,
    /// More than anybody can look after.
    #[error("invocation may have {TARGETS_MAX} targets at most, got {got}")]
    TooManyTargets {
        /// How many there are.
        got: usize,
    },
    /// So many can never complete.
    #[error("join `quorum` of {n} requires at least {n} targets, got {got}")]
    QuorumNeedsTargets {
        /// How many have to complete.
        n: u32,
        /// How many there are.
        got: usize,
    },
    /// One task has one agent at a time, and hands over to one.
    #[error("context `shared` requires join `single`, got `{join}`")]
    SharedNeedsSingle {
        /// The join that was asked for.
        join: &'static str,
    },
    /// A task stays where it is when another agent takes it over.
    #[error("context `shared` stays in its own task: it cannot be run by a remote executor")]
    SharedNeedsLocal,
}

/// An invocation that holds what [`Invocation::validate`] checks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ValidInvocation(Invocation);

impl Invocation {
    /// For one result of one target.
    pub fn single(target: Target) -> Self {
        Self::of(vec![target], Join::Single)
    }

    /// For the results of all targets.
    pub fn all(targets: Vec<Target>) -> Self {
        Self::of(targets, Join::All)
    }

    /// For task ids at once.
    pub fn detached(targets: Vec<Target>) -> Self {
        Self::of(targets, Join::Detached)
    }

    /// With another context.
    pub fn with_context(self, context: ContextScope) -> Self {
        Self { context, ..self }
    }

    /// With another executor.
    pub fn with_executor(self, executor: ExecutorHint) -> Self {
        Self { executor, ..self }
    }

    /// With other tools.
    pub fn with_tools(self, tools: ToolPolicy) -> Self {
        Self { tools, ..self }
    }

    /// The one check, at the entry. Blank is empty.
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

    /// The invocation, to take apart.
    pub fn into_inner(self) -> Invocation {
        self.0
    }
}

impl Target {
    /// An agent that is defined.
    pub fn named(agent_id: impl Into<String>, message: UserMessage) -> Self {
        Self::of(AgentRef::Named { agent_id: agent_id.into() }, message)
    }

    /// An agent made on the spot.
    pub fn ad_hoc(system_prompt: impl Into<String>, message: UserMessage) -> Self {
        Self::of(AgentRef::AdHoc { system_prompt: system_prompt.into(), tools: None }, message)
    }

    fn of(agent: AgentRef, message: UserMessage) -> Self {
        Self { agent, message, executor: None, output_schema: None, timeout_s: None }
    }
}

impl RunnerConfig {
    /// A runner that needs no configuration.
    pub fn new(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), config: Self::empty() }
    }

    /// With its private configuration.
    pub fn with_config(self, config: Value) -> Self {
        Self { config, ..self }
    }

    fn empty() -> Value {
        Value::Object(serde_json::Map::new())
    }
}

fn message_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<UserMessage, D::Error> {
    deserializer.deserialize_any(MessageOrText)
}

/// Not an untagged enum: that would say of a bad message only that it is none.
struct MessageOrText;

impl<'de> Visitor<'de> for MessageOrText {
    type Value = UserMessage;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a user message")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<UserMessage, E> {
        Ok(UserMessage::text(text, Utc::now()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<UserMessage, A::Error> {
        UserMessage::deserialize(MapAccessDeserializer::new(map))
    }
}
