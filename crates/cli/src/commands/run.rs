//! `antiphon run`: one task, from the prompt to its end.

use std::io::{IsTerminal, Read};
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_core::port::{Agents, Clock, SystemClock, TaskSelector};
use antiphon_core::{
    AgentDefinition, HistoryRef, ModelRef, Position, RawJson, SessionId, TaskId, TaskLimits,
    TaskStatus, UserMessage,
};
use antiphon_permissions::Mode;
use antiphon_runtime::{NewTask, Orchestrator, PriorHistory, TaskState};
use clap::{Args, ValueEnum};

use super::{sessions, tasks};
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::hands::{Allowed, Toolset};
use crate::keyboard::Keyboard;
use crate::models::Models;
use crate::outcome;
use crate::project::Project;
use crate::prompt::{self, Rules};
use crate::role;
use crate::route::Route;
use crate::saved;
use crate::screen::{Form, Screen};
use crate::team::Team;
use crate::terminal;
use crate::watch::Watch;

/// Largest prompt that is read from standard input.
const PROMPT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How long the program waits for its tasks to come to rest.
const PATIENCE: Duration = Duration::from_secs(5);

/// Largest schema of a result.
const SCHEMA_BYTES_MAX: u64 = 1024 * 1024;

/// Give a task to a model and stream its answer to standard output.
#[derive(Debug, Args)]
#[command(after_help = "\
The task is kept in .antiphon/journal.db of this folder, or of the nearest one above it that has
one. Ctrl-C cancels it. A task that was cut off, by a crash or by kill -9, goes on with --resume.
On a terminal, what you type while it works is heard at the next safe point; /pause lets it rest.
Rules for agents are read from AGENTS.md (or CLAUDE.md) of the project and of the folders in it.

Examples:
  antiphon run \"Who are you?\"
  git diff | antiphon run --system 'Review this change.'
  antiphon run --json \"Hello\" | jq -c 'select(.type == \"status_changed\")'
  antiphon run --resume last
  antiphon run --session last \"Go on\"
  antiphon run --budget-usd 0.50 --max-turns 20 \"Fix the failing test\"
  antiphon run --agent reviewer \"Look at the last commit\"
  antiphon run --output-schema person.json \"Who wrote this?\" | jq .name
  antiphon run --model anthropic/claude-sonnet-4-5 \"Hello\"
  antiphon run --model scripted/mine --script mine.toml \"Hello\"")]
pub(crate) struct Run {
    /// What to do; read from standard input when absent or `-`.
    prompt: Option<String>,

    /// Who answers, as PROVIDER/MODEL; `ANTIPHON_MODEL`, the configured one, or `scripted/hello`, when
    /// absent.
    #[arg(long)]
    model: Option<ModelRef>,

    /// Print everything that happens, one JSON object per line (see docs/events.md).
    #[arg(long)]
    json: bool,

