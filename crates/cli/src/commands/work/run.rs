//! `antiphon run`: one task, from the prompt to its end.

pub(crate) mod amounts;
mod input;
mod leave;
mod model_choice;
mod piped_text;
mod process;
mod target;

pub(super) use leave::leave;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use antiphon_api::{RunStarted, RunTarget};
use antiphon_core::{ModelRef, PriceTable, RawJson, TaskId, TaskLimits, TaskStatus};
use antiphon_process::{AttachedTask, Connection, OwnTask, ProjectServer, WatchResult};
use antiphon_project::environment::Environment;
use antiphon_project::models::Route;
use antiphon_project::project::{OwnerRole, Project};
use antiphon_project::saved_session;
use antiphon_project::settings::{Theme, UserSettings};
use antiphon_project::task_process::TaskProcess;
use antiphon_runtime::TaskState;
use antiphon_view::display::escaped;
use clap::Args;
use uuid::Uuid;

use crate::commands::serve::{GRACE_S_DEFAULT, GRACE_S_MAX};
use crate::failure::{Exit, Failure};
use crate::interface::interface;
use crate::keyboard::{Keyboard, TypedAs};
use crate::outcome;
use crate::permission_args::{AskMode, PermissionArgs};
use crate::remaining_work::RemainingWork;
use crate::screen::{Screen, TranscriptFormat};
use crate::stop_signal::{StopSignal, StopSignals};
use crate::terminal;
use crate::terminal_notice::TerminalNotices;
use crate::watch::{Watch, WatchStart};

/// How long running tasks may take to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Run one task and stream its answer to standard output.
#[derive(Debug, Args)]
#[command(after_help = "\
The task is recorded in the state folder of this project (`antiphon projects show`). Ctrl-C interrupts it, a second one ends at once. Go on with --resume, also after a crash or kill -9; end it with `antiphon tasks cancel`.\nOther terminals may work in the same project meanwhile (docs/processes.md).
A file or a pipe on standard input is read to its end and appended to the prompt; `< /dev/null` leaves it out.
On a terminal, the agent reads what you type after the current step; /pause suspends the task.
Rules for agents are read from AGENTS.md (or CLAUDE.md) of the project and of the folders in it.

Examples:
  antiphon run \"Who are you?\"
  git diff | antiphon run \"Review this change.\"
  antiphon run --json \"Hello\" | jq -c 'select(.type == \"status_changed\")'
  antiphon run --resume last
  antiphon run --session last \"Go on\"
  antiphon run --budget-usd 0.50 --max-turns 20 \"Fix the failing test\"
  antiphon run --image screen.png \"What is wrong here?\"
  antiphon run --agent reviewer \"Look at the last commit\"
  antiphon run --command fix-issue 123
  antiphon run --output-schema person.json \"Who wrote this?\" | jq .name
  antiphon run --model anthropic/claude-sonnet-4-5 \"Hello\"
  antiphon run --model scripted/mine --script mine.toml \"Hello\"")]
pub(crate) struct Run {
    /// The prompt; read from standard input when absent or `-`. What is piped beside a prompt is appended to it.
    prompt: Option<String>,

    /// Arguments of the command, behind the first.
    #[arg(requires = "command", value_name = "ARGUMENT")]
    arguments: Vec<String>,

    /// Run this command of a markdown file; the prompt and what follows are its arguments (docs/import.md).
    #[arg(long, value_name = "NAME")]
    command: Option<String>,

    /// Image to send with the prompt: a PNG, JPEG, GIF or WebP file; repeatable. `@FILE` in the prompt does the same.
    #[arg(long, value_name = "FILE")]
    image: Vec<PathBuf>,

    /// Model as PROVIDER/MODEL; when absent, `ANTIPHON_MODEL`, the configured one, or the default of the provider whose key is set.
    #[arg(long)]
    model: Option<ModelRef>,

    /// Print every event as one JSON object per line (see docs/events.md).
    #[arg(long)]
    json: bool,

