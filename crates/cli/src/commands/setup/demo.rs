//! `antiphon demo`: the arguments of the offline tour, and what the tour needs of this program.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use antiphon_client::RetryPolicy;
use antiphon_core::port::{Cancel, Journal, ToolContext};
use antiphon_core::{
    ApprovalId, ApprovalReply, Decision, Event, HandlingMode, ModelRef, PriceTable, RawJson, Seq,
    TaskId, ToolExecutor as _, ToolResult,
};
use antiphon_demo::{
    ApprovalMode, ConfigSource, DemoError, DemoOptions, EventStream, FolderAtEnd, Host,
    OutputFormat, ServerClient, Speed, StreamLost, Terminal, state_folder,
};
use antiphon_permissions::PermissionMode;
use antiphon_process::ProjectServer;
use antiphon_sqlite::SqliteJournal;
use async_trait::async_trait;
use clap::Args;
use uuid::Uuid;

use crate::failure::{Exit, Failure};
use crate::terminal;
use antiphon_project::environment::Environment;
use antiphon_project::error::ProjectError;
use antiphon_project::models::Models;
use antiphon_project::models::Route;
use antiphon_project::project::Project;
use antiphon_project::settings::UserSettings;
use antiphon_project::state::STATE_VARIABLE;
use antiphon_project::toolset;

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
        if let Some(model) = &self.model {
            // Before anything is started: fails when the model cannot be used.
            Models::new(UserSettings::load(environment)?).provider(model, &Route::default())?;
        }
        let json = if self.json { OutputFormat::Json } else { OutputFormat::Text };
        let automatic = if self.yes { ApprovalMode::Automatic } else { ApprovalMode::AskUser };
        let options = DemoOptions {
            model: self.model,
            folder: self.dir,
            folder_at_end: if self.rm { FolderAtEnd::Remove } else { FolderAtEnd::Keep },
            speed: if self.fast { Speed::Fast } else { Speed::Readable },
            approvals: automatic,
            format: json,
            terminal: stdout_terminal(environment),
            // This path stays valid when the file of the program is replaced.
            program: "/proc/self/exe".into(),
            missing_in_path: missing_in_path(environment),
        };
        let host = ThisProgram { environment: environment.clone() };
        antiphon_demo::run(&options, &host).await.map_err(failure)
    }
}

fn stdout_terminal(environment: &Environment) -> Terminal {
    let dumb = environment.text("TERM").is_none_or(|term| term == "dumb");
    Terminal {
        // In the background the shell draws its prompt there.
        can_draw: std::io::stdout().is_terminal() && !dumb && terminal::is_in_foreground(),
        colors: terminal::stdout_colors(),
        size: || (terminal::width(), terminal::rows()),
        is_in_foreground: terminal::is_in_foreground,
        wait_for_key: || terminal::wait_for_line(|| ()),
    }
}

/// The folder of this program, unless the shell finds the program already.
fn missing_in_path(environment: &Environment) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let path = environment.text("PATH").unwrap_or_default();
    let has_program =
        |folder: PathBuf| folder.join("antiphon").canonicalize().is_ok_and(|found| found == own);
    if std::env::split_paths(&path).any(has_program) {
        return None;
    }
    own.parent().map(Path::to_owned)
}

/// The parts of this program that the demo uses.
struct ThisProgram {
    environment: Environment,
}

impl ThisProgram {
    fn project(&self, root: &Path) -> Result<Project, ProjectError> {
        let mut environment = self.environment.clone();
        environment.variables.insert(STATE_VARIABLE.into(), state_folder(root).into());
        Project::at(root.to_owned(), &environment)
    }

    fn settings(&self, config: ConfigSource<'_>) -> Result<UserSettings, ProjectError> {
        match config {
            ConfigSource::User => UserSettings::load(&self.environment),
            ConfigSource::File(path) => UserSettings::load_file(path, &self.environment),
        }
    }
}