    /// Go on with a task that was cut off: its id, the beginning of it, or `last`.
    #[arg(long, value_name = "TASK", conflicts_with_all = [
        "prompt", "system", "session", "max_turns", "max_tokens", "max_seconds", "budget_usd",
        "output_schema", "model", "agent", "max_depth", "max_tasks", "max_fan_out", "script", "record", "replay", "retries", "save", "no_rules",
    ])]
    resume: Option<String>,

    /// Have this agent do it (see `antiphon agents list`).
    #[arg(long, value_name = "NAME", conflicts_with_all = ["system", "session"])]
    agent: Option<String>,

    /// Let agents dispatch others no deeper than this; 5 when absent.
    #[arg(long, value_name = "N")]
    max_depth: Option<NonZeroU32>,

    /// Let the task and all that it dispatches be no more tasks than this; 4096 when absent.
    #[arg(long, value_name = "N")]
    max_tasks: Option<NonZeroU32>,

    /// Let a task have no more agents at work at a time than this; 256 when absent.
    #[arg(long, value_name = "N")]
    max_fan_out: Option<NonZeroU32>,

    /// Allow what this rule covers, as `bash(git push *)`; may be given again.
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,

    /// What holds where no rule does; the configured one, or `workspace`, when absent.
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeName>,

    /// Let commands use the network.
    #[arg(long)]
    network: bool,

    /// What becomes of a call that needs somebody's word: asked on the terminal (when there is
    /// one), kept until somebody answers, or refused (when there is none).
    #[arg(long, value_name = "HOW")]
    ask: Option<Ask>,

    /// Give up after so many answers of models, those to agents it dispatches included.
    #[arg(long, value_name = "N", default_value = "1000")]
    max_turns: NonZeroU32,

    /// Give up after so many seconds.
    #[arg(long, value_name = "N")]
    max_seconds: Option<NonZeroU32>,

    /// Give up when the models have cost so much.
    #[arg(long, value_name = "USD")]
    budget_usd: Option<f64>,

    /// The longest answer wanted, in tokens.
    #[arg(long, value_name = "N")]
    max_tokens: Option<NonZeroU32>,

    /// JSON Schema of the result. It is checked, mended if need be, and printed alone.
    #[arg(long, value_name = "FILE")]
    output_schema: Option<PathBuf>,

    /// Answer from this script (see docs/scripted.md) in place of a built-in one.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,

    /// Write every exchange with the model to this file (see docs/record-replay.md).
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Answer from a recording, without asking anybody.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "script"])]
    replay: Option<PathBuf>,

    /// Try again at most this often when the model cannot answer for a reason that may pass.
    #[arg(long, value_name = "N")]
    retries: Option<usize>,

    /// The system prompt of a new conversation.
    #[arg(long, value_name = "TEXT", conflicts_with = "session")]
    system: Option<String>,

    /// Do not read AGENTS.md and CLAUDE.md.
    #[arg(long)]
    no_rules: bool,

    /// Go on with a conversation: its id, the beginning of it, `last`, or a session file, which is
    /// saved again then.
    #[arg(long, value_name = "SESSION", conflicts_with = "save")]
    session: Option<String>,

    /// Save the conversation to this session file.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

/// What agents may do where no rule says more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeName {
    /// Look, and change nothing.
    ReadOnly,
    /// Work in the project, in a sandbox.
    Workspace,
    /// Whatever the user may, without a sandbox.
    Full,
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::ReadOnly => Self::ReadOnly,
            ModeName::Workspace => Self::Workspace,
            ModeName::Full => Self::Full,
        }
    }
}

/// What becomes of a call that needs somebody's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ask {
    /// Asked on the terminal.
    Terminal,
    /// Kept until somebody answers.
    Wait,
    /// Refused, and the model is told which rule is missing.
    Refuse,
}

/// What a task goes on with.
struct Beginning {
    session_id: Option<SessionId>,
    system_prompt: String,
    before: PriorHistory,
    model: Option<ModelRef>,
}

/// What is asked for.
struct Order {
    prompt: String,
    limits: TaskLimits,
    output_schema: Option<RawJson>,
    route: Route,
}

impl Order {
    fn task(self, model: ModelRef, beginning: Beginning) -> NewTask {
        let message = UserMessage::text(self.prompt, SystemClock.now());
        NewTask {
            route: self.route.kept(),
            system_prompt: beginning.system_prompt,
            session_id: beginning.session_id,
            before: beginning.before,
            limits: self.limits,
            output_schema: self.output_schema,
            ..NewTask::new("default", model, message)
        }
    }
}

