//! `antiphon run`: one task, from the prompt to its end.

use std::io::{IsTerminal, Read};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use antiphon_core::port::{Clock, SystemClock, TaskQuery, Which};
use antiphon_core::{ModelRef, Position, Session, TaskId, TaskLimits, UserMessage};
use antiphon_runtime::{NewTask, Orchestrator, TaskState};
use clap::Args;

use crate::config::Config;
use crate::failure::Failure;
use crate::models::Models;
use crate::project::Project;
use crate::show::{self, Form};

/// Largest prompt that is read from standard input.
const PROMPT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How long the program waits for its tasks to come to rest.
const PATIENCE: Duration = Duration::from_secs(5);

/// Give a task to a model and stream its answer to standard output.
#[derive(Debug, Args)]
#[command(after_help = "\
The task is kept in .antiphon/journal.db of this folder, or of the nearest one above it that has
one. Ctrl-C cancels it. A task that was cut off, by a crash or by kill -9, goes on with --resume.

Examples:
  antiphon run \"Who are you?\"
  git diff | antiphon run --system 'Review this change.'
  antiphon run --json \"Hello\" | jq -c 'select(.type == \"status_changed\")'
  antiphon run --resume last
  antiphon run --save talk.json \"Hello\" && antiphon run --session talk.json \"Go on\"
  antiphon run --model anthropic/claude-sonnet-4-5 \"Hello\"
  antiphon run --model scripted/mine --script mine.toml \"Hello\"")]
pub(crate) struct Run {
    /// What to do; read from standard input when absent or `-`.
    prompt: Option<String>,

    /// Who answers, as PROVIDER/MODEL; the configured one, or `scripted/hello`, when absent.
    #[arg(long, env = "ANTIPHON_MODEL")]
    model: Option<ModelRef>,

    /// Print everything that happens, one JSON object per line (see docs/events.md).
    #[arg(long)]
    json: bool,

    /// Go on with a task that was cut off: its id, or `last`.
    #[arg(long, value_name = "TASK", conflicts_with_all = ["prompt", "system", "session", "max_turns", "max_tokens"])]
    resume: Option<String>,

    /// Give up after so many answers of the model.
    #[arg(long, value_name = "N", default_value = "200")]
    max_turns: NonZeroU32,

    /// The longest answer wanted, in tokens.
    #[arg(long, value_name = "N")]
    max_tokens: Option<NonZeroU32>,

    /// Answer from this script (see docs/scripted.md) in place of a built-in one.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,

    /// Write every exchange with the model to this file (see docs/record-replay.md).
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Answer from a recording, without asking anybody.
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    replay: Option<PathBuf>,

    /// Try again at most this often when the model cannot answer for a reason that may pass.
    #[arg(long, value_name = "N")]
    retries: Option<usize>,

    /// The system prompt of a new conversation.
    #[arg(long, value_name = "TEXT", conflicts_with = "session")]
    system: Option<String>,

    /// Go on with the conversation in this session file, and save it there.
    #[arg(long, value_name = "FILE", conflicts_with = "save")]
    session: Option<PathBuf>,

    /// Save the conversation to this session file.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

impl Run {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let models = Models::new(Config::load()?)
            .with_script(self.script.clone())
            .with_retries(self.retries)
            .with_recording(self.record.clone(), self.replay.clone());
        let prices = models.config().prices.clone();
        let started = Instant::now();
        let new_task = match &self.resume {
            Some(_) => None,
            None => Some(self.new_task(&models)?),
        };
        let orchestrator = Project::here()?.orchestrator(models)?;
        let deltas = orchestrator.deltas();
        let (task_id, after) = match (new_task, &self.resume) {
            (Some(task), _) => (orchestrator.invoke(task).await?, Position(0)),
            (None, name) => resume(&orchestrator, name.as_deref().unwrap_or("last")).await?,
        };
        let form = if self.json { Form::Json } else { Form::Text };
        let state = show::watch(&orchestrator, &task_id, after, deltas, form).await?;
        orchestrator.shutdown(PATIENCE).await;
        show::account(&state, &prices, started);
        self.save(&state)?;
        show::outcome(&state)
    }

    fn new_task(&self, models: &Models) -> Result<NewTask, Failure> {
        let model = self.model.clone().unwrap_or_else(|| models.config().default_model());
        // Before anything is written: a model nobody can ask is a mistake, not a task.
        models.provider(&model)?;
        self.check_save()?;
        let session = match &self.session {
            Some(path) => Some(
                antiphon_session_file::load(path)
                    .map_err(|error| Failure::usage(error.to_string()))?,
            ),
            None => None,
        };
        let (session_id, system_prompt, history) = match session {
            Some(session) => (Some(session.id), session.system_prompt, session.messages),
            None => (None, self.system.clone().unwrap_or_default(), Vec::new()),
        };
        Ok(NewTask {
            agent: "default".to_owned(),
            model,
            system_prompt,
            session_id,
            history,
            message: UserMessage::text(self.prompt()?, SystemClock.now()),
            limits: TaskLimits {
                turns_max: Some(self.max_turns),
                answer_tokens_max: self.max_tokens,
                ..TaskLimits::default()
            },
            key: None,
        })
    }

    /// Only a session file is replaced by one; anything else there is somebody's own.
    fn check_save(&self) -> Result<(), Failure> {
        let Some(path) = &self.save else { return Ok(()) };
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Ok(about) if about.is_file() && antiphon_session_file::load(path).is_ok() => Ok(()),
            Ok(_) => Err(Failure::usage(format!(
                "{} is there and is no session file: name another file to save to",
                path.display()
            ))),
            Err(error) => Err(Failure::usage(format!("cannot use {}: {error}", path.display()))),
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

    /// The conversation as a session file, also when it broke off.
    fn save(&self, state: &TaskState) -> Result<(), Failure> {
        let Some(path) = self.session.as_ref().or(self.save.as_ref()) else { return Ok(()) };
        let now = SystemClock.now();
        let created_at = state.messages.first().map_or(now, antiphon_core::Message::timestamp);
        let session = Session {
            id: state.created.session_id.clone(),
            system_prompt: state.created.system_prompt.clone(),
            created_at,
            updated_at: now,
            messages: state.messages.clone(),
        };
        antiphon_session_file::save(path, &session).map_err(|e| Failure::failed(e.to_string()))
    }
}

/// Takes up a task that was cut off. What it said before is not said again.
async fn resume(orchestrator: &Orchestrator, name: &str) -> Result<(TaskId, Position), Failure> {
    let task_id = if name == "last" {
        let query = TaskQuery { which: Which::Unfinished, limit: NonZeroUsize::MIN };
        let tasks = orchestrator.tasks(query).await?;
        let none = || Failure::usage("there is nothing to resume: every task here has ended");
        tasks.into_iter().next().ok_or_else(none)?
    } else {
        TaskId::parse(name).map_err(|error| Failure::usage(format!("`{name}`: {error}")))?
    };
    let after = orchestrator.head().await?;
    orchestrator.resume(&task_id).await?;
    Ok((task_id, after))
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
