//! The body of `POST /v1/tasks`.

use antiphon_api::{CreateTask, HISTORY_MESSAGES_MAX, NAMES_MAX};
use antiphon_interface_transport::ApiError;
use antiphon_project::{TaskRequest, parse_message};

/// Checks the limits of the body and parses its message.
pub(crate) fn task_request(wire: CreateTask) -> Result<TaskRequest, ApiError> {
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
            "`history`: it excludes `session_id`, because a session has its own history: omit one";
        return Err(ApiError::invalid(message));
    }
    Ok(TaskRequest {
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

fn too_many(field: &str, max: usize) -> ApiError {
    ApiError::invalid(format!("`{field}`: at most {max}"))
}