impl Run {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let started = Instant::now();
        let models = Models::new(Config::load()?);
        let prices = models.config().prices.clone();
        let project = Project::here()?;
        // Everything that can be wrong is found before anything is written.
        let order = self.order()?;
        let keyboard = self.keyboard();
        let hands = Toolset::of(&project, models.config(), &self.allowed()).await?;
        let hands = hands.asking(self.ask, keyboard.is_present());
        let servers = hands.servers.clone();
        let rules = self.rules(&project, models.config());
        let team = Team::of(&project, models.config(), &self.allowed(), &hands, &rules)?;
        let agent = self.agent.as_deref().map(|name| find_agent(&team, name)).transpose()?;
        let own_model = agent.as_ref().and_then(|agent| agent.model.clone());
        let model = self.model.clone().or(own_model);
        // A session that goes on brings its own model.
        if let Some(order) = order.as_ref().filter(|_| self.session.is_none() || model.is_some()) {
            let named = model.clone().unwrap_or_else(|| models.config().default_model());
            // Agents that it calls may have other models, which no script concerns.
            if order.route.script.is_some() && named.provider() != "scripted" {
                return Err(Failure::usage("--script goes with a `scripted/…` model"));
            }
            models.provider(&named, &order.route)?;
        }
        let default_model = models.config().default_model();
        let orchestrator = project.orchestrator(models, hands, &team)?;
        let deltas = orchestrator.deltas();
        let (task_id, after) = match (order, &self.resume) {
            (Some(order), _) => {
                let beginning = self.beginning(&orchestrator, &project, &rules).await?;
                let model = model.or(beginning.model.clone()).unwrap_or(default_model);
                let mut task = order.task(model, beginning);
                if let Some(agent) = &agent {
                    if self.model.is_none() {
                        task.fallbacks.clone_from(&agent.fallbacks);
                    }
                    task = role::taken_on(task, agent, &*team.agents, &orchestrator)
                        .map_err(Failure::usage)?;
                }
                (orchestrator.invoke(task).await?, Position(0))
            }
            (None, name) => resume(&orchestrator, name.as_deref().unwrap_or("last")).await?,
        };
        let created = orchestrator.task(&task_id).await?.created;
        tell_place(&created);
        let form = match (self.json, created.output_schema.is_some()) {
            (true, _) => Form::Json,
            (false, true) => Form::Result,
            (false, false) => Form::Text,
        };
        let screen = Screen::new(form, prices.clone());
        let (orchestrator, task_id) = (&orchestrator, &task_id);
        let watch = Watch { orchestrator, task_id, screen, keyboard, asking: None };
        let watched = watch.run(after, deltas).await;
        if watched.as_ref().is_err_and(|failure| failure.exit == Exit::Interrupted) {
            // Nobody watches any more.
            let _ = tokio::time::timeout(PATIENCE, orchestrator.cancel(task_id)).await;
        }
        orchestrator.shutdown(PATIENCE).await;
        team.disband().await;
        if let Some(servers) = servers {
            servers.shutdown(PATIENCE).await;
        }
        let state = watched?;
        outcome::account(&state, &prices, started);
        print_result(&state, form)?;
        saved::save(&state)?;
        outcome::outcome(&state)
    }

    /// What is asked for, unless it is to go on with something.
    fn order(&self) -> Result<Option<Order>, Failure> {
        if self.resume.is_some() {
            return Ok(None);
        }
        Ok(Some(Order {
            prompt: self.prompt()?,
            limits: self.limits()?,
            output_schema: self.schema()?,
            route: self.route()?,
        }))
    }

    /// Somebody at the terminal, unless the prompt comes from there or nobody is to be asked.
    fn keyboard(&self) -> Keyboard {
        let reads_prompt = matches!(self.prompt.as_deref(), Some("-") | None);
        if self.json || (reads_prompt && self.resume.is_none()) {
            return Keyboard::absent();
        }
        Keyboard::listen()
    }

    fn allowed(&self) -> Allowed {
        Allowed {
            mode: self.mode.map(Mode::from),
            rules: self.allow.clone(),
            network: self.network,
        }
    }

    fn limits(&self) -> Result<TaskLimits, Failure> {
        let cost_nano_usd_max = self.budget_usd.map(nano_usd).transpose()?;
        Ok(TaskLimits {
            turns_max: Some(self.max_turns),
            answer_tokens_max: self.max_tokens,
            cost_nano_usd_max,
            wall_clock_s_max: self.max_seconds,
            depth_max: self.max_depth,
            fan_out_max: self.max_fan_out,
            tasks_max: self.max_tasks,
            ..TaskLimits::default()
        })
    }

    fn schema(&self) -> Result<Option<RawJson>, Failure> {
        let Some(path) = &self.output_schema else { return Ok(None) };
        let refuse = |reason: String| Failure::usage(format!("{}: {reason}", path.display()));
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(|error| refuse(error.to_string()))?;
        file.take(SCHEMA_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .map_err(|error| refuse(error.to_string()))?;
        if text.len() as u64 > SCHEMA_BYTES_MAX {
            return Err(refuse(format!("it has more than {SCHEMA_BYTES_MAX} bytes")));
        }
        let schema = RawJson::parse(&text).map_err(|error| refuse(error.to_string()))?;
        antiphon_runtime::check_schema(&schema).map_err(refuse)?;
        Ok(Some(schema))
    }

    fn route(&self) -> Result<Route, Failure> {
        let session = self.session.as_deref().filter(|name| sessions::is_file(name));
        let save = session.map(PathBuf::from).or_else(|| self.save.clone());
        if let Some(save) = &self.save {
            saved::check(save)?;
        }
        let route = Route {
            script: self.script.clone(),
            record: self.record.clone(),
            replay: self.replay.clone(),
            retries: self.retries,
            save,
        };
        route.absolute()
    }

    fn rules(&self, project: &Project, config: &Config) -> Rules {
        if self.no_rules {
            return Rules::default();
        }
        Rules::find(config.path.parent(), project.root(), project.working_folder())
    }

    async fn beginning(
        &self,
        orchestrator: &Orchestrator,
        project: &Project,
        rules: &Rules,
    ) -> Result<Beginning, Failure> {
        match self.session.as_deref() {
            None => Ok(Beginning {
                session_id: None,
                system_prompt: prompt::system_prompt(self.system.as_deref(), project.root(), rules),
                before: PriorHistory::Nothing,
                model: None,
            }),
            Some(name) if sessions::is_file(name) => {
                let session = sessions::from_file(Path::new(name))?;
                Ok(Beginning {
                    session_id: Some(session.id),
                    system_prompt: session.system_prompt,
                    before: PriorHistory::Messages(session.messages),
                    model: None,
                })
            }
            Some(name) => {
                let session = sessions::find(orchestrator, name).await?;
                if !session.status.is_terminal() {
                    return Err(Failure::usage(format!(
                        "its last task has not ended: go on with `antiphon run --resume {}`",
                        session.last_task
                    )));
                }
                let last = orchestrator.task(&session.last_task).await?;
                Ok(Beginning {
                    session_id: Some(session.session_id),
                    before: PriorHistory::Task(HistoryRef {
                        task_id: session.last_task,
                        seq: last.seq,
                    }),
                    model: last.created.model,
                    system_prompt: last.created.system_prompt,
                })
            }
        }
    }

    fn prompt(&self) -> Result<String, Failure> {
        let prompt = match self.prompt.as_deref() {
            Some("-") | None => read_stdin()?,
            Some(prompt) => prompt.to_owned(),
        };
        if prompt.trim().is_empty() {
            return Err(Failure::usage("the prompt is empty: give one as an argument or on stdin"));
        }
        Ok(prompt)
    }
}

