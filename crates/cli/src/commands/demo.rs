//! `antiphon demo`: the arguments of the offline tour, and what the tour needs of this program.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use antiphon_client::RetryPolicy;
use antiphon_core::port::{Cancel, Journal, ToolContext};
use antiphon_core::{
    ApprovalId, Decision, Event, HandlingMode, ModelRef, PriceTable, RawJson, Seq, TaskId,
    ToolExecutor as _, ToolResult,
};
use antiphon_demo::{
    ApprovalMode, ConfigSource, DemoError, DemoOptions, EventStream, FolderAtEnd, Host,
    OutputFormat, ServerClient, Speed, StreamLost, Terminal,
};
use antiphon_permissions::Mode;
use antiphon_sqlite::SqliteJournal;
use async_trait::async_trait;
use clap::Args;

use crate::failure::{Exit, Failure};
use crate::models::{Models, Route};
use crate::watch::Tone;
use antiphon_project::environment::Environment;
use antiphon_project::settings::UserSettings;
use ending::Ending;
use keys::Keys;
use proof::Proof;
use scratch::Scratch;
use server::Server;
use show::{Played, Show};
use trial::Trial;
use view::View;

/// See a team of agents at work, killed in the middle and resumed: offline, in half a minute.
#[derive(Debug, Args)]
#[command(after_help = "\
Starts a server in a folder of its own. A lead and three agents fix a small project there: one asks for
permission, one is steered, and the server is killed with SIGKILL and started again. Without --model the
answers come from a script; everything else is real. The folder is kept, and its path printed.

Examples:
  antiphon demo
  antiphon demo --model anthropic/claude-sonnet-4-5
  antiphon demo --fast --rm
  antiphon demo --fast --json | jq -c 'select(.type == \"summary\")'")]
#[expect(clippy::struct_excessive_bools, reason = "flags of the command line")]
pub(crate) struct Demo {
    /// The model, as PROVIDER/MODEL; a script when absent.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    model: Option<ModelRef>,

    /// The folder to work in, which must be empty or new; a temporary one when absent.
    #[arg(long, value_name = "DIR", visible_alias = "keep")]
    dir: Option<PathBuf>,

    /// Remove the folder at the end.
    #[arg(long)]
    rm: bool,

    /// Do not pause, and shorten the delays of the script.
    #[arg(long)]
    fast: bool,

    /// Answer approvals automatically.
    #[arg(long)]
    yes: bool,

    /// Print JSON: one object per line, a summary last.
    #[arg(long)]
    json: bool,
}

