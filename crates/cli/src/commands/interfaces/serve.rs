//! `antiphon serve`: the orchestrator behind its HTTP interfaces, until a signal stops it.

mod a2a;
mod background_services;
mod listening;
mod open_file_limit;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use antiphon_a2a_api::A2a;
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_http::Webhooks;
use antiphon_interface_transport::{
    ExposedAgents, Interface, ServerConfig, ServerDeps, ServerLimits, serve, serve_waiting,
};
use antiphon_mcp_server::McpServer;
use antiphon_permissions::PermissionMode;
use antiphon_process::{Ownership, Reservation, SocketFile, keys, token};
use antiphon_project::control_orders::{Execution, ProjectOrders, REQUEST_FOLDERS};
use antiphon_project::environment::Environment;
use antiphon_project::error::ProjectError;
use antiphon_project::live_agents;
use antiphon_project::project::{OwnerRole, Project, ProjectOwner};
use antiphon_project::server_files::{ServerAddress, ServerFiles};
use antiphon_project::settings::UserSettings;
use antiphon_project::task_process::TaskProcess;
use antiphon_project::telemetry_follower::TelemetryFollower;
use antiphon_runtime::{Orchestrator, is_resident};
use antiphon_sqlite::SqliteJournal;
use antiphon_telemetry::{Metrics, Telemetry, Traces};
use clap::Args;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::commands::run::ModeName;
use crate::failure::Failure;
use crate::log::LogFormat;
use crate::stop_signal::{StopSignal, StopSignals};
use crate::terminal;
use background_services::{BackgroundServices, ServiceDeps};
use listening::{Listening, OpenAddress, Opened};
use open_file_limit::{ConnectionLimit, raise_file_limit};

/// Largest value of `--connections-max`.
const CONNECTIONS_MAX: i64 = 1_000_000;

/// Default of `--grace`.
pub(crate) const GRACE_S_DEFAULT: u64 = 10;

/// Largest value of `--grace`.
pub(crate) const GRACE_S_MAX: u64 = 3600;

/// How often a server checks its journal while nothing is recorded.
const STORAGE_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Most unfinished tasks that a server counts when it stops.
const UNFINISHED_MAX: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// How long counting them may delay the end.
const COUNT_TIMEOUT: Duration = Duration::from_secs(1);

/// Pause before another owner is asked again for the journal.
const HAND_OVER_PAUSE: Duration = Duration::from_millis(20);

/// Pause between two attempts to write the file that commands find the server by.
const PUBLISH_PAUSE: Duration = Duration::from_secs(1);

/// Serve this project over HTTP (see docs/server.md).
#[derive(Debug, Args)]
#[command(after_help = "\
The server runs the tasks of this project, interrupted ones first, until Ctrl-C or SIGTERM. Then it
refuses new work, and commands that run get --grace seconds to finish and be recorded; the next
`antiphon serve` continues the tasks. A call
that needs approval waits for a decision: `POST /v1/approvals/ID`. Every request needs the token
that `antiphon token` prints, or a key (`antiphon keys new`); events of your [webhooks.SOURCE] are
signed instead (docs/webhooks.md). It also listens on a socket in the project's state folder.

The server runs live agents (docs/inbox.md) and your schedules (docs/schedules.md), and carries out
requests that are dropped as files in .antiphon/requests (docs/file-drop.md). Metrics are at /metrics
(docs/metrics.md); ANTIPHON_LOG=info logs more on standard error.

Examples:
  antiphon serve
  antiphon serve --listen 127.0.0.1:0
  antiphon serve --listen unix
  antiphon serve --listen 0.0.0.0:7117 --tls-cert cert.pem --tls-key key.pem --allow-host box.example
  antiphon serve --connections-max 20000
  antiphon serve --grace 60
  curl -H \"Authorization: Bearer $(antiphon token)\" http://127.0.0.1:7117/v1/tasks")]
pub(crate) struct Serve {
    #[command(flatten)]
    listening: Listening,

    /// Host name that clients may use, as HOST or HOST:PORT; repeatable.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,

    /// Most connections at a time, 4096 when absent; further connections wait.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=CONNECTIONS_MAX))]
    connections_max: Option<u32>,

