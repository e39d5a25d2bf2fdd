//! What a client asks for, as it comes in and as the desk gets it.

use std::sync::Arc;

use antiphon_api::CreateTask;
pub use antiphon_api::{HISTORY_MESSAGES_MAX, NAMES_MAX};
use antiphon_core::{Message, ModelRef, RawJson, SessionId, TaskLimits, Tool, UserMessage};

use crate::api_error::ApiError;
use crate::said;

/// What a client asks for. What is absent is the desk's to say.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRequest {
    /// Who should work on it.
    pub agent: Option<String>,
    /// Who should answer.
    pub model: Option<ModelRef>,
    /// What to do.
    pub message: UserMessage,
    /// What was said before.
    pub history: Vec<Arc<Message>>,
    /// The scene, in place of the agent's own.
    pub system_prompt: Option<String>,
    /// The tools it may use.
    pub tools: Option<Vec<String>>,
    /// The agents it may call.
    pub agents: Option<Vec<String>>,
    /// Tools that the client runs itself.
    pub external_tools: Vec<Tool>,
    /// How far it may go.
    pub limits: TaskLimits,
    /// JSON Schema of its result.
    pub output_schema: Option<RawJson>,
    /// The conversation it goes on with.
    pub session_id: Option<SessionId>,
}

impl TaskRequest {
    /// Checks the body of a request.
    pub(crate) fn checked(wire: CreateTask) -> Result<Self, ApiError> {
        if wire.history.len() > HISTORY_MESSAGES_MAX {
            return Err(too_many("history", HISTORY_MESSAGES_MAX));
        }
        for (field, names) in [("tools", &wire.tools), ("agents", &wire.agents)] {
            if names.as_ref().is_some_and(|names| names.len() > NAMES_MAX) {
                return Err(too_many(field, NAMES_MAX));
            }
        }
        if !wire.history.is_empty() && wire.session_id.is_some() {
            let message = "`history` and `session_id`: a session brings its own history";
            return Err(ApiError::invalid(message));
        }
        Ok(Self {
            message: said::message("message", &wire.message)?,
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
    ApiError::invalid(format!("`{field}`: {max} at most"))
}
