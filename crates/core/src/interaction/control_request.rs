//! Control requests, as a user writes them into a file, and the commands they become.
//!
//! | action                 | needs                                  | command                   |
//! |------------------------|----------------------------------------|---------------------------|
//! | `spawn_agent`          | `name`, `profile`; `context` optional  | [`Command::SpawnAgent`]   |
//! | `stop_agent`           | `name`                                 | [`Command::StopAgent`]    |
//! | `update_agent_context` | `name`, `context`                      | [`Command::UpdateAgentContext`] |
//!
//! Reading accepts any JSON object as an [`OrchestratorRequest`], unless a field of a known action is no text. Only
//! [`OrchestratorRequest::validate`] decides whether it is valid. Values are trimmed, and a
//! blank value is missing. An unknown action is named before anything else that is wrong.

use std::fmt;

use serde::de::{self, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Name of the tool by which an agent gives control requests. An agent has it only when its file names it.
pub const CONTROL_REQUEST: &str = "control_request";

/// A control request, not yet checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrchestratorRequest {
    /// Action: `spawn_agent`, `stop_agent` or `update_agent_context`.
    pub action: String,
    /// Name of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Profile of the agent: how it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Context of the agent, markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// A valid control request. Only commands are carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Create the agent if it is unknown, then start it.
    SpawnAgent {
        /// Name of the agent.
        name: String,
        /// Profile of the agent: how it runs.
        profile: String,
        /// Context of the agent if it has to be created.
        context: Option<String>,
    },
    /// Stop the agent, and its terminal session if it has one.
    StopAgent {
        /// Name of the agent.
        name: String,
    },
    /// Replace the agent's context.
    UpdateAgentContext {
        /// Name of the agent.
        name: String,
        /// The new context, markdown.
        context: String,
    },
}

/// Why a control request is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The action is unknown.
    #[error("unknown orchestrator action: {0}")]
    UnknownAction(String),
    /// A field of the action is missing.
    #[error("missing required field `{field}` for action `{action}`")]
    MissingField {
        /// The action.
        action: String,
        /// Name of the missing field.
        field: String,
    },
}

impl OrchestratorRequest {
    /// Checks the request and returns its command.
    pub fn validate(&self) -> Result<Command, CommandError> {
        let action = self.action.trim();
        let need = |field: &str, value: &Option<String>| {
            non_blank(value).ok_or_else(|| CommandError::MissingField {
                action: action.to_owned(),
                field: field.to_owned(),
            })
        };
        match action {
            "spawn_agent" => Ok(Command::SpawnAgent {
                name: need("name", &self.name)?,
                profile: need("profile", &self.profile)?,
                context: non_blank(&self.context),
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

const ACTIONS: [&str; 3] = ["spawn_agent", "stop_agent", "update_agent_context"];

/// The fields of a request, of any type. A field that is there twice is refused; others are skipped.
#[derive(Default)]
struct Fields {
    action: Value,
    name: Value,
    profile: Value,
    context: Value,
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a control request: a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Fields::default();
        let mut seen = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let (name, field) = match name.as_str() {
                "action" => ("action", &mut fields.action),
                "name" => ("name", &mut fields.name),
                "profile" => ("profile", &mut fields.profile),
                "context" => ("context", &mut fields.context),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if seen.contains(&name) {
                return Err(de::Error::duplicate_field(name));
            }
            seen.push(name);
            *field = map.next_value()?;
        }
        Ok(fields)
    }
}

impl<'de> Deserialize<'de> for OrchestratorRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields::deserialize(deserializer)?;
        let action = match fields.action {
            Value::Null => String::new(),
            Value::String(action) => action,
            // An unknown action, as any other word.
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                other.to_string()
            }
        };
        let is_known = ACTIONS.contains(&action.trim());
        let text = |field: &str, value: Value| match value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text)),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) if !is_known => {
                Ok(None)
            }
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                let error = String::deserialize(other).err();
                let reason = error.map_or_else(|| "no text".to_owned(), |error| error.to_string());
                Err(de::Error::custom(format!("`{field}`: {reason}")))
            }
        };
        Ok(Self {
            action,
            name: text("name", fields.name)?,
            profile: text("profile", fields.profile)?,
            context: text("context", fields.context)?,
        })
    }
}

#[expect(clippy::ref_option, reason = "the fields of the request are such")]
fn non_blank(value: &Option<String>) -> Option<String> {
    let text = value.as_deref()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
