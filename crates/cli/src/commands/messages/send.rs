//! `antiphon send`: an interaction for an agent's inbox. An accepted one is in the journal. A rejected one is
//! not recorded, and the reason says what to do.

mod answer;
mod at_server;
mod lines;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use antiphon_core::{
    AgentName, HandlingMode, InputBlock, InteractionContent, Provenance, RawJson, RenderMetadata,
    Salience, Sender, SourceName, Wake,
};
use antiphon_process::{
    AcceptedInteraction, Connection, InboxTarget, OutgoingInteraction, ReceiptKind,
    RejectedInteraction, SendOutcome, Twice,
};
use antiphon_project::{read_image, render_class};
use antiphon_runtime::{Arrival, REQUEST_TIMEOUT_S_MAX, SENDER_KEY_BYTES_MAX};
use antiphon_view::display::escaped_path;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use uuid::Uuid;

use crate::failure::Failure;
use crate::terminal;
use antiphon_project::agent_files::{check_defined, check_problem, read_catalog};
use antiphon_project::environment::Environment;
use antiphon_project::error::ProjectError;
use antiphon_project::models::Models;
use antiphon_project::project::Project;

/// Longest key: leaves space for a line number.
const KEY_CHARS_MAX: usize = SENDER_KEY_BYTES_MAX - 21;

/// Send a message, an event or a request to an agent's inbox (see docs/inbox.md).
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(after_help = "\
A first interaction starts an agent that was never started. `antiphon serve` runs agents; without it,
what you send waits in the journal.

Exit code 1 when an awaited request has failed, 2 when the agent or the input is invalid, 4 when the
inbox is full or no server runs, 130 when you stop waiting (Ctrl-C): the request continues.

Examples:
  antiphon send reviewer 'Look at the last commit.'
  antiphon send reviewer --steer 'Leave the tests alone.'
  antiphon send reviewer --from ci --salience urgent 'The build of main is red.'
  antiphon send reviewer --request review --params '{\"branch\": \"main\"}' --wait --timeout 5m
  tail -f build.log | antiphon send reviewer --from build --no-wake -
  antiphon send reviewer --key nightly-2026-11-15 'Good night.'     # twice is once")]
pub(crate) struct Send {
    /// Name of the agent.
    agent: AgentName,

    /// The text; `-` reads standard input, one interaction per line that is not blank. An event (--from) may have none.
    #[arg(value_name = "TEXT", required_unless_present_any = ["request", "from", "image"], conflicts_with = "request")]
    text: Vec<String>,

    /// Send an event from this source; without it, a message from you.
    #[arg(long, value_name = "SOURCE", conflicts_with = "request")]
    from: Option<SourceName>,

    /// Send an image too: a file in PNG, JPEG, GIF or WebP format. Several times for several.
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    image: Vec<PathBuf>,

    /// Deliver after the agent's current step, not with its next turn.
    #[arg(long)]
    steer: bool,

    /// How urgent it is: the agent reads the most salient first.
    #[arg(long, value_name = "LEVEL")]
    salience: Option<Level>,

    /// Progress of running work: replaces your progress that the agent has not read, and starts no turn.
    #[arg(long, conflicts_with_all = ["salience", "no_wake", "request", "steer"])]
    progress: bool,

    /// Do not start a turn for it: the agent reads it with its next turn.
    #[arg(long, conflicts_with = "wait")]
    no_wake: bool,

    /// Idempotency key: the same key again is the same interaction. With `-`, lines are numbered.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Send a request with this intent, which the agent answers.
    #[arg(long, value_name = "INTENT")]
    request: Option<String>,

    /// Parameters of the request, as JSON.
    #[arg(long, value_name = "JSON")]
    params: Option<String>,

    /// Deadline of the answer: `90s`, `10m`, `2h`; 10 minutes when absent.
    #[arg(long, value_name = "TIME")]
    timeout: Option<humantime::Duration>,

    /// Wait for the answer, and print it.
    #[arg(long)]
    wait: bool,

    /// Print JSON: the receipt, or with --wait the result. One object per line with `-`.
    #[arg(long)]
    json: bool,
}

/// How urgent an interaction is.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Level {
    Background,
    Normal,
    Important,
    Urgent,
}

