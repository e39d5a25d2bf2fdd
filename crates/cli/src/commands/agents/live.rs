//! `antiphon agents start`, `stop` and `status`: agents that are there for what arrives.

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{AgentName, AgentState, visible};
use antiphon_project::{AgentPresence, agent_presences};
use serde_json::json;

use super::defined;
use crate::config::Config;
use crate::connection::{Connection, ProjectServer};
use crate::failure::Failure;
use crate::models::Models;
use crate::project::Project;
use crate::terminal;

/// Starts an agent.
pub(super) async fn start(config: Config, name: &AgentName, json: bool) -> Result<(), Failure> {
    let project = Project::here()?;
    defined(&project, &config, name)?;
    let connection = Connection::open_with_agents(&project, Models::new(config)).await?;
    let started = connection.start_agent(name).await?;
    if json {
        let told = json!({ "agent": name, "task_id": started.task_id, "already": started.already });
        terminal::print(&terminal::json(&told)?);
        return Ok(());
    }
    let word = if started.already { "is there already" } else { "is started" };
    let then = match connection {
        Connection::Server(..) => "",
        Connection::Local(_) => "; `antiphon serve` works on what arrives",
    };
    terminal::print(&format!("`{name}` {word}: task {}{then}\n", started.task_id));
    Ok(())
}

/// Stops an agent. One that is no longer defined can still be stopped.
pub(super) async fn stop(config: Config, name: &AgentName, json: bool) -> Result<(), Failure> {
    let project = Project::here()?;
    let unknown = defined(&project, &config, name).err();
    if let (Some(unknown), false) = (&unknown, project.has_journal()) {
        return Err(Failure::usage(unknown.message.clone()));
    }
    let connection = Connection::open_with_agents(&project, Models::new(config)).await?;
    let last = connection.reader().agent_task(name).await?;
    if let (Some(unknown), None) = (unknown, &last) {
        return Err(unknown);
    }
    let elsewhere = match (&connection, &last) {
        (Connection::Local(orchestrator), Some(last)) if !last.status.is_terminal() => {
            let runner = orchestrator.task(&last.task_id).await?.created.runner;
            runner.is_some_and(|runner| runner.kind == "loopback")
        }
        (Connection::Local(_) | Connection::Server(..), _) => false,
    };
    if elsewhere {
        return Err(Failure::refused(
            "a peer works on it, and nobody here could tell it: begin `antiphon serve`, then stop it",
        ));
    }
    let stopped = connection.stop_agent(name).await?;
    if json {
        let told = match &stopped {
            Some(task_id) => json!({ "agent": name, "task_id": task_id }),
            None => json!({ "agent": name }),
        };
        terminal::print(&terminal::json(&told)?);
        return Ok(());
    }
    terminal::print(&match stopped {
        Some(task_id) => {
            let again = format!("start it again with `antiphon agents start '{name}'`");
            format!("`{name}` is stopped: task {task_id}; {again}\n")
        }
        None => format!("`{name}` was not there\n"),
    });
    Ok(())
}

/// Shows who is there. A server knows where they stand; without one nobody does anything.
pub(super) async fn status(config: Config, json: bool) -> Result<(), Failure> {
    let project = Project::known()?;
    let agents = match ProjectServer::find(&project).await? {
        Some(server) => server.agent_presences().await?,
        None => agent_presences(&project.reader(Models::new(config))?).await?,
    };
    terminal::print(&if json { terminal::json(&agents)? } else { table(&agents) });
    Ok(())
}

pub(super) fn table(agents: &[AgentPresence]) -> String {
    if agents.is_empty() {
        return "nobody is at work\n".to_owned();
    }
    let now = SystemClock.now();
    let header = ["AGENT", "STATE", "SINCE", "MESSAGES", "INBOX", "TASK", "ID"];
    let mut lines = vec![header.map(str::to_owned)];
    lines.extend(agents.iter().map(|live| {
        let state = match (live.standing, live.state) {
            (true, AgentState::Idle) => "idle, standing".to_owned(),
            (true, state) => format!("{state}, standing"),
            (false, state) => state.to_string(),
        };
        [
            visible(&live.agent),
            state,
            terminal::age(now - live.last_activity),
            live.messages_processed.to_string(),
            live.waiting.to_string(),
            live.task_id.to_string(),
            live.id.map_or(String::new(), |id| id.to_string()),
        ]
    }));
    terminal::table(&lines)
}
