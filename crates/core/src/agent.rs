//! Agents and the states of a live agent.
//!
//! | from         | to           | when                                            |
//! |--------------|--------------|-------------------------------------------------|
//! | `idle`       | `thinking`   | a message or a tool result arrived              |
//! | `thinking`   | `toolcall`   | the model answered; its calls run               |
//! | `toolcall`   | `reflecting` | the calls ended; their results are written      |
//! | `reflecting` | `idle`       | the step is over                                |
//! | any          | itself       | always                                          |
//!
//! Every other change is [`DomainError::InvalidStateTransition`]. An answer without a tool call
//! is an implicit call of `final` and goes through the same states. A failed or canceled run stays in
//! its last state; its agent starts again with a new [`AgentState::Idle`], which is not a change.
//!
//! `definition` holds what an agent file defines.

pub(crate) mod definition;

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{AgentId, DomainError};

/// State of a live agent within a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AgentState {
    /// It waits for a message.
    #[default]
    Idle,
    /// It waits for the model.
    Thinking,
    /// It runs the tool calls of the model.
    ToolCall,
    /// It records the results.
    Reflecting,
}

impl AgentState {
    /// Every state, in the order of a step.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Thinking, Self::ToolCall, Self::Reflecting];

    /// Whether an agent may change from `from` to `to`.
    pub fn validate_transition(from: Self, to: Self) -> Result<(), DomainError> {
        if from == to || from.next() == to {
            Ok(())
        } else {
            Err(DomainError::InvalidStateTransition { from, to })
        }
    }

    /// The state that follows within a step.
    pub fn next(self) -> Self {
        match self {
            Self::Idle => Self::Thinking,
            Self::Thinking => Self::ToolCall,
            Self::ToolCall => Self::Reflecting,
            Self::Reflecting => Self::Idle,
        }
    }

    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Thinking => "thinking",
            Self::ToolCall => "toolcall",
            Self::Reflecting => "reflecting",
        }
    }
}

impl fmt::Display for AgentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Status of one live agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentStatus {
    /// Id of the live agent.
    pub id: AgentId,
    /// Its current state.
    pub state: AgentState,
    /// Time of the last state change or message.
    pub last_activity: DateTime<Utc>,
    /// Number of messages it has processed since it was created.
    pub messages_processed: u64,
}

impl AgentStatus {
    /// A new agent: idle, with no message processed.
    pub fn started(id: AgentId, at: DateTime<Utc>) -> Self {
        Self { id, state: AgentState::Idle, last_activity: at, messages_processed: 0 }
    }

    /// Changes the state to `to`, or refuses and changes nothing. A step of a turn is no message: [`read`](Self::read)
    /// counts those.
    pub fn transition(&mut self, to: AgentState, at: DateTime<Utc>) -> Result<(), DomainError> {
        AgentState::validate_transition(self.state, to)?;
        self.state = to;
        self.last_activity = at;
        Ok(())
    }

    /// A message has joined the conversation.
    pub fn read(&mut self, at: DateTime<Utc>) {
        self.messages_processed += 1;
        self.last_activity = at;
    }
}
