//! `antiphon agents`: agent definitions and live agents.

mod at_server;
mod live;
mod show;

use std::path::PathBuf;

use antiphon_agent_files::{AgentFileEntry, Draft, DraftError, Folder, new_file};
use antiphon_api::{AgentDetail, AgentList, AgentOrigin, AgentProblem, ImportedFrom};
use antiphon_core::{AgentName, ModelRef};
use antiphon_project::agent_files::{
    find_entry, new_agent_name, project_folder, read_catalog, user_folder,
};
use antiphon_project::environment::Environment;
use antiphon_project::project::Project;
use antiphon_project::settings::UserSettings;
use antiphon_project::toolset::{PermissionOverrides, Toolset};
use antiphon_project::{AgentScope, DefinedAgent, agent_problems};
use antiphon_view::display::{escaped, escaped_path};
use antiphon_view::text::one_line;
use clap::Subcommand;
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::terminal;

/// Most characters of a description in a list.
const DESCRIPTION_CHARS_MAX: usize = 80;

/// List, show and create agents; start, stop and watch live agents.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
An agent is a markdown file: in .antiphon/agents of the project, or in the folder `agents` beside
your configuration. Your own agent counts before the project's of the same name. See docs/agents.md.

Examples:
  antiphon agents new reviewer --description 'Reviews a change.'
  antiphon agents list
  antiphon agents show reviewer
  antiphon agents list --json | jq -r '.problems[] | .path'
  antiphon agents start reviewer
  antiphon agents status")]
pub(crate) enum Agents {
    /// List agents, where they are defined, and files that are not valid.
    #[command(after_help = "\
Examples:
  antiphon agents list
  antiphon agents list --json | jq -r '.agents[].name'")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the definition of an agent, and which of its tools are available.
    #[command(after_help = "\
Exit code 2 when there is no such agent, or when its file is not valid.

Examples:
  antiphon agents show reviewer
  antiphon agents show reviewer --json | jq .limits")]
    Show {
        /// Name of the agent.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Create the file of a new agent, with every field explained.
    #[command(after_help = "\
Examples:
  antiphon agents new reviewer
  antiphon agents new scribe --user --model anthropic/claude-sonnet-4-5")]
    New {
        /// Name of the new agent: lower-case letters, digits and `_ - .`.
        #[arg(value_parser = new_agent_name)]
        name: AgentName,
        /// What the agent does; other agents read it.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Create it for all of your projects, not only for this one.
        #[arg(long)]
        user: bool,
        /// Model as PROVIDER/MODEL; the caller's model when absent.
        #[arg(long)]
        model: Option<ModelRef>,
    },
    Attach(super::attach::Attach),
    /// Start an agent: it then reads what arrives in its inbox.
    #[command(after_help = "\
A stopped agent continues its conversation, and reads what waits in its inbox. `antiphon serve` runs
live agents.

Examples:
  antiphon agents start reviewer
  antiphon agents start reviewer --json | jq -r .task_id")]
    Start {
        /// Name of the agent.
        name: AgentName,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Stop an agent: its turn ends, requests to it fail, and messages stay queued until it starts again.
    #[command(after_help = "\
Examples:
  antiphon agents stop reviewer")]
    Stop {
        /// Name of the agent.
        name: AgentName,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show live agents: those that work, and those that are idle.
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
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let project = Project::find(environment)?;
        let settings = project.settings(environment)?;
        match self {
            Self::List { json } => {
                let catalog = read_catalog(&project, &settings);
                let summary = |entry: AgentFileEntry| {
                    DefinedAgent::from(entry).detail(false, AgentScope::Summary)
                };
                let agents = catalog.entries().into_iter().map(summary).collect();
                list(&AgentList { agents, problems: agent_problems(&catalog) }, json)
            }
            Self::Show { name, json } => {
                let entry = find_entry(&read_catalog(&project, &settings), &name)?;
                let overrides = PermissionOverrides::default();
                let toolset = Toolset::of(&project, &settings, &overrides).await?;
                let tools = toolset.tools.tools().into_iter().map(|tool| tool.name.clone());
                let tools: Vec<String> = tools.collect();
                show::show(&DefinedAgent::from(entry).detail(false, AgentScope::Full(&tools)), json)
            }
            Self::New { name, description, user, model } => {
                let draft = Draft { name, description, model };
                if user {
                    return new(&user_folder(&settings), &draft).map(|_| ());
                }
                check_not_users(&settings, &draft.name)?;
                project.prepare_shared()?;
                let path = new(&project_folder(&project), &draft)?;
                Ok(project.trust().trust_written(&path)?)
            }
            Self::Attach(attach) => attach.run(environment).await,
            Self::Start { name, json } => live::start(&project, settings, &name, json).await,
            Self::Stop { name, json } => live::stop(&project, settings, &name, json).await,
            Self::Status { json } => live::status(environment, settings, json).await,
        }
    }
}

/// Refuses a new agent of the project that the user's own agent of the same name would hide.
fn check_not_users(settings: &UserSettings, name: &AgentName) -> Result<(), Failure> {
    let path = user_folder(settings).path.join(format!("{name}.md"));
    if path.exists() {
        let path = path.display();
        return Err(Failure::usage(format!(
            "you have an agent `{name}` of your own, which comes first: {path}. Choose another name"
        )));
    }
    Ok(())
}

fn new(folder: &Folder, draft: &Draft) -> Result<PathBuf, Failure> {
    let path = new_file(folder, draft).map_err(|error| match error {
        DraftError::Exists { .. } | DraftError::Refused(_) | DraftError::Unwritable { .. } => {
            Failure::usage(error.to_string())
        }
    })?;
    terminal::print(&format!("{}\n", escaped_path(&path)));
    Ok(path)
}

/// An agent in a JSON list.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a AgentName,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a ModelRef>,
    #[serde(skip_serializing_if = "<[ModelRef]>::is_empty")]
    fallbacks: &'a [ModelRef],
    origin: AgentOrigin,
    path: &'a str,
    /// Files of the same name that this one replaces.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    shadows: &'a [String],
    /// The program its file was written for, when that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    imported: Option<&'a ImportedFrom>,
}

fn row(agent: &AgentDetail) -> Row<'_> {
    Row {
        name: &agent.name,
        description: &agent.description,
        model: agent.model.as_ref(),
        fallbacks: &agent.fallbacks,
        origin: agent.origin,
        path: &agent.path,
        shadows: &agent.shadows,
        imported: agent.imported.as_ref(),
    }
}