    /// Allow calls that this rule covers, such as `bash(git push *)`; repeatable.
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,

    /// Permission mode where no rule applies; the configured one, or `workspace`, when absent.
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeName>,

    /// Allow commands to use the whole network; `--allow 'network(HOST)'` allows single hosts.
    #[arg(long)]
    network: bool,

    /// Seconds that running commands get to finish on Ctrl-C or SIGTERM; a second signal ends at once.
    #[arg(long, value_name = "SECONDS", default_value_t = GRACE_S_DEFAULT,
          value_parser = clap::value_parser!(u64).range(0..=GRACE_S_MAX))]
    grace: u64,

    /// Stop when the parent process ends.
    #[arg(long, hide = true)]
    end_with_parent: bool,

    /// Format of the log on standard error.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

impl Serve {
    pub(crate) fn log_format(&self) -> LogFormat {
        self.log_format
    }

    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        self.listening.check()?;
        self.tie_to_parent()?;
        let limits = self.limits()?;
        let project = Project::find(environment)?;
        let settings = project.reviewed_settings(environment)?;
        let telemetry = telemetry(&settings)?;
        project.prepare_requests()?;
        let schedules = settings.schedules.clone();
        let terminals = settings.terminals.keys().cloned().collect();
        let webhooks = Webhooks::of_settings(&settings.webhooks, environment)?;
        let a2a_settings = settings.a2a.clone();
        let agents = settings.mcp_server.agents.as_ref();
        let mcp = McpServer::new(ExposedAgents::of_setting(agents));
        let chat_agents = ExposedAgents::of_setting(settings.chat.agents.as_ref());
        let (journal, address) = self.journal(&project, limits).await?;
        let a2a = a2a::a2a(&a2a_settings, project.state(), address.url.as_deref())?;
        let role = OwnerRole::Server(self.process());
        let owner = ProjectOwner::open(&project, environment, settings, journal, role)?;
        let orchestrator = owner.orchestrator.clone();
        let keys = Some(keys(&project)?);
        let server_files = ServerFiles::new(project.state());
        let token = token(&server_files)?;
        owner.own.secrets.add(token.secret());
        owner.environments.add_secret(token.secret());
        let deps = ServerDeps {
            orchestrator: orchestrator.clone(),
            task_factory: Arc::clone(&owner.tasks) as _,
            token,
            hosts: self.allow_host.clone(),
            limits,
        };
        let orders = ProjectOrders {
            orchestrator: orchestrator.clone(),
            tasks: Arc::clone(&owner.tasks),
            files: owner.files.clone(),
            terminals,
            execution: Execution::Running,
        };
        let services = ServiceDeps {
            orchestrator: orchestrator.clone(),
            orders: Arc::new(orders),
            request_drop: project.request_drop().clone(),
            root: project.root().to_owned(),
            trust: project.trust(),
            state: project.state().to_owned(),
            schedules,
            removed: owner.own.take_removed(),
        };
        let follower = TelemetryFollower::start(&orchestrator, &telemetry).await?;
        let (telemetry, interface) = (Some(telemetry), interface(webhooks, &a2a, &mcp));
        let server = ServerConfig { deps, keys, telemetry, chat_agents, interface };
        a2a.resume_push(&orchestrator);
        let ended = self.serve((server, address), &server_files, services).await;
        server_files.unpublish();
        a2a.shutdown().await;
        follower.shutdown().await;
        owner.shutdown().await;
        ended
    }

    /// The journal of the project, and the address of this server. A process that runs a task gives the journal to
    /// this server when the calls that run are recorded, and goes on as its client. Until then requests are answered
    /// with what this server waits for.
    async fn journal(
        &self,
        project: &Project,
        limits: ServerLimits,
    ) -> Result<(SqliteJournal, OpenAddress), Failure> {
        let running = || Failure::unavailable("another `antiphon serve` starts here: use it");
        let reservation = Reservation::new(project).await?.ok_or_else(running)?;
        if let Some(journal) = ask_for_journal(project, &reservation).await? {
            return Ok((journal, self.listening.open_address().await?));
        }
        let address = self.listening.open_address().await?;
        let place = address
            .url
            .as_ref()
            .map_or(String::new(), |url| format!("; {url} answers 503 until then"));
        terminal::note(&format!(
            "antiphon: another process runs tasks here; this server takes over when the calls that run now are \
             recorded{place}\n"
        ));
        let taken = async {
            loop {
                tokio::time::sleep(HAND_OVER_PAUSE).await;
                if let Some(journal) = ask_for_journal(project, &reservation).await? {
                    return Ok::<_, Failure>(journal);
                }
            }
        };
        let journal = serve_waiting(&address.listeners, limits, taken).await?;
        Ok((journal, address))
    }

    fn tie_to_parent(&self) -> Result<(), Failure> {
        if !self.end_with_parent {
            return Ok(());
        }
        let refuse = |error| Failure::failed(format!("cannot follow the parent process: {error}"));
        set_parent_process_death_signal(Some(Signal::TERM)).map_err(refuse)
    }

    /// Limits of the server. Raises the limit of open files for its connections.
    fn limits(&self) -> Result<ServerLimits, Failure> {
        let limits = ServerLimits::default();
        let (connections_max, limit) = match self.connections_max {
            Some(connections) => {
                (usize::try_from(connections).unwrap_or(usize::MAX), ConnectionLimit::Requested)
            }
            None => (limits.connections_max, ConnectionLimit::Default),
        };
        raise_file_limit(connections_max as u64, limit)?;
        Ok(ServerLimits { connections_max, ..limits })
    }

    /// What tasks work with that are created through this server.
    fn process(&self) -> TaskProcess {
        TaskProcess {
            mode: self.mode.map(PermissionMode::from),
            allow: self.allow.clone(),
            network: self.network,
            ..TaskProcess::default()
        }
    }

    async fn serve(
        &self,
        (server, address): (ServerConfig, OpenAddress),
        server_files: &ServerFiles,
        deps: ServiceDeps,
    ) -> Result<(), Failure> {
        let mut stop_signal = StopSignal::catch(StopSignals::TerminateAndInterrupt)?;
        let opened = Listening::open(address, server_files.folder())?;
        let orchestrator = &server.deps.orchestrator;
        let recovered = orchestrator.recover().await?;
        let live = live_agents(orchestrator).await?;
        let schedules = deps.schedules.iter().count();
        // Live agents are idle, not interrupted.
        let resumed = recovered.begun.iter().filter(|task_id| !live.contains_key(task_id)).count();
        let services = BackgroundServices::start(deps)?;
        let waiting = orchestrator.clone();
        let Opened { listeners, url, socket } = opened;
        let address =
            ServerAddress { url: url.as_deref(), socket: socket.as_ref().map(SocketFile::path) };
        let publishing = publish_again(server_files, address, server_files.publish(address).err());
        announce(address, &StartCounts { resumed, live: live.len(), schedules });
        // The services accept nothing new from then on.
        let stopped = async {
            tokio::select! {
                () = stop_signal.received() => {}
                () = watch_storage(&waiting) => {}
            }
            // New work is refused from now on.
            waiting.drain(Duration::ZERO).await;
            services.stop();
            terminal::print(&stopping(&waiting).await);
            // Requests are answered meanwhile: new work with 503.
            waiting.drain(Duration::from_secs(self.grace)).await;
        };
        let refuse = |error| Failure::unavailable(format!("cannot listen: {error}"));
        let ended = tokio::select! {
            ended = serve(listeners, server, stopped) => ended.map_err(refuse),
            () = publishing => Ok(()),
        };
        services.shutdown().await;
        ended
    }
}

