//! `antiphon agents`: who there is, and who is at work.

use std::num::NonZeroUsize;
use std::path::Path;

use antiphon_agents::{AgentBook, Draft, DraftError, Entry, Folder, Problem, new_file};
use antiphon_core::port::{Clock, Scene, SystemClock};
use antiphon_core::{
    AgentName, Cost, LiveAgent, MayCall, ModelRef, Profile, RawJson, Runtime, SilentIntents,
    TaskLimits, visible,
};
use clap::Subcommand;
use serde::Serialize;
use serde_json::{Value, json};

use crate::config::Config;
use crate::failure::Failure;
use crate::hands::{Allowed, Hands};
use crate::models::Models;
use crate::project::Project;
use crate::terminal;

/// Characters of a description that are listed.
const DESCRIPTION_CHARS_MAX: usize = 80;

/// Live agents that are shown.
const LIVE_MAX: NonZeroUsize = NonZeroUsize::new(1000).unwrap();

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
    /// Show live agents: those that work on a task that has not ended.
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
                let hands = Hands::of(&project, &config, &Allowed::default()).await?;
                let tools = hands.tools.tools().into_iter().map(|tool| tool.name).collect();
                show(&entry, tools, json)
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
            Self::Status { json } => {
                let reader = Project::known()?.reader(Models::new(config))?;
                status(&reader.agents(LIVE_MAX).await?, json)
            }
        }
    }
}

/// Where agents' files are: the project's, then the user's own.
pub(crate) fn folders(project: &Project, config: &Config) -> [Folder; 2] {
    let of_user = config.path.with_file_name("agents");
    [Folder::project(project.folder().join("agents")), Folder::user(of_user)]
}

/// For those who only look: nobody is told anything.
fn book(project: &Project, config: &Config) -> AgentBook {
    AgentBook::open(folders(project, config).into(), |scene| match scene {
        Scene::Named(agent) => agent.context.clone(),
        Scene::AdHoc(prompt) => prompt.to_owned(),
    })
}