/// Whose file it is, and the program it was written for.
fn origin(agent: &AgentDetail) -> String {
    let owner = match agent.origin {
        AgentOrigin::Project => "project",
        AgentOrigin::User => "user",
    };
    match &agent.imported {
        Some(imported) => format!("{owner}, for {}", imported.program),
        None => owner.to_owned(),
    }
}

/// Which files it replaces, in a word.
fn shadows(agent: &AgentDetail) -> &'static str {
    let is_ours = |path: &String| path.contains("/.antiphon/agents/");
    if agent.shadows.is_empty() {
        ""
    } else if agent.shadows.iter().any(is_ours) {
        ", shadows the project's"
    } else {
        ", shadows another"
    }
}

fn list(found: &AgentList, json: bool) -> Result<(), Failure> {
    let AgentList { agents, problems } = found;
    if json {
        let problems = problems.iter().map(|problem| {
            json!({ "path": problem.path, "line": problem.line, "reason": problem.reason })
        });
        let rows: Vec<Row<'_>> = agents.iter().map(row).collect();
        let problems: Vec<Value> = problems.collect();
        terminal::print(&terminal::json(&json!({ "agents": rows, "problems": problems }))?);
        return Ok(());
    }
    if agents.is_empty() && problems.is_empty() {
        terminal::print("no agents here: create one with `antiphon agents new NAME`\n");
        return Ok(());
    }
    let mut lines = vec![["AGENT", "MODEL", "FROM", "DESCRIPTION"].map(str::to_owned)];
    lines.extend(agents.iter().map(|agent| {
        [
            agent.name.to_string(),
            agent.model.as_ref().map_or("the caller's".to_owned(), ModelRef::to_string),
            format!("{}{}", origin(agent), shadows(agent)),
            first_line(&agent.description),
        ]
    }));
    let mut text = if agents.is_empty() { String::new() } else { terminal::table(&lines) };
    text.extend(problems.iter().map(|problem| format!("problem: {}\n", on_one_line(problem))));
    terminal::print(&text);
    Ok(())
}

fn joined(words: &[String], none: &str) -> String {
    if words.is_empty() { none.to_owned() } else { words.join(", ") }
}

fn first_line(text: &str) -> String {
    let line = one_line(text.lines().next().unwrap_or_default());
    match line.char_indices().nth(DESCRIPTION_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// The problem on one line: a file name may hold a line break.
fn on_one_line(problem: &AgentProblem) -> String {
    escaped(&problem.to_string()).into_owned()
}
