//! `antiphon sessions … --server URL`.

use std::num::NonZeroUsize;
use std::path::Path;

use antiphon_api::{LISTED_MAX, SessionDetail, SessionFile, SessionQuery};
use antiphon_core::{Session, SessionSummary};
use serde_json::value::RawValue;

use super::{Sessions, from_file, how_to_continue, is_file, readable, table, to_json};
use crate::connection::ProjectServer;
use crate::failure::Failure;
use crate::terminal;

impl Sessions {
    /// Runs the command through a server.
    pub(crate) async fn run_at(self, server: &ProjectServer) -> Result<(), Failure> {
        match self {
            Self::List { limit, json } => {
                let sessions = list(server, limit).await?;
                terminal::print(&if json { terminal::json(&sessions)? } else { table(&sessions) });
            }
            Self::Show { session, json: false } => {
                terminal::print(&readable(&load(server, &session).await?));
            }
            Self::Show { session, json: true } | Self::Export { session, file: None } => {
                terminal::print(&to_json(&load(server, &session).await?)?);
            }
            Self::Export { session, file: Some(file) } => {
                antiphon_project::saved_session::check_replaceable(&file)?;
                let session = load(server, &session).await?;
                antiphon_session_file::save(&file, &session)
                    .map_err(|error| Failure::failed(error.to_string()))?;
                let count = terminal::count(session.messages.len() as u64, "message");
                terminal::print(&format!("{count} written to {}\n", file.display()));
            }
            Self::Import { file } => {
                let json = to_json(&from_file(&file)?)?;
                let json = RawValue::from_string(json)
                    .map_err(|error| Failure::failed(error.to_string()))?;
                let imported = server.client.import_session(&SessionFile(json), None).await;
                let imported = imported.map_err(|error| server.failure(error))?;
                terminal::print(&how_to_continue(&imported.session_id));
            }
            Self::Fork { session } => {
                let session_id = find(server, &session).await?.session_id;
                let fork = server.client.fork_session(&session_id).await;
                let fork = fork.map_err(|error| server.failure(error))?;
                terminal::print(&how_to_continue(&fork.session_id));
            }
        }
        Ok(())
    }
}

async fn list(server: &ProjectServer, limit: NonZeroUsize) -> Result<Vec<SessionSummary>, Failure> {
    let limit = NonZeroUsize::new(limit.get().min(LISTED_MAX));
    let listed = server.client.sessions(&SessionQuery { limit }).await;
    Ok(listed.map_err(|error| server.failure(error))?.sessions)
}

/// The session that a user means, among the newest.
async fn find(server: &ProjectServer, name: &str) -> Result<SessionSummary, Failure> {
    let sessions = list(server, NonZeroUsize::MAX).await?;
    let matches_name =
        |session: &SessionSummary| name == "last" || session.session_id.as_str().starts_with(name);
    let mut matching = sessions.into_iter().filter(matches_name);
    match (matching.next(), matching.next()) {
        (Some(session), Some(_)) if name != "last" && session.session_id.as_str() != name => {
            Err(Failure::usage(format!("more than one session begins with `{name}`")))
        }
        (Some(session), _) => Ok(session),
        (None, _) => Err(Failure::usage(format!("there is no session `{name}` at the server"))),
    }
}

async fn load(server: &ProjectServer, name: &str) -> Result<Session, Failure> {
    if is_file(name) {
        return from_file(Path::new(name));
    }
    let session_id = find(server, name).await?.session_id;
    let detail = server.client.session(&session_id).await;
    let SessionDetail { summary, system_prompt, messages } =
        detail.map_err(|error| server.failure(error))?;
    Ok(Session {
        id: summary.session_id,
        system_prompt,
        created_at: summary.created_at,
        updated_at: summary.updated_at,
        messages,
    })
}