/// The agent that is meant, or why there is none.
fn find(book: &AgentBook, name: &str) -> Result<Entry, Failure> {
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

fn list(book: &AgentBook, json: bool) -> Result<(), Failure> {
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

/// An agent in JSON, with everything about it.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    row: Row<'a>,
    profile: Profile,
    tools: Tools,
    agents: &'a MayCall,
    runtimes: Vec<Value>,
    limits: &'a TaskLimits,
    silent_intents: &'a SilentIntents,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'a RawJson>,
    context: &'a str,
}

/// What becomes of the tools an agent wants.
#[derive(Serialize)]
struct Tools {
    /// Absent when it takes all that its caller has.
    #[serde(skip_serializing_if = "Option::is_none")]
    wanted: Option<Vec<String>>,
    /// What it gets of a caller who has everything.
    here: Vec<String>,
    /// What it wants and is not here.
    missing: Vec<String>,
}

impl Tools {
    fn of(wanted: Option<&[String]>, here: Vec<String>) -> Self {
        let Some(wanted) = wanted else { return Self { wanted: None, here, missing: Vec::new() } };
        let (here, missing) = wanted.iter().cloned().partition(|name| here.contains(name));
        Self { wanted: Some(wanted.to_vec()), here, missing }
    }

    fn line(&self) -> String {
        let here = listed(&self.here, "none");
        let all = if self.wanted.is_none() { "all that its caller has, here " } else { "" };
        let missing = match self.missing.as_slice() {
            [] => String::new(),
            missing => format!("; not here: {}", missing.join(", ")),
        };
        format!("{all}{here}{missing}")
    }
}

fn show(entry: &Entry, here: Vec<String>, json: bool) -> Result<(), Failure> {
    let agent = &entry.definition;
    let tools = Tools::of(agent.tools.as_deref(), here);
    if json {
        let whole = Whole {
            row: row(entry),
            profile: agent.profile,
            tools,
            agents: &agent.agents,
            runtimes: agent.runtimes.iter().map(runtime_json).collect(),
            limits: &agent.limits,
            silent_intents: &agent.silent_intents,
            output_schema: agent.output_schema.as_ref(),
            context: &agent.context,
        };
        terminal::print(&terminal::json(&whole)?);
        return Ok(());
    }
    terminal::print(&described(entry, &tools));
    Ok(())
}

fn described(entry: &Entry, tools: &Tools) -> String {
    let agent = &entry.definition;
    let models: Vec<String> =
        agent.model.iter().chain(&agent.fallbacks).map(ModelRef::to_string).collect();
    let runtimes: Vec<String> = agent.runtimes.iter().map(runtime_text).collect();
    let may_call = match &agent.agents {
        MayCall::Anybody => "anybody".to_owned(),
        MayCall::Only(names) => listed(names, "nobody"),
    };
    let profile = match agent.profile {
        Profile::Native => "native",
    };
    let mut rows = vec![
        ("file", format!("{} ({})", shown(&entry.path), entry.origin.as_str())),
        ("profile", profile.to_owned()),
        ("model", listed(&models, "the caller's")),
        ("tools", tools.line()),
        ("may call", may_call),
        ("runs", listed(&runtimes, "local")),
        ("limits", limits(&agent.limits)),
    ];
    rows.extend(entry.shadows.iter().map(|path| ("shadows", shown(path))));
    let silent = words(&agent.silent_intents);
    rows.extend((!silent.is_empty()).then(|| ("silent", silent.join(", "))));
    rows.extend(agent.output_schema.iter().map(|schema| ("result", schema.to_string())));
    let rows: Vec<[String; 2]> =
        rows.into_iter().map(|(name, value)| [name.to_owned(), value]).collect();
    format!("{}\n\n{}\n{}\n", agent.description, terminal::table(&rows), agent.context)
}

fn runtime_json(runtime: &Runtime) -> Value {
    match runtime {
        Runtime::Local => json!({ "kind": "local" }),
        Runtime::Runner(runner) => json!({ "kind": runner.kind, "config": runner.config }),
    }
}

fn runtime_text(runtime: &Runtime) -> String {
    match runtime {
        Runtime::Runner(runner) if runner.config.as_object().is_some_and(|map| !map.is_empty()) => {
            format!("{} {}", runner.kind, runner.config)
        }
        Runtime::Local | Runtime::Runner(_) => runtime.kind().to_owned(),
    }
}

fn limits(limits: &TaskLimits) -> String {
    let cost = limits.cost_nano_usd_max.map(|nano| Cost { nano_usd: nano.get() }.to_string());
    let number = |number: Option<std::num::NonZeroU32>| number.map(|number| number.to_string());
    let known = [
        ("turns", number(limits.turns_max)),
        ("tokens of an answer", number(limits.answer_tokens_max)),
        ("calls of tools", number(limits.tool_calls_max)),
        ("tokens", limits.tokens_max.map(|tokens| tokens.to_string())),
        ("in all", cost),
        ("seconds", number(limits.wall_clock_s_max)),
        ("levels of tasks", number(limits.depth_max)),
        ("tasks at a time", number(limits.fan_out_max)),
        ("tasks", number(limits.tasks_max)),
    ];
    let said = known.into_iter().filter_map(|(of, limit)| Some(format!("{} {of}", limit?)));
    listed(&said.collect::<Vec<_>>(), "none")
}

/// The intents of a set that tells them in JSON only.
fn words(intents: &SilentIntents) -> Vec<String> {
    let words = serde_json::to_value(intents).and_then(serde_json::from_value);
    words.unwrap_or_default()
}

fn status(agents: &[LiveAgent], json: bool) -> Result<(), Failure> {
    if json {
        terminal::print(&terminal::json(&agents)?);
        return Ok(());
    }
    if agents.is_empty() {
        terminal::print("nobody is at work\n");
        return Ok(());
    }
    let now = SystemClock.now();
    let mut lines = vec![["AGENT", "STATE", "SINCE", "MESSAGES", "TASK", "ID"].map(str::to_owned)];
    lines.extend(agents.iter().map(|live| {
        [
            visible(&live.agent),
            live.status.state.to_string(),
            terminal::age(now - live.status.last_activity),
            live.status.messages_processed.to_string(),
            live.task_id.to_string(),
            live.status.id.to_string(),
        ]
    }));
    terminal::print(&terminal::table(&lines));
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
