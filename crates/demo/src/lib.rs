//! The offline tour: starts a server, lets a team of agents fix a small project, answers an approval,
//! steers an agent, kills the server with SIGKILL, starts it again, and checks the journal.
//!
//! No process is left when the demo ends, not after an error and not after Ctrl-C. The folder is kept,
//! unless [`FolderAtEnd::Remove`] is set.

mod error;
mod event_lines;
mod event_streams;
mod folder;
mod host;
mod journal_check;
mod keys;
mod observed;
mod output;
mod server;
mod summary;
mod test_run;
mod tour;
mod triggers;

use std::path::{Path, PathBuf};
use std::time::Duration;

use antiphon_core::{ModelRef, PriceTable};
use antiphon_view::{Colors, Tone};
use tokio::signal::unix::{SignalKind, signal};

pub use error::DemoError;
use folder::DemoFolder;
pub use host::{ConfigSource, EventStream, Host, ServerClient, StreamLost};
use journal_check::JournalCheck;
use keys::Keys;
use output::Output;
use server::Server;
use summary::Summary;
use test_run::TestRun;
use tour::{Tour, TourResult};

/// The model of the script.
const SCRIPTED: &str = "scripted/team";

/// Time to read the introduction.
const INTRODUCTION: Duration = Duration::from_millis(2500);

/// How the demo runs.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// The model of the agents; a script when absent. The caller has checked that it can be used.
    pub model: Option<ModelRef>,
    /// An empty or missing folder to work in; a new temporary one when absent.
    pub folder: Option<PathBuf>,
    /// Whether the folder is removed.
    pub folder_at_end: FolderAtEnd,
    /// Whether the demo pauses for a reader.
    pub speed: Speed,
    /// Who answers approvals.
    pub approvals: ApprovalMode,
    /// Text or JSON.
    pub format: OutputFormat,
    /// The terminal behind standard output.
    pub terminal: Terminal,
    /// The program `antiphon`, which is started as the server.
    pub program: PathBuf,
    /// A folder that must be added to `PATH` for the suggested commands to work.
    pub missing_in_path: Option<PathBuf>,
}

/// Whether the folder of the demo is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderAtEnd {
    /// It is kept, and its path printed.
    Keep,
    /// It is removed, also after an error.
    Remove,
}

/// Whether the demo pauses for a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// It pauses, and the script answers at reading speed.
    Readable,
    /// It does not.
    Fast,
}

/// Who answers approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalMode {
    /// The user, for a few seconds, if standard input and output are a terminal; then the demo.
    AskUser,
    /// The demo.
    Automatic,
}

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Text; on a terminal with the tree of tasks drawn below it.
    Text,
    /// One JSON object per line.
    Json,
}

/// The terminal behind standard output.
#[derive(Debug, Clone, Copy)]
pub struct Terminal {
    /// Whether standard output is a terminal that can move its cursor.
    pub can_draw: bool,
    /// Whether text is colored.
    pub colors: Colors,
    /// Its current columns and rows.
    pub size: fn() -> (usize, usize),
    /// Whether this process may read the terminal and change its settings.
    pub is_in_foreground: fn() -> bool,
    /// Waits until the user has pressed a key for this process. False when that cannot be waited for.
    pub wait_for_key: fn() -> bool,
}

/// The model of the agents.
#[derive(Debug)]
enum ModelChoice {
    /// The script of the demo.
    Script(ModelRef),
    /// A model of the user.
    Real(ModelRef),
}

impl ModelChoice {
    fn of(options: &DemoOptions) -> Result<Self, DemoError> {
        match &options.model {
            Some(model) => Ok(Self::Real(model.clone())),
            None => ModelRef::parse(SCRIPTED)
                .map(Self::Script)
                .map_err(|error| DemoError::failed(error.to_string())),
        }
    }

    fn is_scripted(&self) -> bool {
        matches!(self, Self::Script(_))
    }

    fn model(&self) -> &ModelRef {
        match self {
            Self::Script(model) | Self::Real(model) => model,
        }
    }
}