/// Writes the file that commands find the server by until that succeeds, after it failed: the disk may be full. Does
/// not return.
async fn publish_again(
    server_files: &ServerFiles,
    address: ServerAddress<'_>,
    mut failed: Option<ProjectError>,
) {
    if let Some(error) = &failed {
        terminal::note(&format!(
            "{error}: other commands find this server once it can be written\n"
        ));
    }
    while failed.is_some() {
        tokio::time::sleep(PUBLISH_PAUSE).await;
        failed = server_files.publish(address).err();
    }
    std::future::pending::<()>().await;
}

/// Metrics and traces, with an exporter if the user has configured one.
fn telemetry(settings: &UserSettings) -> Result<Telemetry, Failure> {
    Ok(Telemetry {
        metrics: Metrics::with_prices(settings.prices.clone()),
        traces: Traces::new(),
        exporter: settings.telemetry.exporter(&settings.environment)?,
    })
}

/// Counts that the start of a server reports.
struct StartCounts {
    /// Interrupted tasks that it resumes.
    resumed: usize,
    /// Live agents.
    live: usize,
    schedules: usize,
}

/// Checks the journal every few seconds, so that the user learns of a fault also while nothing happens.
async fn watch_storage(orchestrator: &Orchestrator) {
    loop {
        tokio::time::sleep(STORAGE_CHECK_INTERVAL).await;
        // It logs what has changed.
        orchestrator.storage().await;
    }
}

