//! Agent definitions that clients create, change and delete. Only files of the project can be changed.

use std::sync::Arc;

use antiphon_agent_files::{AgentFileEntry, FolderOwner};
use antiphon_api::AgentChange;
use antiphon_core::port::Agents;
use antiphon_core::{AgentName, ErrorCode, ErrorResponse};

use super::refusal;
use crate::agent_files::edit::{self, EditError};
use crate::agent_files::{AgentFiles, new_agent_name};
use crate::reports::presence::unknown_agent;
use crate::request::task_factory::DefinedAgent;

pub(super) async fn create(
    files: &AgentFiles,
    name: &AgentName,
    change: AgentChange,
) -> Result<DefinedAgent, ErrorResponse> {
    if let Err(reason) = new_agent_name(name.as_str()) {
        return Err(refusal(ErrorCode::InvalidRequest, format!("`name`: {reason}")));
    }
    if let Some(users) = files.find(name).await.filter(|entry| entry.origin == FolderOwner::User) {
        let path = users.path.display();
        let message = format!("the user has an agent `{name}`, which comes first: {path}");
        return Err(refusal(ErrorCode::Conflict, message));
    }
    let (folder, new) = (files.folder.clone(), name.clone());
    let mut fields = change.fields();
    fields.retain(|(_, value)| !value.is_null());
    let context = change.context.unwrap_or_else(|| format!("You are {name}."));
    let written = files.write(move || edit::define(&folder, &new, &fields, &context)).await;
    written.map_err(refused)?;
    files.allow_unsandboxed(name).await;
    found(files, name)
}

pub(super) async fn change(
    files: &AgentFiles,
    name: &AgentName,
    change: AgentChange,
) -> Result<DefinedAgent, ErrorResponse> {
    let entry = project_agent(files, name).await?;
    let definition = Arc::clone(&entry.definition);
    let written = files
        .write(move || {
            let fields = change.fields();
            edit::change(&entry.path, &definition, &fields, change.context.as_deref())
        })
        .await;
    written.map_err(refused)?;
    files.allow_unsandboxed(name).await;
    found(files, name)
}

pub(super) async fn delete(files: &AgentFiles, name: &AgentName) -> Result<(), ErrorResponse> {
    let entry = project_agent(files, name).await?;
    files.remove(&entry.path).await.map_err(refused)
}

/// The definition of an agent whose file belongs to the project.
async fn project_agent(
    files: &AgentFiles,
    name: &AgentName,
) -> Result<AgentFileEntry, ErrorResponse> {
    let none = || {
        let known = files.catalog.list();
        let known: Vec<AgentName> = known.iter().map(|agent| agent.name.clone()).collect();
        refusal(ErrorCode::NotFound, unknown_agent(name, &known).to_string())
    };
    let entry = files.find(name).await.ok_or_else(none)?;
    if let Some(imported) = &entry.imported {
        let (path, program) = (entry.path.display(), imported.format);
        let message = format!(
            "`{name}` is an agent of {program}, which is read in place: edit {path}, or copy it with \
             `antiphon import`"
        );
        return Err(refusal(ErrorCode::Forbidden, message));
    }
    match entry.origin {
        FolderOwner::Project => Ok(entry),
        FolderOwner::User => {
            let path = entry.path.display();
            let message = format!("`{name}` belongs to the user, not to this project: edit {path}");
            Err(refusal(ErrorCode::Forbidden, message))
        }
    }
}

/// The definition that was just written.
fn found(files: &AgentFiles, name: &AgentName) -> Result<DefinedAgent, ErrorResponse> {
    let none = || {
        let message = format!("`{name}` was written but is not valid: see `antiphon agents list`");
        refusal(ErrorCode::Conflict, message)
    };
    files.catalog.entry(name.as_str()).map(DefinedAgent::from).ok_or_else(none)
}

fn refused(error: EditError) -> ErrorResponse {
    match error {
        EditError::Refused(reason) => refusal(ErrorCode::InvalidRequest, reason),
        EditError::Exists(path) => {
            let message =
                format!("{} exists already: change it, or choose another name", path.display());
            refusal(ErrorCode::Conflict, message)
        }
        EditError::Unwritable(reason) => refusal(ErrorCode::ServiceUnavailable, reason),
    }
}
