//! The session file a task's conversation is saved to, if the task names one. Only a session file is ever
//! replaced.

use std::path::Path;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{Session, TaskId};
use antiphon_runtime::{Orchestrator, OrchestratorError, TaskState};

use crate::error::ProjectError;
use crate::models::Route;

/// Writes the conversation of a task to its session file, also when the task failed. Does nothing when the
/// task names no file.
pub fn save(state: &TaskState) -> Result<(), ProjectError> {
    let route = Route::parse(state.created.route.as_ref()).map_err(ProjectError::Failed)?;
    let Some(path) = route.save else { return Ok(()) };
    // The path comes from the journal, so it is checked again.
    check_replaceable(&path)?;
    let now = SystemClock.now();
    let session = Session {
        id: state.created.session_id.clone(),
        system_prompt: state.created.system_prompt.clone(),
        created_at: route
            .began
            .unwrap_or_else(|| state.messages().first().map_or(now, |first| first.timestamp())),
        updated_at: now,
        messages: state.messages().to_vec(),
    };
    antiphon_session_file::save(&path, &session).map_err(|e| ProjectError::Failed(e.to_string()))
}

/// The state of a task, with its whole conversation if its session is saved to a file.
pub async fn state(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
) -> Result<TaskState, OrchestratorError> {
    let state = orchestrator.task_alone(task_id).await?;
    let is_saved =
        Route::parse(state.created.route.as_ref()).is_ok_and(|route| route.save.is_some());
    if is_saved { orchestrator.task(task_id).await } else { Ok(state) }
}

/// Accepts a path with no file or with a session file; refuses to replace anything else.
pub fn check_replaceable(path: &Path) -> Result<(), ProjectError> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            match folder.map(std::fs::metadata) {
                Some(Err(error)) => Err(ProjectError::InvalidInput(format!(
                    "cannot save to {}: its folder: {error}",
                    path.display()
                ))),
                Some(Ok(_)) | None => Ok(()),
            }
        }
        Ok(about) if about.is_file() && antiphon_session_file::load(path).is_ok() => Ok(()),
        Ok(_) => Err(ProjectError::InvalidInput(format!(
            "{} exists and is not a session file: name another file to save to",
            path.display()
        ))),
        Err(error) => {
            Err(ProjectError::InvalidInput(format!("cannot use {}: {error}", path.display())))
        }
    }
}

/// Reads a session file.
pub fn from_file(path: &Path) -> Result<Session, ProjectError> {
    antiphon_session_file::load(path).map_err(|error| ProjectError::InvalidInput(error.to_string()))
}

/// Writes a conversation to a session file, which may replace an earlier session file and nothing else.
pub fn export(session: &Session, path: &Path) -> Result<(), ProjectError> {
    check_replaceable(path)?;
    antiphon_session_file::save(path, session)
        .map_err(|error| ProjectError::Failed(error.to_string()))
}

/// A conversation in the form of a session file.
pub fn to_json(session: &Session) -> Result<String, ProjectError> {
    antiphon_session_file::to_json(session).map_err(|error| ProjectError::Failed(error.to_string()))
}
