//! Control requests, as somebody dropped them in a file, and the commands they turn into.
//!
//! | action                 | needs                                  | command                   |
//! |------------------------|----------------------------------------|---------------------------|
//! | `spawn_agent`          | `name`, `profile`; `context` optional  | [`Command::SpawnAgent`]   |
//! | `stop_agent`           | `name`                                 | [`Command::StopAgent`]    |
//! | `update_agent_context` | `name`, `context`                      | [`Command::UpdateAgentContext`] |
//!
//! Reading is total: any JSON object of strings is an [`OrchestratorRequest`]. Whether it means
//! anything is decided in one place, [`OrchestratorRequest::validate`]. Values are trimmed, and
//! blank is missing.

use serde::{Deserialize, Deserializer, Serialize};

/// A control request as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrchestratorRequest {
    /// What to do.
    #[serde(default, deserialize_with = "text_or_null")]
    pub action: String,
    /// To which agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Its context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// A control request that makes sense. Only these are acted on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Create the agent if it is unknown, then start it.
    SpawnAgent {
        /// Which.
        name: String,
        /// How it runs.
        profile: String,
        /// Its first context, if it has to be created.
        context: Option<String>,
    },
    /// Stop the agent, and its terminal session if it has one.
    StopAgent {
        /// Which.
        name: String,
    },
    /// Put a new context in place of the agent's own.
    UpdateAgentContext {
        /// Which.
        name: String,
        /// The new context, markdown.
        context: String,
    },
}

/// Why a control request makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// No such action.
    #[error("unknown orchestrator action: {0}")]
    UnknownAction(String),
    /// The action needs more.
    #[error("missing required field `{field}` for action `{action}`")]
    MissingField {
        /// The action.
        action: String,
        /// What it needs.
        field: String,
    },
}

impl OrchestratorRequest {
    /// What the request means.
    pub fn validate(&self) -> Result<Command, CommandError> {
        let action = self.action.trim();
        let need = |field: &str, value: &Option<String>| {
            given(value).ok_or_else(|| CommandError::MissingField {
                action: action.to_owned(),
                field: field.to_owned(),
            })
        };
        match action {
            "spawn_agent" => Ok(Command::SpawnAgent {
                name: need("name", &self.name)?,
                profile: need("profile", &self.profile)?,
                context: given(&self.context),
            }),
            "stop_agent" => Ok(Command::StopAgent { name: need("name", &self.name)? }),
            "update_agent_context" => Ok(Command::UpdateAgentContext {
                name: need("name", &self.name)?,
                context: need("context", &self.context)?,
            }),
            other => Err(CommandError::UnknownAction(other.to_owned())),
        }
    }
}

fn text_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::<String>::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[expect(clippy::ref_option, reason = "the fields of the request are such")]
fn given(value: &Option<String>) -> Option<String> {
    let text = value.as_deref()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
