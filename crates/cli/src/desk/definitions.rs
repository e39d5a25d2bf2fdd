//! Definitions of agents, as clients write them: files of the project, and no others.

use std::sync::Arc;

use antiphon_agent_files::{Entry, Origin};
use antiphon_core::{AgentName, ErrorCode, ErrorResponse};
use antiphon_project::{AgentChange, DefinedAgent};

use super::refusal;
use crate::agent_file::{self, FileError};
use crate::shelf::AgentFiles;

/// An agent, as a client is told of it.
pub(super) fn defined(entry: Entry) -> DefinedAgent {
    DefinedAgent {
        definition: entry.definition,
        origin: match entry.origin {
            Origin::Project => antiphon_project::Origin::Project,
            Origin::User => antiphon_project::Origin::User,
        },
        path: entry.path.display().to_string(),
        fault: entry.fault.map(|fault| format!("line {}: {}", fault.line, fault.reason)),
    }
}

pub(super) async fn create(
    shelf: &AgentFiles,
    name: &AgentName,
    change: AgentChange,
) -> Result<DefinedAgent, ErrorResponse> {
    let (folder, new) = (shelf.folder.clone(), name.clone());
    let mut fields = change.fields();
    fields.retain(|(_, value)| !value.is_null());
    let context = change.context.unwrap_or_else(|| format!("You are {name}."));
    let written = shelf.write(move || agent_file::define(&folder, &new, &fields, &context)).await;
    written.map_err(refused)?;
    found(shelf, name)
}

pub(super) async fn change(
    shelf: &AgentFiles,
    name: &AgentName,
    change: AgentChange,
) -> Result<DefinedAgent, ErrorResponse> {
    let entry = own(shelf, name).await?;
    let definition = Arc::clone(&entry.definition);
    let written = shelf
        .write(move || {
            let fields = change.fields();
            agent_file::change(&entry.path, &definition, &fields, change.context.as_deref())
        })
        .await;
    written.map_err(refused)?;
    found(shelf, name)
}

pub(super) async fn delete(shelf: &AgentFiles, name: &AgentName) -> Result<(), ErrorResponse> {
    let entry = own(shelf, name).await?;
    shelf.remove(&entry.path).await.map_err(refused)
}

/// An agent of the project.
async fn own(shelf: &AgentFiles, name: &AgentName) -> Result<Entry, ErrorResponse> {
    let none = || refusal(ErrorCode::NotFound, format!("there is no agent `{name}`"));
    let entry = shelf.find(name).await.ok_or_else(none)?;
    match entry.origin {
        Origin::Project => Ok(entry),
        Origin::User => {
            let path = entry.path.display();
            let message =
                format!("`{name}` is the user's own, and not this project's: edit {path}");
            Err(refusal(ErrorCode::Forbidden, message))
        }
    }
}

/// An agent that was just written.
fn found(shelf: &AgentFiles, name: &AgentName) -> Result<DefinedAgent, ErrorResponse> {
    let none = || {
        let message = format!("`{name}` was written, and is not taken: see `antiphon agents list`");
        refusal(ErrorCode::Conflict, message)
    };
    shelf.agents.entry(name.as_str()).map(defined).ok_or_else(none)
}

fn refused(error: FileError) -> ErrorResponse {
    match error {
        FileError::Refused(reason) => refusal(ErrorCode::InvalidRequest, reason),
        FileError::Exists(path) => {
            let message =
                format!("{} is there already: change it, or choose a name", path.display());
            refusal(ErrorCode::Conflict, message)
        }
        FileError::Unwritable(reason) => refusal(ErrorCode::ServiceUnavailable, reason),
    }
}
