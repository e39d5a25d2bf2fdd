//! `antiphon agents … --server URL`.

use std::path::Path;

use antiphon_agent_files::Draft;
use antiphon_api::{AgentDetail, AgentProblem, CreateAgent};
use antiphon_client::ClientError;
use antiphon_core::AgentName;
use antiphon_process::{Connection, ProjectServer};
use antiphon_project::unknown_agent;
use serde_json::json;

use super::{Agents, list, live, show};
use crate::failure::Failure;
use crate::server_args::not_through_server;
use crate::terminal;

impl Agents {
    /// Runs the command through a server.
    pub(crate) async fn run_at(self, server: &ProjectServer) -> Result<(), Failure> {
        let connection = || {
            let unnamed = || Failure::failed("the server was not named with --server");
            Connection::named(server).ok_or_else(unnamed)
        };
        match self {
            Self::List { json } => list(&server.answer(server.client.agents().await)?, json),
            Self::Show { name, json } => show::show(&agent(server, &name).await?, json),
            Self::New { user: true, .. } => {
                Err(Failure::usage("a server defines agents of its project only: omit --user"))
            }
            Self::New { name, description, user: false, model } => {
                new(server, Draft { name, description, model }).await
            }
            Self::Start { name, json } => live::start_with(&connection()?, &name, json).await,
            Self::Stop { name, json } => live::stop_with(&connection()?, &name, json).await,
            Self::Status { json } => live::print(server.agent_presences().await?, json),
            Self::Attach(_) => Err(not_through_server("agents attach")),
        }
    }
}

/// The definition of an agent, or the reason why there is none.
async fn agent(server: &ProjectServer, name: &str) -> Result<AgentDetail, Failure> {
    let found = match AgentName::parse(name) {
        Ok(name) => server.client.agent(&name).await,
        Err(_) => return Err(unknown_agent(name, &server.agent_names().await?).into()),
    };
    let error = match found {
        Ok(agent) => return Ok(agent),
        Err(error @ ClientError::Refused { status: 404, .. }) => error,
        Err(error) => return Err(server.project_error(error).into()),
    };
    let problems = server.answer(server.client.agents().await)?.problems;
    let is_its = |problem: &&AgentProblem| {
        Path::new(&problem.path).file_stem().is_some_and(|stem| stem == name)
    };
    Err(match problems.iter().find(is_its) {
        Some(problem) => Failure::usage(problem.to_string()),
        None => server.project_error(error).into(),
    })
}

/// Defines an agent, with the same first values as in a new file here.
async fn new(server: &ProjectServer, draft: Draft) -> Result<(), Failure> {
    let name = draft.name.to_string();
    let mut fields = serde_json::Map::new();
    fields.insert("description".to_owned(), json!(draft.description()));
    fields.insert("context".to_owned(), json!(draft.context()));
    if let Some(model) = &draft.model {
        fields.insert("model".to_owned(), json!(model));
    }
    let created = server.client.define_agent(&CreateAgent { name, rest: fields }, None).await;
    terminal::print(&format!("{}\n", server.answer(created)?.path));
    Ok(())
}
