//! `antiphon run`: one task, from the prompt to its end.

mod input;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_core::port::{Agents, Clock, SystemClock, TaskSelector};
use antiphon_core::{
    AgentDefinition, AgentName, ModelRef, Position, RawJson, TaskId, TaskLimits, TaskStatus,
    UserMessage,
};
use antiphon_permissions::Mode;
use antiphon_project::environment::Environment;
use antiphon_project::models::{Models, Route};
use antiphon_project::project::Project;
use antiphon_project::project_agents::ProjectAgents;
use antiphon_project::prompt::Rules;
use antiphon_project::saved_session;
use antiphon_project::settings::UserSettings;
use antiphon_project::task_builder::{Conversation, SystemPrompt, TaskBuilder, TaskSpec};
use antiphon_project::task_lookup::find_task;
use antiphon_project::toolset::{PermissionOverrides, Toolset};
use antiphon_project::unknown_agent;
use antiphon_runtime::{ApprovalPolicy, Orchestrator, TaskState};
use clap::{Args, ValueEnum};

use super::sessions;
use crate::failure::{Exit, Failure};
use crate::keyboard::Keyboard;
use crate::outcome;
use crate::screen::{Form, Screen};
use crate::terminal;
use crate::watch::Watch;

/// How long running tasks may take to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Run one task and stream its answer to standard output.
#[derive(Debug, Args)]
#[command(after_help = "\
The task is recorded in .antiphon/journal.db of this folder, or of the nearest folder above with an
.antiphon. Ctrl-C cancels it. Continue a task that was interrupted by a crash or kill -9 with --resume.
On a terminal, the agent reads what you type after the current step; /pause suspends the task.
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
    /// The prompt; read from standard input when absent or `-`.
    prompt: Option<String>,

    /// Model as PROVIDER/MODEL; when absent, `ANTIPHON_MODEL`, the configured one, or `scripted/hello`.
    #[arg(long)]
    model: Option<ModelRef>,

    /// Print every event as one JSON object per line (see docs/events.md).
    #[arg(long)]
    json: bool,

    /// Resume an interrupted task: its id, a prefix of it, or `last`.
    #[arg(long, value_name = "TASK", conflicts_with_all = [
        "prompt", "system", "session", "max_turns", "max_tokens", "max_seconds", "budget_usd",
        "output_schema", "model", "agent", "max_depth", "max_tasks", "max_fan_out", "script", "record", "replay", "retries", "save", "no_rules",
    ])]
    resume: Option<String>,

    /// Agent that works on the task (see `antiphon agents list`).
    #[arg(long, value_name = "NAME", conflicts_with_all = ["system", "session"])]
    agent: Option<String>,

    /// Most levels of tasks below this one; 5 when absent.
    #[arg(long, value_name = "N")]
    max_depth: Option<NonZeroU32>,

    /// Most tasks in the whole tree; 4096 when absent.
    #[arg(long, value_name = "N")]
    max_tasks: Option<NonZeroU32>,

    /// Most child tasks of a task at a time; 256 when absent.
    #[arg(long, value_name = "N")]
    max_fan_out: Option<NonZeroU32>,

    /// Allow calls that this rule covers, such as `bash(git push *)`; repeatable.
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,

    /// Permission mode where no rule applies; the configured one, or `workspace`, when absent.
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeName>,

    /// Allow commands to use the whole network; `--allow 'network(HOST)'` allows single hosts.
    #[arg(long)]
    network: bool,

    /// What happens to a call that needs approval: ask on the terminal (the default on a terminal), wait
    /// for a decision, or refuse (the default without a terminal).
    #[arg(long, value_name = "HOW")]
    ask: Option<Ask>,

    /// Most model calls of the task and of the tasks below it.
    #[arg(long, value_name = "N", default_value = "1000")]
    max_turns: NonZeroU32,

    /// Most seconds the task may take.
    #[arg(long, value_name = "N")]
    max_seconds: Option<NonZeroU32>,

    /// Most US dollars the task may cost.
    #[arg(long, value_name = "USD")]
    budget_usd: Option<f64>,

    /// Most tokens of one answer.
    #[arg(long, value_name = "N")]
    max_tokens: Option<NonZeroU32>,

    /// JSON Schema of the result. The result is checked against it, and only the result is printed.
    #[arg(long, value_name = "FILE")]
    output_schema: Option<PathBuf>,

    /// Script that answers in place of a built-in one (see docs/scripted.md).
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,

    /// Record every exchange with the model to this file (see docs/record-replay.md).
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Answer from a recording, without a model.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "script"])]
    replay: Option<PathBuf>,

    /// Most retries after a temporary failure of the model.
    #[arg(long, value_name = "N")]
    retries: Option<usize>,

    /// System prompt of a new conversation.
    #[arg(long, value_name = "TEXT", conflicts_with = "session")]
    system: Option<String>,

    /// Do not read AGENTS.md and CLAUDE.md.
    #[arg(long)]
    no_rules: bool,

    /// Continue a conversation: its id, a prefix of it, `last`, or a session file, which is then saved
    /// again.
    #[arg(long, value_name = "SESSION", conflicts_with = "save")]
    session: Option<String>,

    /// Save the conversation to this session file.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