    /// Resume an interrupted task: its id, a prefix of it, or `last`.
    #[arg(long, value_name = "TASK", conflicts_with_all = [
        "prompt", "command", "image", "system", "session", "max_turns", "max_tokens", "max_seconds", "budget_usd",
        "output_schema", "model", "agent", "plan", "max_depth", "max_tasks", "max_fan_out", "script", "record", "replay", "retries", "save", "no_rules",
    ])]
    resume: Option<String>,

    /// Agent that works on the task (see `antiphon agents list`).
    #[arg(long, value_name = "NAME", conflicts_with_all = ["system", "session"])]
    agent: Option<String>,

    /// Most levels of tasks below this one; 5 when absent.
    #[arg(long, value_name = "N", value_parser = amounts::at_least_one)]
    max_depth: Option<NonZeroU32>,

    /// Most tasks in the whole tree; 4096 when absent.
    #[arg(long, value_name = "N", value_parser = amounts::at_least_one)]
    max_tasks: Option<NonZeroU32>,

    /// Most child tasks of a task at a time; 256 when absent.
    #[arg(long, value_name = "N", value_parser = amounts::at_least_one)]
    max_fan_out: Option<NonZeroU32>,

    #[command(flatten)]
    permissions: PermissionArgs,

    /// Only read until you have accepted the plan of the agent; then go on with the permissions of the task.
    #[arg(long)]
    plan: bool,

    /// What happens to a call that needs approval: ask on the terminal (the default on a terminal), wait
    /// for a decision (the default in the background of a shell), or refuse (the default without a terminal).
    #[arg(long, value_name = "HOW")]
    ask: Option<AskMode>,

    /// Most model calls of the task and of the tasks below it.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = amounts::at_least_one)]
    max_turns: NonZeroU32,

    /// Most seconds the task may take.
    #[arg(long, value_name = "N", value_parser = amounts::at_least_one)]
    max_seconds: Option<NonZeroU32>,

    /// Most US dollars the task may cost.
    #[arg(long, value_name = "USD", value_parser = amounts::dollars)]
    budget_usd: Option<f64>,

    /// Most tokens of one answer.
    #[arg(long, value_name = "N", value_parser = amounts::at_least_one)]
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

    /// Seconds that running commands get to finish on SIGTERM; a second signal ends at once.
    #[arg(long, value_name = "SECONDS", default_value_t = GRACE_S_DEFAULT,
          value_parser = clap::value_parser!(u64).range(0..=GRACE_S_MAX))]
    grace: u64,

    /// System prompt of a new conversation.
    #[arg(long, value_name = "TEXT", conflicts_with = "session")]
    system: Option<String>,

    /// Do not read AGENTS.md and CLAUDE.md.
    #[arg(long)]
    no_rules: bool,

    /// Continue a conversation: its id, a prefix of it, its name, `last`, or a session file, which is then saved
    /// again.
    #[arg(long, value_name = "SESSION", conflicts_with = "save")]
    session: Option<String>,

    /// Save the conversation to this session file.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

/// The validated arguments of a new task.
struct Order {
    prompt: String,
    /// The prompt with its images, if it has any.
    blocks: Option<RawJson>,
    /// The agent and the model that its command names.
    agent: Option<String>,
    model: Option<ModelRef>,
    limits: TaskLimits,
    output_schema: Option<RawJson>,
    route: Route,
}

impl Run {
    pub(crate) async fn run(
        mut self,
        environment: &Environment,
        remaining_work: &mut RemainingWork,
    ) -> Result<(), Failure> {
        let started = Instant::now();
        let project = Project::find(environment)?;
        self.session = self.session.map(|name| super::sessions::id_of_name(&project, name));
        // Every error in the arguments is found before anything is asked or recorded.
        let mut order = self.order(environment)?;
        let mut settings = project.reviewed_settings(environment)?;
        self.put_command(order.as_mut(), environment, &project, &settings)?;
        let chosen = self.choose_model(environment, &project, &settings, order.as_ref()).await?;
        let environment = chosen.as_ref().unwrap_or(environment);
        if chosen.is_some() {
            settings = project.reviewed_settings(environment)?;
        }
        let keyboard = self.keyboard();
        // In the background of a shell the user answers in another terminal.
        let has_user = keyboard.is_present() || (!self.json && terminal::is_in_background());
        let process = self.process(environment, has_user).at_providers_of(&settings);
        let (prices, theme) = (settings.prices.clone(), settings.tui.theme);
        let own = OwnTask {
            project: &project,
            environment,
            settings: Some(settings),
            role: OwnerRole::Run(process.clone()),
            interface,
        };
        let mut stop_signal = StopSignal::catch(StopSignals::Terminate)?;
        let mut attachment = AttachedTask::open(own).await?;
        let target = self.target(order, process, &attachment).await;
        let watched = match target {
            Ok(target) => {
                let shown = (keyboard, prices.clone(), theme);
                let watched =
                    self.watch(environment, &mut attachment, target, shown, &mut stop_signal);
                Box::pin(watched).await
            }
            Err(failure) => Err(failure),
        };
        let stops = watched.as_ref().is_err_and(|failure| failure.exit == Exit::Terminated);
        leave(attachment, stops, remaining_work).await;
        let (result, format) = watched?;
        outcome::account(&result, &prices, started);
        print_result(&result.state, format)?;
        saved_session::save(&result.state)?;
        outcome::outcome(&result.state)
    }

