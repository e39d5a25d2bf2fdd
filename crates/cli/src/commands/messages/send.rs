//! `antiphon send`: an interaction for an agent's inbox. An accepted one is in the journal. A rejected one is
//! not recorded, and the reason says what to do.

mod answer;
mod at_server;
mod lines;
mod outgoing;
mod receipt;

use std::path::PathBuf;

use antiphon_core::{AgentName, SourceName};
use antiphon_process::{Connection, InboxTarget, Twice};
use antiphon_project::agent_files::{check_defined, check_problem, read_catalog};
use antiphon_project::environment::Environment;
use antiphon_project::error::ProjectError;
use antiphon_project::models::Models;
use antiphon_project::project::Project;
use clap::Args;
use outgoing::Level;
use tokio::signal::unix::{Signal, SignalKind, signal};
use uuid::Uuid;

use crate::failure::Failure;

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
}

fn interrupts() -> Result<Signal, Failure> {
    signal(SignalKind::interrupt())
        .map_err(|error| Failure::failed(format!("cannot listen for Ctrl-C: {error}")))
}
