//! `antiphon agents`: who there is, and who is at work.

mod at_server;
mod live;
mod show;

use std::path::Path;

use antiphon_agent_files::{AgentCatalog, Draft, DraftError, Entry, Folder, Problem, new_file};
use antiphon_core::port::PromptSource;
use antiphon_core::{AgentName, ModelRef, visible};
use clap::Subcommand;
use serde::Serialize;
use serde_json::{Value, json};

use crate::config::Config;
use crate::failure::Failure;
use crate::hands::{Allowed, Toolset};
use crate::project::Project;
use crate::terminal;

/// Characters of a description that are listed.
const DESCRIPTION_CHARS_MAX: usize = 80;

/// Look at the agents of this project and at your own, make new ones, and see who is at work.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
An agent is a markdown file: in .antiphon/agents of the project, or in the folder `agents` beside
your configuration. Of two with the same name the project's counts. See docs/agents.md.

Examples:
  antiphon agents new reviewer --description 'Reviews a change.'
  antiphon agents list
  antiphon agents show reviewer
  antiphon agents list --json | jq -r '.problems[] | .path'
  antiphon agents start reviewer
  antiphon agents status")]
pub(crate) enum Agents {
    /// List agents, where they are from, and files that cannot be understood.
    #[command(after_help = "\
Examples:
  antiphon agents list
  antiphon agents list --json | jq -r '.agents[].name'")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show everything about one agent, also which of its tools are there.
    #[command(after_help = "\
Exit code 2 when there is no such agent, or when its file cannot be understood.

Examples:
  antiphon agents show reviewer
  antiphon agents show reviewer --json | jq .limits")]
    Show {
        /// Which.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a file for a new agent, with every field explained.
    #[command(after_help = "\
Examples:
  antiphon agents new reviewer
  antiphon agents new scribe --user --model anthropic/claude-sonnet-4-5")]
    New {
        /// What to call it.
        name: AgentName,
        /// What it is good for.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// For all of your projects, not for this one only.
        #[arg(long)]
        user: bool,
        /// Who answers, as PROVIDER/MODEL; the caller's model when absent.
        #[arg(long)]
        model: Option<ModelRef>,
    },
    Attach(super::attach::Attach),
    /// Start an agent: from then on it is there for what arrives in its inbox.
    #[command(after_help = "\
One that was stopped goes on with its conversation, and with what waits in its inbox. `antiphon serve`
is who works on it.

Examples:
  antiphon agents start reviewer
  antiphon agents start reviewer --json | jq -r .task_id")]
    Start {
        /// Which.
        name: AgentName,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Stop an agent: its turn ends, requests to it fail, and messages wait until it is started again.
    #[command(after_help = "\
Examples:
  antiphon agents stop reviewer")]
    Stop {
        /// Which.
        name: AgentName,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show live agents: those that work on a task, and those that wait for what arrives.
    #[command(after_help = "\
Examples:
  antiphon agents status
  antiphon agents status --json | jq '.[] | select(.state == \"thinking\") | .task_id'")]
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

impl Agents {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let config = Config::load()?;
        match self {
            Self::List { json } => list(&book(&Project::here()?, &config), json),
            Self::Show { name, json } => {
                let project = Project::here()?;
                let entry = find(&book(&project, &config), &name)?;
                let hands = Toolset::of(&project, &config, &Allowed::default()).await?;
                let tools = hands.tools.tools().into_iter().map(|tool| tool.name).collect();
                show::show(&entry, tools, json)
            }
            Self::New { name, description, user, model } => {
                let project = Project::here()?;
                let draft = Draft { name, description, model };
                let [of_project, of_user] = folders(&project, &config);
                if !user {
                    project.prepare()?;
                }
                new(&if user { of_user } else { of_project }, &draft)
            }
            Self::Attach(attach) => attach.run().await,
            Self::Start { name, json } => live::start(config, &name, json).await,
            Self::Stop { name, json } => live::stop(config, &name, json).await,
            Self::Status { json } => live::status(config, json).await,
        }
    }
}

/// Where agents' files are: the project's, then the user's own.
pub(crate) fn folders(project: &Project, config: &Config) -> [Folder; 2] {
    let of_user = config.path.with_file_name("agents");
    [Folder::project(project.folder().join("agents")), Folder::user(of_user)]
}

/// The names of the agents there are.
pub(crate) fn names(project: &Project, config: &Config) -> Vec<AgentName> {
    let entries = book(project, config).entries();
    entries.into_iter().map(|entry| entry.definition.name.clone()).collect()
}

/// Whether there is such an agent; an error says who there is.
pub(crate) fn defined(project: &Project, config: &Config, name: &AgentName) -> Result<(), Failure> {
    let known = names(project, config);
    if known.contains(name) {
        Ok(())
    } else {
        Err(antiphon_project::unknown_agent(name, &known).into())
    }
}

/// For those who only look: nobody is told anything.
fn book(project: &Project, config: &Config) -> AgentCatalog {
    AgentCatalog::open(folders(project, config).into(), |scene| match scene {
        PromptSource::Named(agent) => agent.context.clone(),
        PromptSource::AdHoc(prompt) => prompt.to_owned(),
    })
}

/// The agent that is meant, or why there is none.
fn find(book: &AgentCatalog, name: &str) -> Result<Entry, Failure> {
    if let Some(entry) = book.entry(name) {
        return Ok(entry);
    }
    let is_meant = |problem: &&Problem| problem.path.file_stem().is_some_and(|stem| stem == name);
    if let Some(problem) = book.problems().iter().find(is_meant) {
        return Err(Failure::usage(problem.to_string()));
    }
    let names: Vec<String> =
        book.entries().iter().map(|entry| entry.definition.name.to_string()).collect();
    let known = match names.as_slice() {
        [] => "begin with `antiphon agents new`".to_owned(),
        names => format!("there are {}", names.join(", ")),
    };
    Err(Failure::usage(format!("there is no agent `{name}` here: {known}")))
}

fn new(folder: &Folder, draft: &Draft) -> Result<(), Failure> {
    let path = new_file(folder, draft).map_err(|error| match error {
        DraftError::Exists { .. } | DraftError::Refused(_) | DraftError::Unwritable { .. } => {
            Failure::usage(error.to_string())
        }
    })?;
    terminal::print(&format!("{}\n", path.display()));
    Ok(())
}

/// An agent in JSON, as it is listed.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a AgentName,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a ModelRef>,
    #[serde(skip_serializing_if = "<[ModelRef]>::is_empty")]
    fallbacks: &'a [ModelRef],
    origin: &'static str,
    path: String,
    /// Files of the same name that do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shadows: Vec<String>,
}

fn row(entry: &Entry) -> Row<'_> {
    let agent = &entry.definition;
    Row {
        name: &agent.name,
        description: &agent.description,
        model: agent.model.as_ref(),
        fallbacks: &agent.fallbacks,
        origin: entry.origin.as_str(),
        path: shown(&entry.path),
        shadows: entry.shadows.iter().map(|path| shown(path)).collect(),
    }
}

fn list(book: &AgentCatalog, json: bool) -> Result<(), Failure> {
    let (entries, problems) = (book.entries(), book.problems());
    if json {
        let problems = problems.iter().map(|problem| {
            json!({
                "path": shown(&problem.path),
                "line": problem.line,
                "reason": problem.reason,
            })
        });
        let rows: Vec<Row<'_>> = entries.iter().map(row).collect();
        let problems: Vec<Value> = problems.collect();
        terminal::print(&terminal::json(&json!({ "agents": rows, "problems": problems }))?);
        return Ok(());
    }
    if entries.is_empty() && problems.is_empty() {
        terminal::print("there are no agents here: begin with `antiphon agents new NAME`\n");
        return Ok(());
    }
    let mut lines = vec![["AGENT", "MODEL", "FROM", "DESCRIPTION"].map(str::to_owned)];
    lines.extend(entries.iter().map(|entry| {
        let agent = &entry.definition;
        let shadows = if entry.shadows.is_empty() { "" } else { ", shadows yours" };
        [
            agent.name.to_string(),
            agent.model.as_ref().map_or("the caller's".to_owned(), ModelRef::to_string),
            format!("{}{shadows}", entry.origin.as_str()),
            first_line(&agent.description),
        ]
    }));
    let mut text = if entries.is_empty() { String::new() } else { terminal::table(&lines) };
    text.extend(problems.iter().map(|problem| format!("problem: {}\n", on_a_line(problem))));
    terminal::print(&text);
    Ok(())
}

fn listed(words: &[String], none: &str) -> String {
    if words.is_empty() { none.to_owned() } else { words.join(", ") }
}

fn first_line(text: &str) -> String {
    let line = visible(text).lines().next().unwrap_or_default().to_owned();
    match line.char_indices().nth(DESCRIPTION_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// A file's name may hold a line break.
fn on_a_line(problem: &Problem) -> String {
    problem.to_string().replace('\n', " ")
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
