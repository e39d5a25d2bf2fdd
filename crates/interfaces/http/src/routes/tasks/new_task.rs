//! The body of `POST /v1/tasks`.

use std::sync::Arc;

use antiphon_core::schema::MessageOrText;
use antiphon_core::{Message, ModelRef, RawJson, SessionId, TaskLimits, Tool};
use antiphon_interface_transport::ApiError;
use antiphon_project::{HISTORY_MESSAGES_MAX, NAMES_MAX, TaskRequest, parse_message};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

/// A new task. Absent fields have the defaults of the agent, or of the server.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "NewTask", example = json!({ "message": "What is in this folder?" }))]
pub(crate) struct TaskWire {
    /// Name of the agent; the default agent when absent.
    #[serde(default)]
    agent: Option<String>,
    /// The model, as `PROVIDER/MODEL`; the agent's own when absent.
    #[serde(default)]
    model: Option<ModelRef>,
    /// The prompt: a text, or a user message with text and images.
    #[schemars(with = "MessageOrText")]
    message: Box<RawValue>,
    /// Messages that precede the prompt, the oldest first; excludes `session_id`.
    #[serde(default)]
    #[schemars(length(max = HISTORY_MESSAGES_MAX))]
    history: Vec<Arc<Message>>,
    /// A system prompt that replaces the agent's own.
    #[serde(default)]
    system_prompt: Option<String>,
    /// Names of the tools that the task may use, of those of the agent; all of the agent's when absent.
    #[serde(default)]
    tools: Option<Vec<String>>,
    /// Names of the agents that the task may call, of those that the agent may call; all of these when
    /// absent.
    #[serde(default)]
    agents: Option<Vec<String>>,
    /// Tools that the client runs: the task waits for `POST /v1/tasks/{id}/tool_results`.
    #[serde(default)]
    external_tools: Vec<Tool>,
    /// Limits of the task; the agent's own where absent.
    #[serde(default)]
    limits: TaskLimits,
    /// JSON Schema that the result has to match; the result is a text when absent.
    #[serde(default)]
    output_schema: Option<RawJson>,
    /// The session that the task continues; a new session when absent.
    #[serde(default)]
    session_id: Option<SessionId>,
}

impl TryFrom<TaskWire> for TaskRequest {
    type Error = ApiError;

    fn try_from(wire: TaskWire) -> Result<Self, ApiError> {
        if wire.history.len() > HISTORY_MESSAGES_MAX {
            return Err(too_many("history", HISTORY_MESSAGES_MAX));
        }
        for (field, names) in [("tools", &wire.tools), ("agents", &wire.agents)] {
            if names.as_ref().is_some_and(|names| names.len() > NAMES_MAX) {
                return Err(too_many(field, NAMES_MAX));
            }
        }
        if !wire.history.is_empty() && wire.session_id.is_some() {
            let message =
                "`history` and `session_id` exclude each other: a session has its own history";
            return Err(ApiError::invalid(message));
        }
        Ok(Self {
            message: parse_message("message", &wire.message)?,
            agent: wire.agent,
            model: wire.model,
            history: wire.history,
            system_prompt: wire.system_prompt,
            tools: wire.tools,
            agents: wire.agents,
            external_tools: wire.external_tools,
            limits: wire.limits,
            output_schema: wire.output_schema,
            session_id: wire.session_id,
        })
    }
}

fn too_many(field: &str, max: usize) -> ApiError {
    ApiError::invalid(format!("`{field}`: at most {max}"))
}