impl Demo {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let cast = self.cast(environment)?;
        let fault = |error| Failure::failed(format!("cannot hear signals: {error}"));
        let mut interrupt = signal(SignalKind::interrupt()).map_err(fault)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(fault)?;
        let speed = if self.fast { Speed::Fast } else { Speed::Readable };
        let scratch = Scratch::make(self.dir.as_deref(), speed)?;
        let mut server = None;
        let mut view = View::new(self.json);
        let played = tokio::select! {
            played = self.play(environment, &cast, &scratch, speed, &mut view, &mut server) => played,
            _ = interrupt.recv() => Err(Failure::interrupted()),
            _ = terminate.recv() => Err(Failure::interrupted()),
        };
        // Nothing is drawn any more, and the cursor is there again.
        drop(view);
        if let Some(mut server) = server {
            server.end().await;
        }
        match (self.keep(), played) {
            (Keep::Removed, played) => scratch.remove().and(played),
            (Keep::Kept, Ok(())) => Ok(()),
            (Keep::Kept, Err(failure)) => Err(kept(failure, &scratch)),
        }
    }

    fn cast(&self, environment: &Environment) -> Result<Cast, Failure> {
        let Some(model) = &self.model else {
            let model = ModelRef::parse(SCRIPTED);
            return model.map(Cast::Script).map_err(|error| Failure::failed(error.to_string()));
        };
        // Whether it can be asked at all is known before anything is begun.
        Models::new(UserSettings::load(environment)?).provider(model, &Route::default())?;
        Ok(Cast::Model(model.clone()))
    }

    async fn connect(&self, root: &Path) -> Result<Option<Arc<dyn ServerClient>>, DemoError> {
        let found = ProjectServer::find(&Project::at(root.to_owned())).await.map_err(demo_error)?;
        Ok(found.map(|server| Arc::new(Client(server)) as Arc<dyn ServerClient>))
    }

    async fn run_command(
        &self,
        environment: &Environment,
        cast: &Cast,
        scratch: &Scratch,
        speed: Speed,
        view: &mut View,
        place: &mut Option<Server>,
    ) -> Result<(), Failure> {
        let config = match cast {
            Cast::Script(_) => UserSettings::load_file(&scratch.config(), environment)?,
            Cast::Model(_) => UserSettings::load(environment)?,
        };
        opening(view, cast, scratch)?;
        let before = Trial::run(&scratch.project(), &config).await;
        red(view, &before)?;
        let server = place.insert(Server::start(scratch, cast).await?);
        let listens =
            format!("antiphon serve is process {} and listens on {}.", server.pid, server.url);
        view.say(Tone::Plain, &listens)?;
        if view.is_drawn() && speed == Speed::Readable {
            tokio::time::sleep(OPENING).await;
        }
        let keys = if self.yes || !view.is_drawn() { None } else { Keys::listen() };
        let prices = &config.prices;
        let played = Show { scratch, cast, speed, prices, view, keys, server }.play().await?;
        if let Some(server) = place {
            server.end().await;
        }
        self.end(cast, scratch, view, &played, &config).await
    }

    fn open_journal(&self, root: &Path) -> Result<Arc<dyn Journal>, DemoError> {
        let journal = SqliteJournal::open_read_only(&self.journal_path(root));
        Ok(Arc::new(journal.map_err(|error| demo_error(error.into()))?))
    }

    fn journal_path(&self, root: &Path) -> PathBuf {
        Project::at(root.to_owned()).journal_path()
    }
}

fn load(config: ConfigSource<'_>) -> Result<Config, Failure> {
    match config {
        ConfigSource::User => Config::load(),
        ConfigSource::File(path) => Config::alone(path),
    }
}

/// The client of every command.
struct Client(ProjectServer);

#[async_trait]
impl ServerClient for Client {
    async fn create_task(
        &self,
        cast: &Cast,
        scratch: &Scratch,
        view: &mut View,
        played: &Played,
        config: &UserSettings,
    ) -> Result<(), Failure> {
        let trial = &Trial::run(&scratch.project(), config).await;
        let killed = played.killed.map(|(killed, _)| killed);
        let proof = &Proof::read(&scratch.project(), killed).await?;
        let keep = self.keep();
        let prices = &config.prices;
        Ending { scratch, cast, keep, prices, played, proof, trial }.tell(view)?;
        if !proof.holds() {
            let message = "the journal does not say what was promised: please report this";
            return Err(Failure::failed(message));
        }
        match trial {
            Ok(trial) if !trial.passed => Err(Failure::failed("the tests do not pass")),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

struct Stream(antiphon_client::EventStream);

#[async_trait]
impl EventStream for Stream {
    async fn next(&mut self) -> Result<Vec<Event>, StreamLost> {
        self.0.next_batch().await.map_err(|_| StreamLost)
    }
}

fn demo_error(failure: Failure) -> DemoError {
    match failure.exit {
        Exit::Failed => DemoError::Failed(failure.message),
        Exit::Usage => DemoError::Usage(failure.message),
        Exit::Refused => DemoError::Refused(failure.message),
        Exit::Unavailable => DemoError::Unavailable(failure.message),
        Exit::Interrupted => DemoError::Interrupted(failure.message),
    }
}

fn failure(error: DemoError) -> Failure {
    let (exit, message) = match error {
        DemoError::Failed(message) => (Exit::Failed, message),
        DemoError::Usage(message) => (Exit::Usage, message),
        DemoError::Refused(message) => (Exit::Refused, message),
        DemoError::Unavailable(message) => (Exit::Unavailable, message),
        DemoError::Interrupted(message) => (Exit::Interrupted, message),
    };
    Failure { exit, message }
}