/// Says how to get at an agent that is to be sat down at.
fn tell_place(created: &antiphon_core::TaskCreated) {
    if created.runner.as_ref().is_some_and(|runner| runner.kind == "terminal") {
        let name = antiphon_core::visible(&created.agent);
        terminal::note(&format!("in a terminal: sit down with `antiphon agents attach {name}`\n"));
    }
}

/// The agent that is meant.
pub(super) fn find_agent(team: &Team, name: &str) -> Result<Arc<AgentDefinition>, Failure> {
    team.agents.find(name).ok_or_else(|| {
        let known: Vec<String> =
            team.agents.list().iter().map(|agent| agent.name.to_string()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Failure::usage(format!(
            "there is no agent `{name}`, only: {known}. Make one with `antiphon agents new {name}`"
        ))
    })
}

/// A budget in the smallest unit there is.
fn nano_usd(usd: f64) -> Result<NonZeroU64, Failure> {
    let budget = antiphon_project::nano_usd(usd).and_then(NonZeroU64::new);
    budget.ok_or_else(|| Failure::usage("--budget-usd takes an amount from 0.000000001 to 1000000"))
}

/// The result itself, where it is not the text that was shown already.
fn print_result(state: &TaskState, form: Form) -> Result<(), Failure> {
    let Some(result) = state.detail.as_ref().filter(|_| state.status == TaskStatus::Completed)
    else {
        return Ok(());
    };
    match (form, result.is_string()) {
        (Form::Json, _) | (Form::Text, true) => {}
        (Form::Text, false) | (Form::Result, _) => terminal::print(&terminal::json(result)?),
    }
    Ok(())
}

/// Takes up a task that was cut off. What it said before is not said again.
async fn resume(orchestrator: &Orchestrator, name: &str) -> Result<(TaskId, Position), Failure> {
    let task = tasks::find(orchestrator, name, TaskSelector::Unfinished).await?;
    let after = orchestrator.head().await?;
    orchestrator.resume(&task.task_id).await?;
    Ok((task.task_id, after))
}

fn read_stdin() -> Result<String, Failure> {
    if std::io::stdin().is_terminal() {
        eprintln!("antiphon: reading the prompt from the terminal, end it with Ctrl-D");
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(PROMPT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("cannot read the prompt: {error}")))?;
    if bytes.len() as u64 > PROMPT_BYTES_MAX {
        return Err(Failure::usage(format!(
            "the prompt is too long: {PROMPT_BYTES_MAX} bytes at most"
        )));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage("the prompt is not UTF-8"))
}
