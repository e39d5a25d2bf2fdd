//! `antiphon serve`: the orchestrator behind its HTTP interfaces, until a signal stops it.

mod a2a;
mod announcement;
mod background_services;
mod hand_over;
mod listening;
mod open_file_limit;
mod publishing;

use std::sync::Arc;
use std::time::Duration;

use antiphon_a2a_api::A2a;
use antiphon_http::Webhooks;
use antiphon_interface_transport::{
    ExposedAgents, Interface, ServerConfig, ServerDeps, ServerLimits, serve,
};
use antiphon_mcp_server::McpServer;
use antiphon_process::{SocketFile, keys, token};
use antiphon_project::control_orders::{Execution, ProjectOrders};
use antiphon_project::environment::Environment;
use antiphon_project::live_agents;
use antiphon_project::project::{OwnerRole, Project, ProjectOwner};
use antiphon_project::server_files::{ServerAddress, ServerFiles};
use antiphon_project::settings::UserSettings;
use antiphon_project::telemetry_follower::TelemetryFollower;
use antiphon_runtime::Orchestrator;
use antiphon_telemetry::{Metrics, Telemetry, Traces};
use clap::Args;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::failure::Failure;
use crate::log::LogFormat;
use crate::permission_args::PermissionArgs;
use crate::stop_signal::{StopSignal, StopSignals};
use crate::terminal;
use announcement::{StartCounts, announce, stopping};
use background_services::{BackgroundServices, ServiceDeps};
use listening::{Listening, OpenAddress, Opened};
use open_file_limit::{ConnectionLimit, raise_file_limit};
use publishing::publish_again;

/// Largest value of `--connections-max`.
const CONNECTIONS_MAX: i64 = 1_000_000;

/// Default of `--grace`.
pub(crate) const GRACE_S_DEFAULT: u64 = 10;

/// Largest value of `--grace`.
pub(crate) const GRACE_S_MAX: u64 = 3600;

/// How often a server checks its journal while nothing is recorded.
const STORAGE_CHECK_INTERVAL: Duration = Duration::from_secs(5);

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

    #[command(flatten)]
    permissions: PermissionArgs,

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
        let role = OwnerRole::Server(self.permissions.process());
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
        let ring = keys.as_ref().map(|keys| Arc::clone(&keys.ring));
        let server = ServerConfig { deps, keys, telemetry, chat_agents, interface };
        a2a.resume_push(&orchestrator, ring);
        let ended = self.serve((server, address), &server_files, services).await;
        server_files.unpublish();
        a2a.shutdown().await;
        follower.shutdown().await;
        owner.shutdown().await;
        ended
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

/// Metrics and traces, with an exporter if the user has configured one.
fn telemetry(settings: &UserSettings) -> Result<Telemetry, Failure> {
    Ok(Telemetry {
        metrics: Metrics::with_prices(settings.prices.clone()),
        traces: Traces::new(),
        exporter: settings.telemetry.exporter(&settings.environment)?,
    })
}

/// Checks the journal every few seconds, so that the user learns of a fault also while nothing happens.
async fn watch_storage(orchestrator: &Orchestrator) {
    loop {
        tokio::time::sleep(STORAGE_CHECK_INTERVAL).await;
        // It logs what has changed.
        orchestrator.storage().await;
    }
}

/// All HTTP interfaces.
fn interface(webhooks: Webhooks, a2a: &A2a, mcp: &McpServer) -> Interface {
    antiphon_http::interface(Some(webhooks))
        .merge(crate::interface::model_apis())
        .merge(a2a.interface())
        .merge(mcp.interface())
}