impl From<Level> for Salience {
    fn from(level: Level) -> Self {
        match level {
            Level::Background => Self::Background,
            Level::Normal => Self::Normal,
            Level::Important => Self::Important,
            Level::Urgent => Self::Urgent,
        }
    }
}

impl Send {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        self.check()?;
        let project = Project::find(environment)?;
        let settings = project.settings(environment)?;
        if !project.has_journal() {
            // No journal is created for an agent that is not defined.
            check_defined(&project, &settings, &self.agent)?;
        }
        let problem = check_problem(&read_catalog(&project, &settings), self.agent.as_str());
        let open = async || {
            let models = Models::new(project.settings(environment)?);
            let connection = Connection::open_with_agents(&project, models).await?;
            match (&connection, &problem) {
                (Connection::Local(_), Err(problem)) => Err(problem.clone()),
                (Connection::Local(_) | Connection::Server(..), _) => Ok(connection),
            }
        };
        if self.text == ["-"] {
            let connection = open().await?;
            return lines::send(&self, connection.inbox()).await;
        }
        // With a key the next owner gets the same interaction when this one ends meanwhile.
        let key = self.key.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
        let outgoing = self.outgoing(self.content()?, Some(key), self.timeout_s()?);
        // From here on Ctrl-C reports that the request continues.
        let interrupts = if self.wait { Some(interrupts()?) } else { None };
        let send = async |connection: &Connection| {
            self.check_reader(connection.inbox())?;
            connection.inbox().send(&outgoing).await
        };
        let (connection, outcome) =
            Connection::at_any_owner(environment, Twice::IsOnce, open, send).await?;
        self.report(connection.inbox(), outcome, interrupts).await
    }

    fn content(&self) -> Result<InteractionContent, Failure> {
        Ok(match &self.request {
            Some(intent) => {
                let params = self.params()?;
                InteractionContent::Request { intent: intent.clone(), params }
            }
            None => {
                let images = self.image.iter().map(|file| image(file));
                let images = images.collect::<Result<Vec<_>, _>>()?;
                let blocks = Some(images).filter(|images| !images.is_empty());
                InteractionContent::Message { body: self.text.join(" "), blocks }
            }
        })
    }

    /// Checks that the request is answered while the command waits.
    fn check_reader(&self, target: InboxTarget<'_>) -> Result<(), ProjectError> {
        if self.wait && matches!(target, InboxTarget::Local(_)) {
            return Err(ProjectError::Unavailable(
                "no server runs here that could answer: start `antiphon serve` and try again, or omit --wait"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    async fn report(
        &self,
        target: InboxTarget<'_>,
        sent: SendOutcome,
        interrupts: Option<Signal>,
    ) -> Result<(), Failure> {
        match (sent, interrupts) {
            (SendOutcome::Accepted(accepted), Some(interrupts)) => {
                self.wait(target, &accepted, self.timeout_s()?, interrupts).await
            }
            (SendOutcome::Accepted(accepted), None) => self.print(target, &accepted),
            (SendOutcome::Rejected(rejected), _) => {
                if self.json {
                    terminal::print(&terminal::json(&rejection(&rejected))?);
                }
                Err(rejected.error.into())
            }
        }
    }

    /// Checks that the argument parser cannot express.
    fn check(&self) -> Result<(), Failure> {
        if self.request.is_none() && (self.wait || self.params.is_some() || self.timeout.is_some())
        {
            return Err(Failure::usage(
                "only a request is answered: --wait, --params and --timeout go with --request INTENT",
            ));
        }
        let fits = |key: &String| {
            (1..=KEY_CHARS_MAX).contains(&key.len()) && key.chars().all(|c| c.is_ascii_graphic())
        };
        if !self.key.as_ref().is_none_or(fits) {
            let message =
                format!("--key: 1 to {KEY_CHARS_MAX} characters of ASCII, without blanks");
            return Err(Failure::usage(message));
        }
        if self.text == ["-"] && !self.image.is_empty() {
            return Err(Failure::usage(
                "--image goes with a text, not with lines of standard input",
            ));
        }
        Ok(())
    }

    fn outgoing(
        &self,
        content: InteractionContent,
        key: Option<String>,
        timeout_s: Option<u32>,
    ) -> OutgoingInteraction {
        let from = self.from.clone().map_or(Sender::User, Sender::External);
        let class = render_class(&from, &content);
        let shown = |level: Level| RenderMetadata { class, salience: level.into() };
        let arrival = Arrival {
            to: self.agent.clone(),
            from,
            content,
            mode: if self.steer { HandlingMode::Steer } else { HandlingMode::Queue },
            render_metadata: if self.progress {
                Some(RenderMetadata::PROGRESS)
            } else {
                self.salience.map(shown)
            },
            wake: if self.no_wake || self.progress { Wake::No } else { Wake::Yes },
            until: None,
            key,
            payload: None,
            provenance: Provenance::Owner,
        };
        OutgoingInteraction { arrival, timeout_s }
    }

    fn params(&self) -> Result<Value, Failure> {
        let Some(text) = &self.params else { return Ok(Value::Null) };
        let wrong = |reason: String| Failure::usage(format!("--params: {reason}"));
        RawJson::parse(text).map_err(|error| wrong(error.to_string()))?;
        serde_json::from_str(text).map_err(|error| wrong(error.to_string()))
    }

    fn timeout_s(&self) -> Result<Option<u32>, Failure> {
        let Some(timeout) = self.timeout else { return Ok(None) };
        let whole = u32::try_from(timeout.as_secs()).ok().filter(|s| *s <= REQUEST_TIMEOUT_S_MAX);
        let timeout_s = whole.and_then(NonZeroU32::new).map(NonZeroU32::get);
        timeout_s.map(Some).ok_or_else(|| {
            let days = REQUEST_TIMEOUT_S_MAX / 86_400;
            Failure::usage(format!("--timeout: from 1s to {days}d"))
        })
    }

    fn print(
        &self,
        target: InboxTarget<'_>,
        accepted: &AcceptedInteraction,
    ) -> Result<(), Failure> {
        if self.json {
            terminal::print(&terminal::json(accepted)?);
            return Ok(());
        }
        let word = match accepted.receipt {
            ReceiptKind::Accepted => "accepted",
            ReceiptKind::Deduplicated => "duplicate",
        };
        terminal::print(&format!("{word}: {}; {}\n", accepted.id, self.reading(target)));
        Ok(())
    }

    /// When the agent reads it.
    fn reading(&self, target: InboxTarget<'_>) -> String {
        match target {
            InboxTarget::Local(_) => {
                format!(
                    "no server is running: `{}` reads it when `antiphon serve` runs",
                    self.agent
                )
            }
            InboxTarget::Server(_) => format!("`{}` will read it", self.agent),
        }
    }
}

fn image(file: &Path) -> Result<InputBlock, Failure> {
    let refuse = |why: &str| Failure::usage(format!("--image {}: {why}", escaped_path(file)));
    match read_image(file) {
        Ok(Some(image)) => Ok(InputBlock::Image(image)),
        Ok(None) => Err(refuse("it is no image file in PNG, JPEG, GIF or WebP format")),
        Err(why) => Err(refuse(&why)),
    }
}

fn interrupts() -> Result<Signal, Failure> {
    signal(SignalKind::interrupt())
        .map_err(|error| Failure::failed(format!("cannot listen for Ctrl-C: {error}")))
}

/// A rejection in JSON.
fn rejection(rejected: &RejectedInteraction) -> Value {
    let message = rejected.error.to_string();
    json!({ "receipt": "rejected", "reason": rejected.reason, "message": message })
}