    /// The same at the server that the user named: the task has the folder, the permissions and the providers of that
    /// server.
    pub(crate) async fn run_at(
        self,
        server: &ProjectServer,
        environment: &Environment,
    ) -> Result<(), Failure> {
        let started = Instant::now();
        self.check_server_options()?;
        let mut order = self.order(environment)?;
        let settings = UserSettings::load(environment)?;
        let (prices, theme) = (settings.prices, settings.tui.theme);
        if self.command.is_some() {
            let project = Project::find(environment)?;
            let settings = project.settings(environment)?;
            self.put_command(order.as_mut(), environment, &project, &settings)?;
        }
        let keyboard = self.keyboard();
        let mut stop_signal = StopSignal::catch(StopSignals::Terminate)?;
        let mut attachment = AttachedTask::at_server(server)?;
        let target = self.target(order, TaskProcess::default(), &attachment).await?;
        let shown = (keyboard, prices.clone(), theme);
        let watched = self.watch(environment, &mut attachment, target, shown, &mut stop_signal);
        let (result, format) = Box::pin(watched).await?;
        outcome::account(&result, &prices, started);
        print_result(&result.state, format)?;
        outcome::outcome(&result.state)
    }

    /// Starts the task and shows it until it has ended or is suspended.
    async fn watch(
        &self,
        environment: &Environment,
        attachment: &mut AttachedTask<'_>,
        target: RunTarget,
        (mut keyboard, prices, theme): (Keyboard, PriceTable, Theme),
        stop_signal: &mut StopSignal,
    ) -> Result<(WatchResult, TranscriptFormat), Failure> {
        let is_new = matches!(target, RunTarget::New(_));
        let RunStarted { task_id, root, after, warnings } =
            attachment.start(target, Some(&Uuid::new_v4().to_string())).await?;
        for warning in &warnings {
            environment.warnings.report(warning);
        }
        let created = attachment.connection().reader().created(&task_id).await?;
        note_terminal(&created);
        let format = match (self.json, created.output_schema.is_some()) {
            (true, _) => TranscriptFormat::Json,
            (false, true) => TranscriptFormat::Result,
            (false, false) => TranscriptFormat::Text,
        };
        let after = if is_new { WatchStart::Creation(after) } else { WatchStart::Resumed(after) };
        let theme = (!terminal::is_dumb()).then_some(theme);
        let screen = Screen::new(format, prices, theme);
        // With `--ask wait` another command decides.
        let asks = self.ask.is_none_or(|ask| ask == AskMode::Terminal);
        let (task_id, root) = (&task_id, &root);
        let keyboard = &mut keyboard;
        let notices = TerminalNotices::of(environment);
        let watch = Watch { task_id, root, screen, keyboard, asks, notices };
        let watched = tokio::select! {
            watched = watch.run(attachment, after) => watched,
            () = stop_signal.received() => {
                self.stop(attachment.connection(), task_id).await;
                Err(Failure::terminated(task_id))
            }
        };
        // The reader of the output is gone, as after `| head -1`: the task can be resumed.
        if watched.as_ref().is_err_and(|failure| failure.exit == Exit::Interrupted) {
            if !attachment.ends_at_once {
                let interrupted = attachment.connection().interrupt(task_id);
                let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, interrupted).await;
            }
            return Err(outcome::suspended(task_id, "interrupted"));
        }
        Ok((watched?, format))
    }

    /// SIGTERM: what runs here may finish within the grace period. At another owner the task pauses.
    async fn stop(&self, connection: &Connection, task_id: &TaskId) {
        match connection {
            Connection::Local(orchestrator) => {
                orchestrator.drain(Duration::from_secs(self.grace)).await;
            }
            Connection::Server(..) => {
                let paused = connection.pause(task_id);
                let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, paused).await;
            }
        }
    }

    /// The keyboard of the terminal, unless the prompt comes from there or events are printed as JSON.
    fn keyboard(&self) -> Keyboard {
        let reads_prompt = self.reads_prompt();
        if self.json || (reads_prompt && self.resume.is_none()) {
            return Keyboard::absent();
        }
        Keyboard::listen(if terminal::is_dumb() { TypedAs::Lines } else { TypedAs::Keys })
    }
}

/// Says how to attach to an agent that runs in a terminal.
fn note_terminal(created: &antiphon_core::TaskCreated) {
    if created.runner.as_ref().is_some_and(|runner| runner.kind == "terminal") {
        let name = escaped(&created.agent);
        terminal::note(&format!("in a terminal: attach with `antiphon agents attach {name}`\n"));
    }
}

/// Prints the result itself, where the streamed text is not the result.
fn print_result(state: &TaskState, format: TranscriptFormat) -> Result<(), Failure> {
    let Some(result) = state.detail.as_ref().filter(|_| state.status == TaskStatus::Completed)
    else {
        return Ok(());
    };
    match (format, result.is_string()) {
        (TranscriptFormat::Json, _) | (TranscriptFormat::Text, true) => {}
        (TranscriptFormat::Text, false) | (TranscriptFormat::Result, _) => {
            terminal::print(&terminal::json(result)?);
        }
    }
    Ok(())
}