/// What a server that stops leaves behind, on one line.
async fn stopping(orchestrator: &Orchestrator) -> String {
    let query = TaskQuery { which: TaskSelector::Unfinished, limit: UNFINISHED_MAX };
    let counted = tokio::time::timeout(COUNT_TIMEOUT, orchestrator.tasks(query)).await;
    let Ok(Ok(unfinished)) = counted else { return "stopping\n".to_owned() };
    let of = |word: &str, count: usize| match count {
        0 => None,
        count => Some(format!("{} {word}", terminal::count(count as u64, "task"))),
    };
    let ordinary = unfinished.iter().filter(|task| !is_resident(task));
    let (waiting, working): (Vec<_>, Vec<_>) =
        ordinary.partition(|task| task.waiting_for.is_some());
    let live = unfinished.iter().filter(|task| is_resident(task)).count();
    let live = (live > 0).then(|| terminal::count(live as u64, "live agent"));
    let kept: Vec<String> = [of("at work", working.len()), of("waiting", waiting.len()), live]
        .into_iter()
        .flatten()
        .collect();
    if kept.is_empty() {
        return "stopping; no task is unfinished\n".to_owned();
    }
    format!("stopping; kept for the next `antiphon serve`: {}\n", kept.join(", "))
}

fn announce(address: ServerAddress<'_>, counts: &StartCounts) {
    let resuming = match counts.resumed {
        0 => String::new(),
        resumed => {
            let tasks = terminal::count(resumed as u64, "interrupted task");
            format!("resuming {tasks}\n")
        }
    };
    let live = terminal::count(counts.live as u64, "live agent");
    let schedules = terminal::count(counts.schedules as u64, "schedule");
    let folders = REQUEST_FOLDERS.join(" and ");
    let socket = address.socket.map(|path| path.display().to_string()).unwrap_or_default();
    let (place, url) = match address.url {
        Some(url) => (url.to_owned(), url.to_owned()),
        None => (socket.clone(), format!("--unix-socket '{socket}' http://localhost")),
    };
    terminal::print(&format!(
        "listening on {place}\n`antiphon token` prints the token\n{live}, {schedules}; requests are read from \
         {folders}\n{resuming}\n  \
         curl -H \"Authorization: Bearer $(antiphon token)\" -H 'Content-Type: application/json' \\\n    \
         -d '{{\"message\": \"Hello\"}}' {url}/v1/tasks\n\n"
    ));
}

/// Asks the owner of the journal to hand it over. `Some` when this process has taken it.
async fn ask_for_journal(
    project: &Project,
    reservation: &Reservation,
) -> Result<Option<SqliteJournal>, Failure> {
    loop {
        let server = match Ownership::find_with(project, Some(reservation)).await? {
            Ownership::Owner(journal) => return Ok(Some(journal)),
            Ownership::Client(server) => server,
        };
        match server.client.request_hand_over().await {
            Ok(()) => return Ok(None),
            // It has ended, or is about to.
            Err(error) if error.is_transient() => tokio::time::sleep(HAND_OVER_PAUSE).await,
            Err(error) => return Err(server.project_error(error).into()),
        }
    }
}

/// All HTTP interfaces.
fn interface(webhooks: Webhooks, a2a: &A2a, mcp: &McpServer) -> Interface {
    antiphon_http::interface(Some(webhooks))
        .merge(crate::interface::model_apis())
        .merge(a2a.interface())
        .merge(mcp.interface())
}