/// Runs the demo and writes it to standard output.
pub async fn run(options: &DemoOptions, host: &dyn Host) -> Result<(), DemoError> {
    let model = ModelChoice::of(options)?;
    let fault = |error| DemoError::failed(format!("cannot listen for signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(fault)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(fault)?;
    let folder = DemoFolder::create(options.folder.as_deref(), options.speed)?;
    let mut server = None;
    let mut output = Output::new(options.format, options.terminal);
    let demo = Demo { options, host, model: &model, folder: &folder };
    let ended = tokio::select! {
        ended = demo.run(&mut output, &mut server) => ended,
        _ = interrupt.recv() => Err(DemoError::interrupted()),
        _ = terminate.recv() => Err(DemoError::interrupted()),
    };
    // Restores the cursor of the terminal before anything else is printed.
    drop(output);
    if let Some(mut server) = server {
        server.stop().await;
    }
    match (options.folder_at_end, ended) {
        (FolderAtEnd::Remove, ended) => folder.remove().and(ended),
        (FolderAtEnd::Keep, Ok(())) => Ok(()),
        (FolderAtEnd::Keep, Err(error)) => Err(with_folder(error, &folder)),
    }
}

/// One run of the demo.
#[derive(Clone, Copy)]
struct Demo<'a> {
    options: &'a DemoOptions,
    host: &'a dyn Host,
    model: &'a ModelChoice,
    folder: &'a DemoFolder,
}

impl Demo<'_> {
    /// Leaves the server in `running_server`, so that the caller can stop it after an interrupt.
    async fn run(
        self,
        output: &mut Output,
        running_server: &mut Option<Server>,
    ) -> Result<(), DemoError> {
        let config_path = self.folder.config();
        let config = match self.model {
            ModelChoice::Script(_) => ConfigSource::File(&config_path),
            ModelChoice::Real(_) => ConfigSource::User,
        };
        let prices = &self.host.prices(config)?;
        self.introduce(output)?;
        let before = TestRun::run(self.host, &self.folder.root(), config).await;
        show_tests_before(output, &before)?;
        let server = Server::start(&self.options.program, self.folder, self.model).await?;
        let server = running_server.insert(server);
        let listens =
            format!("antiphon serve is process {} and listens on {}.", server.pid, server.url);
        output.say(Tone::Plain, &listens)?;
        if output.is_drawn() && self.options.speed == Speed::Readable {
            tokio::time::sleep(INTRODUCTION).await;
        }
        let automatic = self.options.approvals == ApprovalMode::Automatic;
        let keys = if automatic || !output.is_drawn() {
            None
        } else {
            Keys::listen(self.options.terminal)
        };
        let result = Tour { demo: self, prices, output, keys, server }.run().await?;
        if let Some(server) = running_server {
            server.stop().await;
        }
        self.finish(output, &result, config, prices).await
    }

    fn introduce(self, output: &mut Output) -> Result<(), DemoError> {
        output.heading("antiphon demo")?;
        output.say(
            Tone::Plain,
            "A lead and three agents fix a small project, and the server that runs them is killed.",
        )?;
        match self.model {
            ModelChoice::Script(_) => output.say(
                Tone::Plain,
                "The model is a script with prepared answers (project/team.toml). Everything else is \
                 real: processes, tools, sandbox, journal, kill.",
            )?,
            ModelChoice::Real(model) => output.say(
                Tone::Plain,
                &format!(
                    "The model is {model}. It decides what it does, and you pay for it. The demo says \
                     which parts of the tour it skipped."
                ),
            )?,
        }
        output.say(Tone::Faint, &format!("{}", self.folder.path().display()))?;
        output.say(Tone::Plain, "")
    }

    async fn finish(
        self,
        output: &mut Output,
        tour: &TourResult,
        config: ConfigSource<'_>,
        prices: &PriceTable,
    ) -> Result<(), DemoError> {
        let root = self.folder.root();
        let tests = &TestRun::run(self.host, &root, config).await;
        let killed_at = tour.killed.map(|kill| kill.at);
        let check = &JournalCheck::read(self.host, &root, killed_at).await?;
        Summary { demo: self, prices, tour, check, tests }.show(output)?;
        if !check.passed() {
            let message = "the journal breaks a guarantee: please report this";
            return Err(DemoError::failed(message));
        }
        match tests {
            Ok(tests) if !tests.passed => Err(DemoError::failed("the tests do not pass")),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Shows the tests of the project before the agents work on it.
fn show_tests_before(
    output: &mut Output,
    before: &Result<TestRun, String>,
) -> Result<(), DemoError> {
    match before {
        Ok(tests) => output.quote(&tests.lines())?,
        Err(reason) => {
            let text = format!(
                "There is no sandbox here, so commands are refused and the agents work without them: \
                 {reason}. `antiphon doctor` says more."
            );
            output.say(Tone::Bad, &text)?;
        }
    }
    output.say(Tone::Plain, "")
}

/// The error, and where the user can look.
fn with_folder(error: DemoError, folder: &DemoFolder) -> DemoError {
    let root = folder.root();
    let root = root.display();
    let look = |message: String| format!("{message}\nlook for yourself in {root}");
    match error {
        DemoError::Interrupted(_) => DemoError::Interrupted(format!(
            "interrupted; no process is left. The unfinished tasks are kept: `cd {root} && antiphon tasks \
             tree`"
        )),
        DemoError::Failed(message) => DemoError::Failed(look(message)),
        DemoError::Usage(message) => DemoError::Usage(look(message)),
        DemoError::Refused(message) => DemoError::Refused(look(message)),
        DemoError::Unavailable(message) => DemoError::Unavailable(look(message)),
    }
}

/// The state folder of a demo: beside the project, so that both are removed together.
pub fn state_folder(root: &Path) -> PathBuf {
    root.with_file_name("state")
}