#[async_trait]
impl Host for ThisProgram {
    fn prices(&self, config: ConfigSource<'_>) -> Result<PriceTable, DemoError> {
        let settings = self.settings(config).map_err(demo_error)?;
        Ok(settings.prices)
    }

    async fn connect(&self, root: &Path) -> Result<Option<Arc<dyn ServerClient>>, DemoError> {
        let project = self.project(root).map_err(demo_error)?;
        let found = ProjectServer::find(&project).await.map_err(demo_error)?;
        Ok(found.map(|server| Arc::new(Client(server)) as Arc<dyn ServerClient>))
    }

    async fn run_command(
        &self,
        root: &Path,
        config: ConfigSource<'_>,
        command: &str,
    ) -> Result<ToolResult, String> {
        let settings = self.settings(config).map_err(|error| error.to_string())?;
        let project = self.project(root).map_err(|error| error.to_string())?;
        project.prepare().map_err(|failure| failure.to_string())?;
        let shell = toolset::shell(&project, &settings, PermissionMode::Workspace, false, None)?;
        let arguments = serde_json::json!({ "command": command }).to_string();
        let arguments = RawJson::parse(&arguments).map_err(|error| error.to_string())?;
        let context = ToolContext::trial(Cancel::never());
        let task_id = context.task_id.clone();
        let result = shell.execute("bash", &arguments, context).await;
        shell.release(&task_id).await;
        result.map_err(|error| error.to_string())
    }

    fn open_journal(&self, root: &Path) -> Result<Arc<dyn Journal>, DemoError> {
        let journal = SqliteJournal::open_read_only(&self.journal_path(root));
        Ok(Arc::new(journal.map_err(|error| demo_error(error.into()))?))
    }

    fn journal_path(&self, root: &Path) -> PathBuf {
        self.project(root).map(|project| project.journal_path()).unwrap_or_default()
    }
}

/// The client of every command.
struct Client(ProjectServer);

#[async_trait]
impl ServerClient for Client {
    async fn create_task(
        &self,
        agent: &str,
        model: &ModelRef,
        prompt: &str,
    ) -> Result<TaskId, DemoError> {
        self.0.create_task(agent, model, prompt).await.map_err(demo_error)
    }

    async fn send_message(
        &self,
        task_id: &TaskId,
        text: &str,
        mode: HandlingMode,
    ) -> Result<(), DemoError> {
        let key = Uuid::new_v4().to_string();
        self.0.send_text(task_id, text, mode, &key).await.map_err(demo_error)
    }

    async fn decide(
        &self,
        approval_id: &ApprovalId,
        decision: Decision,
        comment: Option<&str>,
    ) -> Result<(), DemoError> {
        let reply = ApprovalReply { decision, comment: comment.map(str::to_owned), answer: None };
        self.0.reply(approval_id, reply).await.map_err(demo_error)
    }

    async fn events(
        &self,
        task_id: &TaskId,
        after: Seq,
    ) -> Result<Box<dyn EventStream>, StreamLost> {
        // The demo reconnects by itself: the next connection may be to the next server.
        let events = self.0.client.task_events(task_id.clone(), after, RetryPolicy::NEVER);
        Ok(Box::new(Stream(events)))
    }
}

struct Stream(antiphon_client::EventStream);

#[async_trait]
impl EventStream for Stream {
    async fn next(&mut self) -> Result<Vec<Event>, StreamLost> {
        self.0.next_batch().await.map_err(|_| StreamLost)
    }
}

fn demo_error(error: ProjectError) -> DemoError {
    match error {
        ProjectError::Failed(message) => DemoError::Failed(message),
        ProjectError::InvalidInput(message) => DemoError::Usage(message),
        ProjectError::Refused(message) => DemoError::Refused(message),
        ProjectError::Unavailable(message) | ProjectError::OwnerEnds(message) => {
            DemoError::Unavailable(message)
        }
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
