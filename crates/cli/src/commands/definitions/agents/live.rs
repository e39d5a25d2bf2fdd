//! `antiphon agents start`, `stop` and `status`: live agents.

use std::fmt::Write as _;

use antiphon_api::AgentPresence;
use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{AgentName, AgentState, TaskId};
use antiphon_process::{Connection, ProjectServer, Twice};
use antiphon_project::agent_files::check_defined;
use antiphon_project::environment::Environment;
use antiphon_project::error::ProjectError;
use antiphon_project::models::Models;
use antiphon_project::project::Project;
use antiphon_project::settings::UserSettings;
use antiphon_project::{check_stops_here, idle_agents, listed_agents};
use antiphon_runtime::StartedAgent;
use antiphon_view::display::escaped;
use antiphon_view::outage_wait_text;
use serde_json::json;

use crate::failure::Failure;
use crate::terminal;

/// Starts an agent.
pub(super) async fn start(
    project: &Project,
    settings: UserSettings,
    name: &AgentName,
    json: bool,
) -> Result<(), Failure> {
    check_defined(project, &settings, name)?;
    let start = async |connection: &Connection| connection.start_agent(name).await;
    let (connection, started) = at_any_owner(project, &settings, start).await?;
    print_started(&connection, name, &started, json)
}

/// Carries out a request that has the effect of one when it comes twice.
async fn at_any_owner<T>(
    project: &Project,
    settings: &UserSettings,
    request: impl AsyncFn(&Connection) -> Result<T, ProjectError>,
) -> Result<(Connection, T), ProjectError> {
    let environment = &settings.environment;
    let open = async || {
        let models = Models::new(project.settings(environment)?);
        Connection::open_with_agents(project, models).await
    };
    Connection::at_any_owner(environment, Twice::IsOnce, open, request).await
}

/// Starts an agent through a connection.
pub(super) async fn start_with(
    connection: &Connection,
    name: &AgentName,
    json: bool,
) -> Result<(), Failure> {
    let started = connection.start_agent(name).await?;
    print_started(connection, name, &started, json)
}

fn print_started(
    connection: &Connection,
    name: &AgentName,
    started: &StartedAgent,
    json: bool,
) -> Result<(), Failure> {
    if json {
        let row = json!({ "agent": name, "task_id": started.task_id, "already": started.already });
        terminal::print(&terminal::json(&row)?);
        return Ok(());
    }
    let word = if started.already { "is already started" } else { "is started" };
    let then = match connection {
        Connection::Server(..) => "",
        Connection::Local(_) => "; `antiphon serve` runs it",
    };
    terminal::print(&format!("`{name}` {word}: task {}{then}\n", started.task_id));
    Ok(())
}

/// Stops an agent, also one that is no longer defined.
pub(super) async fn stop(
    project: &Project,
    settings: UserSettings,
    name: &AgentName,
    json: bool,
) -> Result<(), Failure> {
    let unknown = check_defined(project, &settings, name).err();
    if let (Some(unknown), false) = (&unknown, project.has_journal()) {
        return Err(Failure::usage(unknown.to_string()));
    }
    let stop = async |connection: &Connection| {
        let last = connection.reader().agent_task(name).await?;
        if let (Some(unknown), None) = (&unknown, &last) {
            return Err(unknown.clone());
        }
        if let (Connection::Local(_), Some(last)) = (connection, &last) {
            check_stops_here(last)?;
        }
        connection.stop_agent(name).await
    };
    let (_, stopped) = at_any_owner(project, &settings, stop).await?;
    print_stopped(name, stopped.as_ref(), json)
}

/// Stops an agent through a connection.
pub(super) async fn stop_with(
    connection: &Connection,
    name: &AgentName,
    json: bool,
) -> Result<(), Failure> {
    let stopped = connection.stop_agent(name).await?;
    print_stopped(name, stopped.as_ref(), json)
}

fn print_stopped(name: &AgentName, stopped: Option<&TaskId>, json: bool) -> Result<(), Failure> {
    if json {
        let row = match stopped {
            Some(task_id) => json!({ "agent": name, "task_id": task_id }),
            None => json!({ "agent": name }),
        };
        terminal::print(&terminal::json(&row)?);
        return Ok(());
    }
    terminal::print(&match stopped {
        Some(task_id) => {
            let again = format!("start it again with `antiphon agents start '{name}'`");
            format!("`{name}` is stopped: task {task_id}; {again}\n")
        }
        None => format!("`{name}` was not started\n"),
    });
    Ok(())
}

/// Shows live agents. Only a server runs them, so without one all are idle.
pub(super) async fn status(
    environment: &Environment,
    settings: UserSettings,
    json: bool,
) -> Result<(), Failure> {
    let project = Project::find_existing(environment)?;
    let agents = match ProjectServer::find(&project).await? {
        Some(served) => served.agent_presences().await?,
        None => idle_agents(&project.reader(Models::new(settings))?).await?,
    };
    print(agents, json)
}

/// Prints live agents.
pub(super) fn print(agents: Vec<AgentPresence>, json: bool) -> Result<(), Failure> {
    let agents = listed_agents(agents);
    terminal::print(&if json { terminal::json(&agents)? } else { table(&agents) });
    Ok(())
}

fn table(agents: &[AgentPresence]) -> String {
    if agents.is_empty() {
        return "no live agents\n".to_owned();
    }
    let now = SystemClock.now();
    let header = ["AGENT", "STATE", "SINCE", "MESSAGES", "INBOX", "TASK", "ID"];
    let mut lines = vec![header.map(str::to_owned)];
    lines.extend(agents.iter().map(|live| {
        let state = match (live.resident, live.state) {
            (true, AgentState::Idle) => "idle, resident".to_owned(),
            (true, state) => format!("{state}, resident"),
            (false, state) => state.to_string(),
        };
        [
            escaped(&live.agent).into_owned(),
            state,
            terminal::age(now - live.last_activity),
            live.messages_processed.to_string(),
            live.waiting.to_string(),
            escaped(live.task_id.short()).into_owned(),
            live.id.map_or(String::new(), |id| id.to_string()),
        ]
    }));
    let mut text = terminal::table(&lines);
    for live in agents {
        if let Some(wait) = &live.wait {
            // Writing to a text does not fail.
            let _ = writeln!(text, "`{}` {}", escaped(&live.agent), outage_wait_text(wait));
        } else if let Some(waits) = &live.waits {
            let what = match live.waiting {
                0 => "its start or first message waits".to_owned(),
                1 => "1 message waits".to_owned(),
                count => format!("{count} messages wait"),
            };
            let agent = escaped(&live.agent);
            // Writing to a text does not fail.
            let _ = writeln!(text, "`{agent}`: {what}: {}", escaped(waits));
        }
    }
    text
}