/// Permission mode where no rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeName {
    /// Read, and change nothing.
    ReadOnly,
    /// Work in the project, in a sandbox.
    Workspace,
    /// Everything the user may do, without a sandbox.
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

/// What happens to a call that needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ask {
    /// Ask on the terminal.
    Terminal,
    /// Wait until it is decided.
    Wait,
    /// Refuse it, and tell the model which rule is missing.
    Refuse,
}

/// The validated arguments of a new task.
struct Order {
    prompt: String,
    limits: TaskLimits,
    output_schema: Option<RawJson>,
    route: Route,
}

/// What a new task of this command is built with.
struct Context<'a> {
    orchestrator: &'a Orchestrator,
    project: &'a Project,
    project_agents: &'a ProjectAgents,
    rules: &'a Rules,
    default_model: &'a ModelRef,
}

impl Run {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let started = Instant::now();
        let models = Models::new(UserSettings::load(environment)?);
        let prices = models.settings().prices.clone();
        let project = Project::find(environment)?;
        // Every error in the arguments is found before anything is recorded.
        let order = self.order(environment)?;
        let keyboard = self.keyboard();
        let overrides = self.overrides();
        let toolset = Toolset::of(&project, models.settings(), &overrides).await?;
        let toolset = toolset.with_approvals(self.approvals(keyboard.is_present()));
        let mcp = toolset.mcp.clone();
        let rules = self.rules(&project, models.settings());
        let project_agents =
            ProjectAgents::of(&project, models.settings(), &overrides, &toolset, &rules)?;
        let agent =
            self.agent.as_deref().map(|name| find_agent(&project_agents, name)).transpose()?;
        if let Some(order) = &order {
            self.check_model(order, agent.as_deref(), &models)?;
        }
        let default_model = &models.settings().default_model();
        let orchestrator = project.orchestrator(models, toolset, &project_agents)?;
        let deltas = orchestrator.deltas();
        let (task_id, after) = match order {
            Some(order) => {
                let (orchestrator, project) = (&orchestrator, &project);
                let (project_agents, rules) = (&project_agents, &rules);
                let context =
                    Context { orchestrator, project, project_agents, rules, default_model };
                (self.create(order, agent, &context).await?, Position(0))
            }
            None => resume(&orchestrator, self.resume.as_deref().unwrap_or("last")).await?,
        };
        let created = orchestrator.task(&task_id).await?.created;
        note_terminal(&created);
        let form = match (self.json, created.output_schema.is_some()) {
            (true, _) => Form::Json,
            (false, true) => Form::Result,
            (false, false) => Form::Text,
        };
        let screen = Screen::new(form, prices.clone());
        let (orchestrator, task_id) = (&orchestrator, &task_id);
        // With `--ask wait` another command decides.
        let asks = self.ask.is_none_or(|ask| ask == Ask::Terminal);
        let watch = Watch { orchestrator, task_id, screen, keyboard, asks, asking: None };
        let watched = watch.run(after, deltas).await;
        if watched.as_ref().is_err_and(|failure| failure.exit == Exit::Interrupted) {
            let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, orchestrator.cancel(task_id)).await;
        }
        orchestrator.shutdown(SHUTDOWN_TIMEOUT).await;
        project_agents.shutdown().await;
        if let Some(mcp) = mcp {
            mcp.shutdown(SHUTDOWN_TIMEOUT).await;
        }
        let state = watched?;
        outcome::account(&state, &prices, started);
        print_result(&state, form)?;
        saved_session::save(&state)?;
        outcome::outcome(&state)
    }

    /// Checks that the model can be reached. A session without `--model` brings its own model, which the
    /// orchestrator checks.
    fn check_model(
        &self,
        order: &Order,
        agent: Option<&AgentDefinition>,
        models: &Models,
    ) -> Result<(), Failure> {
        let model = self.model.clone().or_else(|| agent.and_then(|agent| agent.model.clone()));
        if self.session.is_some() && model.is_none() {
            return Ok(());
        }
        let model = model.unwrap_or_else(|| models.settings().default_model());
        // Agents that the task calls may have other models, which the script does not concern.
        if order.route.script.is_some() && model.provider() != "scripted" {
            return Err(Failure::usage("--script goes with a `scripted/…` model"));
        }
        models.provider(&model, &order.route)?;
        Ok(())
    }

    /// Creates the task, and starts it.
    async fn create(
        &self,
        order: Order,
        agent: Option<Arc<AgentDefinition>>,
        context: &Context<'_>,
    ) -> Result<TaskId, Failure> {
        let conversation = self.conversation(context.orchestrator).await?;
        let system_prompt = match (&self.system, &conversation.system_prompt) {
            (_, Some(recorded)) => SystemPrompt::Recorded(recorded.clone()),
            (Some(text), None) => SystemPrompt::Text(text.clone()),
            (None, None) => SystemPrompt::Default,
        };
        let spec = TaskSpec {
            agent,
            model: self.model.clone(),
            conversation,
            system_prompt,
            limits: order.limits,
            output_schema: order.output_schema,
            route: order.route,
            ..TaskSpec::new(UserMessage::text(order.prompt, SystemClock.now()))
        };
        let builder = TaskBuilder {
            orchestrator: context.orchestrator,
            agents: &*context.project_agents.agents,
            default_model: context.default_model,
            root: context.project.root(),
            rules: context.rules,
        };
        Ok(context.orchestrator.invoke(builder.build(spec)?).await?.task_id)
    }

    /// The conversation that the task continues.
    async fn conversation(&self, orchestrator: &Orchestrator) -> Result<Conversation, Failure> {
        let Some(name) = self.session.as_deref() else { return Ok(Conversation::default()) };
        if sessions::is_file(name) {
            return Ok(Conversation::of_session(sessions::from_file(Path::new(name))?));
        }
        let session = sessions::find(orchestrator, name).await?;
        if !session.status.is_terminal() {
            return Err(Failure::usage(format!(
                "its last task has not ended: resume it with `antiphon run --resume {}`",
                session.last_task
            )));
        }
        let last = (session.session_id, session.last_task);
        Ok(Conversation::after_task(orchestrator, last.0, last.1).await?)
    }

    /// The keyboard of the terminal, unless the prompt comes from there or events are printed as JSON.
    fn keyboard(&self) -> Keyboard {
        let reads_prompt = matches!(self.prompt.as_deref(), Some("-") | None);
        if self.json || (reads_prompt && self.resume.is_none()) {
            return Keyboard::absent();
        }
        Keyboard::listen()
    }

    fn approvals(&self, has_terminal: bool) -> ApprovalPolicy {
        let default = if has_terminal { Ask::Terminal } else { Ask::Refuse };
        match self.ask.unwrap_or(default) {
            Ask::Terminal | Ask::Wait => ApprovalPolicy::Wait { timeout: None },
            Ask::Refuse => ApprovalPolicy::Refuse,
        }
    }

    fn overrides(&self) -> PermissionOverrides {
        PermissionOverrides {
            mode: self.mode.map(Mode::from),
            rules: self.allow.clone(),
            network: self.network,
        }
    }

    fn rules(&self, project: &Project, settings: &UserSettings) -> Rules {
        if self.no_rules { Rules::default() } else { project.rules(settings) }
    }
}

/// Says how to attach to an agent that runs in a terminal.
fn note_terminal(created: &antiphon_core::TaskCreated) {
    if created.runner.as_ref().is_some_and(|runner| runner.kind == "terminal") {
        let name = antiphon_core::visible(&created.agent);
        terminal::note(&format!("in a terminal: attach with `antiphon agents attach {name}`\n"));
    }
}

fn find_agent(project_agents: &ProjectAgents, name: &str) -> Result<Arc<AgentDefinition>, Failure> {
    project_agents.agents.find(name).ok_or_else(|| {
        let known: Vec<AgentName> =
            project_agents.agents.list().iter().map(|agent| agent.name.clone()).collect();
        unknown_agent(name, &known).into()
    })
}

/// Prints the result itself, where the streamed text is not the result.
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

/// Resumes an interrupted task. What was printed before is not printed again.
async fn resume(orchestrator: &Orchestrator, name: &str) -> Result<(TaskId, Position), Failure> {
    let task = find_task(orchestrator, name, TaskSelector::Unfinished).await?;
    let after = orchestrator.head().await?;
    orchestrator.resume(&task.task_id).await?;
    Ok((task.task_id, after))
}
