//! A run at a server that the user named, as a task of its API.

use antiphon_api::CreateTask;
use antiphon_core::port::{Clock as _, SystemClock};
use antiphon_core::{RawJson, UserMessage};
use antiphon_project::error::ProjectError;
use antiphon_project::run_request::{RunRequest, RunSession};

/// A run as a task of the API. What belongs to this machine is not sent.
pub(crate) fn create_task(request: &RawJson) -> Result<CreateTask, ProjectError> {
    let unsendable = |error: serde_json::Error| ProjectError::Failed(error.to_string());
    let request: RunRequest = request.to().map_err(unsendable)?;
    if request.compact {
        return Err(ProjectError::InvalidInput(
            "a conversation at a server is shortened by itself: it cannot be shortened from here"
                .to_owned(),
        ));
    }
    let session_id = match request.session {
        Some(RunSession::Stored { session_id, .. }) => Some(session_id),
        Some(RunSession::File(file)) => {
            return Err(ProjectError::InvalidInput(format!(
                "{} is a file of this machine: import it with `antiphon sessions import`, then name the session",
                file.display()
            )));
        }
        Some(RunSession::New { .. }) => {
            return Err(ProjectError::InvalidInput(
                "a server chooses the id of a new session: name no session".to_owned(),
            ));
        }
        None => None,
    };
    Ok(CreateTask {
        agent: request.agent,
        model: request.model,
        system_prompt: request.system,
        limits: request.limits,
        output_schema: request.output_schema,
        plan: request.plan,
        session_id,
        ..first_message(&request.prompt, request.blocks)?
    })
}

/// A task with the prompt, or its blocks, as its message.
fn first_message(prompt: &str, blocks: Option<RawJson>) -> Result<CreateTask, ProjectError> {
    let unsendable = |error: serde_json::Error| ProjectError::Failed(error.to_string());
    let Some(blocks) = blocks else { return CreateTask::text(prompt).map_err(unsendable) };
    let blocks = serde_json::from_str(blocks.as_str()).map_err(unsendable)?;
    let content = antiphon_project::parse_blocks("blocks", blocks);
    let content = content.map_err(|error| ProjectError::InvalidInput(error.message))?;
    let message = UserMessage { content, timestamp: SystemClock.now() };
    CreateTask::message(&message).map_err(unsendable)
}
