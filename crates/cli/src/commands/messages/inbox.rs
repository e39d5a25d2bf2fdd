//! `antiphon inbox`: queued interactions of agents, and the state of sent ones. Read-only, also while a
//! server runs.

mod show;

use std::collections::HashMap;
use std::num::NonZeroUsize;

use antiphon_api::{InboxPage, QueuedInteraction};
use antiphon_core::port::{Clock, QueuedQuery, SystemClock};
use antiphon_core::{AgentName, HandlingMode, Position, Salience, TaskStatus};
use antiphon_process::{Connection, ProjectAccess, ProjectServer};
use antiphon_project::Inboxes;
use antiphon_project::agent_files::defined_agents;
use antiphon_project::environment::Environment;
use antiphon_project::project::Project;
use antiphon_runtime::Orchestrator;
use antiphon_view::display::escaped;
use antiphon_view::text::one_line;
use clap::Subcommand;
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::terminal;

/// Most characters of an interaction in a list.
const LINE_CHARS_MAX: usize = 60;

/// List queued interactions, and show the state of one.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
What an agent has not read stays in its inbox, also while it is stopped. See docs/inbox.md.

Examples:
  antiphon inbox list
  antiphon inbox list reviewer --json | jq -r '.[].id'
  antiphon inbox show 4f1c0b")]
pub(crate) enum Inbox {
    /// List queued interactions, in the order of arrival.
    #[command(after_help = "\
Examples:
  antiphon inbox list
  antiphon inbox list reviewer --limit 5
  antiphon inbox list --json | jq '.[] | select(.salience == \"urgent\")'")]
    List {
        /// Only the inbox of this agent.
        agent: Option<AgentName>,
        /// Only interactions behind this position: the next page.
        #[arg(long, value_name = "POSITION")]
        cursor: Option<u64>,
        /// Most interactions to list.
        #[arg(long, default_value = "50", value_name = "N")]
        limit: NonZeroUsize,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one interaction: its sender, the text the agent reads, and its state.
    #[command(after_help = "\
The state is `waiting` or `read`; of a request `waiting`, `taken`, `accepted`, `completed` or `failed`.
Exit code 2 when there is no such interaction.

Examples:
  antiphon inbox show 4f1c0b
  antiphon inbox show 4f1c0b --json | jq .result")]
    Show {
        /// Id of the interaction, or a prefix of it.
        id: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

impl Inbox {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let project = Project::find_existing(environment)?;
        let names = defined_agents(&project, &project.settings(environment)?);
        let access = ProjectAccess::Folder { project, environment };
        self.show(&access.read()?, &names).await
    }

    /// Runs the command through a server.
    pub(crate) async fn run_at(
        self,
        server: &ProjectServer,
        environment: &Environment,
    ) -> Result<(), Failure> {
        let names = server.agent_names().await?;
        let connection = ProjectAccess::of_server(server, environment).read()?;
        self.show(&connection, &names).await
    }

    async fn show(self, connection: &Connection, names: &[AgentName]) -> Result<(), Failure> {
        match self {
            Self::List { agent, cursor, limit, json } => {
                let page = QueuedQuery { after: Position(cursor.unwrap_or_default()), limit };
                list(connection, names, agent.as_ref(), page, json).await
            }
            Self::Show { id, json } => show::show(connection, names, &id, json).await,
        }
    }
}

async fn list(
    connection: &Connection,
    names: &[AgentName],
    agent: Option<&AgentName>,
    page: QueuedQuery,
    json: bool,
) -> Result<(), Failure> {
    if let Some(agent) = agent
        && !names.contains(agent)
        && connection.reader().agent_task(agent).await?.is_none()
    {
        return Err(antiphon_project::unknown_agent(agent, names).into());
    }
    let inboxes = agent.map_or(Inboxes::All(names), Inboxes::Of);
    let page = connection.queued_interactions(inboxes, page).await?;
    let InboxPage { waiting: found, total, next_cursor } = page;
    let shown = if json {
        terminal::json(&found)?
    } else {
        let endings = endings(connection.reader(), &found).await?;
        table(&found, &endings)
    };
    terminal::print(&shown);
    let count = found.len();
    if let Some(Position(next)) = next_cursor {
        terminal::note(&format!("{count} of {total}; see more with --limit or --cursor {next}\n"));
    }
    Ok(())
}

/// Notes for agents that are not live: failed or stopped.
async fn endings(
    books: &Orchestrator,
    found: &[QueuedInteraction],
) -> Result<HashMap<String, &'static str>, Failure> {
    let mut endings = HashMap::new();
    for waiting in found.iter().filter(|waiting| !waiting.live) {
        if endings.contains_key(&waiting.agent) {
            continue;
        }
        let last = match AgentName::parse(&waiting.agent) {
            Ok(name) => books.agent_task(&name).await?,
            Err(_) => None,
        };
        let failed = last.is_some_and(|last| last.status == TaskStatus::Failed);
        endings.insert(waiting.agent.clone(), if failed { " (failed)" } else { " (stopped)" });
    }
    Ok(endings)
}

fn table(found: &[QueuedInteraction], endings: &HashMap<String, &'static str>) -> String {
    if found.is_empty() {
        return "no queued interactions\n".to_owned();
    }
    let now = SystemClock.now();
    let header = ["AGENT", "ID", "FROM", "CLASS", "SALIENCE", "MODE", "AGE", ""];
    let mut lines = vec![header.map(str::to_owned)];
    lines.extend(found.iter().map(|waiting| {
        let gone = endings.get(&waiting.agent).copied().unwrap_or_default();
        let quiet = if waiting.wakes { "" } else { ", quiet" };
        [
            format!("{}{gone}", escaped(&waiting.agent)),
            waiting.id.to_string(),
            waiting.from.to_string(),
            word(&waiting.class),
            salience(waiting.salience).to_owned(),
            format!("{}{quiet}", mode(waiting.mode)),
            terminal::age(now - waiting.at),
            first_line(&waiting.rendered_text),
        ]
    }));
    terminal::table(&lines)
}

/// The JSON string of a value.
fn word(value: &impl Serialize) -> String {
    let text = serde_json::to_value(value).ok();
    text.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn salience(salience: Salience) -> &'static str {
    match salience {
        Salience::Background => "background",
        Salience::Normal => "normal",
        Salience::Important => "important",
        Salience::Urgent => "urgent",
    }
}

fn mode(mode: HandlingMode) -> &'static str {
    match mode {
        HandlingMode::Queue => "queue",
        HandlingMode::Steer => "steer",
    }
}

fn first_line(text: &str) -> String {
    let line = one_line(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default());
    match line.char_indices().nth(LINE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
