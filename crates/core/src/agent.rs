//! Agents and the states a live one goes through.
//!
//! | from         | to           | when                                            |
//! |--------------|--------------|-------------------------------------------------|
//! | `idle`       | `thinking`   | a message or a tool result arrived              |
//! | `thinking`   | `toolcall`   | the model answered; its calls run               |
//! | `toolcall`   | `reflecting` | the calls ended; their results are written      |
//! | `reflecting` | `idle`       | the lap is over                                 |
//! | any          | itself       | always                                          |
//!
//! Every other move is [`DomainError::InvalidStateTransition`]. An answer without a tool call
//! is an implicit call of `final` and takes the same lap. A failed or canceled run ends where
//! it stands; its agent starts again with a fresh [`AgentState::Idle`], which is no move.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{AgentId, DomainError};

/// Where a live agent stands in its lap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AgentState {
    /// Waiting for something to arrive.
    #[default]
    Idle,
    /// Waiting for the model.
    Thinking,
    /// Running what the model asked for.
    ToolCall,
    /// Writing down what came of it.
    Reflecting,
}

impl AgentState {
    /// Every state, in the order of a lap.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Thinking, Self::ToolCall, Self::Reflecting];

    /// Says whether an agent may go from `from` to `to`.
    pub fn validate_transition(from: Self, to: Self) -> Result<(), DomainError> {
        if from == to || from.next() == to {
            Ok(())
        } else {
            Err(DomainError::InvalidStateTransition { from, to })
        }
    }

    /// The state that follows in the lap.
    pub fn next(self) -> Self {
        match self {
            Self::Idle => Self::Thinking,
            Self::Thinking => Self::ToolCall,
            Self::ToolCall => Self::Reflecting,
            Self::Reflecting => Self::Idle,
        }
    }

    /// The word used in JSON.
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

/// What is known of one live agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentStatus {
    /// Which one.
    pub id: AgentId,
    /// Where it stands.
    pub state: AgentState,
    /// When it last changed state or took a message.
    pub last_activity: DateTime<Utc>,
    /// How many messages it has taken since it was created.
    pub messages_processed: u64,
}

impl AgentStatus {
    /// A fresh agent: idle, nothing processed.
    pub fn started(id: AgentId, at: DateTime<Utc>) -> Self {
        Self { id, state: AgentState::Idle, last_activity: at, messages_processed: 0 }
    }

    /// Moves to `to`, or refuses and stays as it was. Entering `thinking` takes a message.
    pub fn transition(&mut self, to: AgentState, at: DateTime<Utc>) -> Result<(), DomainError> {
        AgentState::validate_transition(self.state, to)?;
        if self.state == AgentState::Idle && to == AgentState::Thinking {
            self.messages_processed += 1;
        }
        self.state = to;
        self.last_activity = at;
        Ok(())
    }
}
