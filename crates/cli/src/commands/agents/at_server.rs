//! `antiphon agents … --server URL`.

use serde_json::json;

use super::{Agents, live};
use crate::connection::ProjectServer;
use crate::failure::Failure;
use crate::server_args::not_through_server;
use crate::terminal;

impl Agents {
    /// Runs the command through a server.
    pub(crate) async fn run_at(self, server: &ProjectServer) -> Result<(), Failure> {
        match self {
            Self::Start { name, json } => {
                let started = server.client.start_agent(&name).await;
                let started = started.map_err(|error| server.failure(error))?;
                if json {
                    terminal::print(&terminal::json(&started)?);
                    return Ok(());
                }
                let word = if started.already { "is live already" } else { "is started" };
                terminal::print(&format!("`{name}` {word}: task {}\n", started.task_id));
                Ok(())
            }
            Self::Stop { name, json } => {
                let stopped = server.client.stop_agent(&name).await;
                let stopped = stopped.map_err(|error| server.failure(error))?;
                terminal::print(&match (json, &stopped.task_id) {
                    (true, Some(task_id)) => {
                        terminal::json(&json!({ "agent": name, "task_id": task_id }))?
                    }
                    (true, None) => terminal::json(&json!({ "agent": name }))?,
                    (false, Some(task_id)) => format!("`{name}` is stopped: task {task_id}\n"),
                    (false, None) => format!("`{name}` was not live\n"),
                });
                Ok(())
            }
            Self::Status { json } => {
                let agents = server.agent_presences().await?;
                let shown = if json { terminal::json(&agents)? } else { live::table(&agents) };
                terminal::print(&shown);
                Ok(())
            }
            Self::List { .. } => Err(not_through_server("agents list")),
            Self::Show { .. } => Err(not_through_server("agents show")),
            Self::New { .. } => Err(not_through_server("agents new")),
            Self::Attach(_) => Err(not_through_server("agents attach")),
        }
    }
}
