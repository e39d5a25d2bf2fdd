//! `antiphon serve`: the orchestrator behind an HTTP door, until somebody ends it.

mod attendants;
mod files;
mod listening;
mod papers;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use antiphon_http::Webhooks;
use antiphon_interface_transport::{Interface, Keys, Limits, ServerConfig, ServerDeps, serve};
use antiphon_permissions::Mode;
use antiphon_project::live_agents;
use antiphon_telemetry::{Metrics, Telemetry, Traces};
use clap::Args;
use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::agents::folders;
use super::run::{Ask, ModeName};
use crate::config::{Config, webhooks};
use crate::desk::ProjectTaskFactory;
use crate::failure::Failure;
use crate::hands::{Allowed, Toolset};
use crate::log::LogFormat;
use crate::models::Models;
use crate::orders::{ProjectOrders, Working, drop_settings};
use crate::project::Project;
use crate::prompt::Rules;
use crate::shelf::AgentFiles;
use crate::team::Team;
use crate::terminal;
use attendants::{BackgroundServices, Needs};
use files::{Wanted, make_room};
use listening::{Listening, Opened, SocketFile};
use papers::{Folder, ServerFiles, Where};
use watching::Watching;

/// The most connections that can be asked for.
const CONNECTIONS_MAX: i64 = 1_000_000;

/// How long tasks and servers of tools may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(5);

/// Listen for tasks over HTTP (see docs/server.md).
#[derive(Debug, Args)]
#[command(after_help = "\
The server works on the tasks of this project, those that were cut off first, until Ctrl-C or
SIGTERM. What needs somebody's word waits for it: `POST /v1/approvals/ID`. Every request needs the
token in .antiphon/token, which is made at the first start, or a key (`antiphon keys new`); events of
your [webhooks.SOURCE] are signed instead (docs/webhooks.md). It also listens on .antiphon/server.sock.

It is also who live agents read their inboxes under (docs/inbox.md), who runs your schedules
(docs/schedules.md), and who answers requests that are dropped as files in .antiphon/requests
(docs/file-drop.md). What it does is counted at /metrics (docs/metrics.md); ANTIPHON_LOG=info says
more of it on standard error.

Examples:
  antiphon serve
  antiphon serve --listen 127.0.0.1:0
  antiphon serve --listen unix
  antiphon serve --listen 0.0.0.0:7117 --tls-cert cert.pem --tls-key key.pem --allow-host box.example
  antiphon serve --connections-max 20000
  curl -H \"Authorization: Bearer $(cat .antiphon/token)\" http://127.0.0.1:7117/v1/tasks")]
pub(crate) struct Serve {
    #[command(flatten)]
    listening: Listening,

    /// A name that clients know this server by, as HOST or HOST:PORT; may be given again.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,

    /// Connections at a time, 4096 when absent; the next one waits.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=CONNECTIONS_MAX))]
    connections_max: Option<u32>,

    /// Allow what this rule covers, as `bash(git push *)`; may be given again.
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,

    /// What holds where no rule does; the configured one, or `workspace`, when absent.
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeName>,

    /// Let commands use the network.
    #[arg(long)]
    network: bool,

    /// End when the process that started this one does.
    #[arg(long, hide = true)]
    end_with_parent: bool,

    /// How lines on standard error are written.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

impl Serve {
    pub(crate) fn log_format(&self) -> LogFormat {
        self.log_format
    }

    pub(crate) async fn run(self) -> Result<(), Failure> {
        self.listening.check()?;
        self.tie_to_parent()?;
        let limits = self.limits()?;
        let models = Models::new(Config::load()?);
        let telemetry = telemetry(models.config())?;
        let project = Project::here()?;
        // Before the journal is opened, which makes one.
        let folder = if project.has_journal() { Folder::Ours } else { Folder::Fresh };
        let allowed = self.allowed();
        let hands = Toolset::of(&project, models.config(), &allowed).await?;
        let hands = hands.asking(Some(Ask::Wait), false);
        let (servers, secrets) = (hands.servers.clone(), hands.secrets.clone());
        let config = models.config();
        let rules = Rules::find(config.path.parent(), project.root(), project.working_folder());
        let default_model = config.default_model();
        let schedules = config.schedules.clone();
        let [new_agents, _] = folders(&project, config);
        let terminals = config.terminals.keys().cloned().collect();
        let webhooks = webhooks(&config.webhooks)?;
        let mut team = Team::of(&project, models.config(), &allowed, &hands, &rules)?;
        let orchestrator = project.orchestrator(models, hands, &team)?;
        let keys = Some(keys(&project)?);
        let papers = ServerFiles::new(&project.folder());
        let token = papers.token(folder)?;
        secrets.add(token.secret());
        let files = AgentFiles::new(&orchestrator, &team.agents, new_agents);
        let desk = Arc::new(ProjectTaskFactory {
            orchestrator: orchestrator.clone(),
            // Only asked whether a model is there: what it answers is asked elsewhere.
            models: Models::new(Config::load()?),
            default_model,
            root: project.root().to_owned(),
            rules,
            shelf: files.clone(),
        });
        let doors = ServerDeps {
            orchestrator: orchestrator.clone(),
            task_factory: Arc::clone(&desk) as _,
            token,
            hosts: self.allow_host.clone(),
            limits,
        };
        let orders = ProjectOrders {
            orchestrator: orchestrator.clone(),
            desk,
            shelf: files,
            terminals,
            working: Working::Here,
        };
        let needs = Needs {
            orchestrator: orchestrator.clone(),
            orders: Arc::new(orders),
            root: project.root().to_owned(),
            folder: project.folder(),
            schedules,
            gone: std::mem::replace(&mut team.gone, mpsc::channel(1).1),
        };
        let watching = Watching::begin(&orchestrator, &telemetry).await?;
        let (telemetry, interface) = (Some(telemetry), interface(webhooks));
        let house = ServerConfig { deps: doors, keys, telemetry, interface };
        let served = self.serve(house, &papers, needs).await;
        papers.forget();
        orchestrator.shutdown(PATIENCE).await;
        watching.end().await;
        team.disband().await;
        if let Some(servers) = servers {
            servers.shutdown(PATIENCE).await;
        }
        served
    }

    fn tie_to_parent(&self) -> Result<(), Failure> {
        if !self.end_with_parent {
            return Ok(());
        }
        let refuse = |error| Failure::failed(format!("cannot be tied to its parent: {error}"));
        set_parent_process_death_signal(Some(Signal::TERM)).map_err(refuse)
    }

    /// How much anybody gets, once there is room for it.
    fn limits(&self) -> Result<Limits, Failure> {
        let limits = Limits::default();
        let (connections_max, wanted) = match self.connections_max {
            Some(connections) => {
                (usize::try_from(connections).unwrap_or(usize::MAX), Wanted::Asked)
            }
            None => (limits.connections_max, Wanted::Default),
        };
        make_room(connections_max as u64, wanted)?;
        Ok(Limits { connections_max, ..limits })
    }

    fn allowed(&self) -> Allowed {
        Allowed {
            mode: self.mode.map(Mode::from),
            rules: self.allow.clone(),
            network: self.network,
        }
    }

    async fn serve(
        &self,
        house: ServerConfig,
        papers: &ServerFiles,
        needs: Needs,
    ) -> Result<(), Failure> {
        let ended = ended()?;
        let opened = self.listening.open(papers.folder()).await?;
        let orchestrator = &house.deps.orchestrator;
        let recovered = orchestrator.recover().await?;
        let live = live_agents(orchestrator).await?;
        let schedules = needs.schedules.iter().count();
        // Those are at rest, not cut off.
        let begun = recovered.begun.iter().filter(|task_id| !live.contains_key(task_id)).count();
        let attendants = BackgroundServices::begin(needs)?;
        let Opened { listeners, url, socket } = opened;
        let at = Where { url: url.as_deref(), socket: socket.as_ref().map(SocketFile::path) };
        let served = match papers.publish(at) {
            Ok(()) => {
                announce(at, papers, &Beginning { begun, live: live.len(), schedules });
                // Nothing new comes in by any door then.
                let ended = async {
                    ended.await;
                    attendants.stop();
                };
                let refuse = |error| Failure::unavailable(format!("cannot listen: {error}"));
                serve(listeners, house, ended).await.map_err(refuse)
            }
            Err(failure) => Err(failure),
        };
        attendants.end().await;
        served
    }
}

/// All HTTP interfaces.
fn interface(webhooks: Webhooks) -> Interface {
    antiphon_http::interface(Some(webhooks)).merge(antiphon_openai_api::interface())
}

/// Who counts what a server does, and tells a collector if the user has one.
fn telemetry(config: &Config) -> Result<Telemetry, Failure> {
    Ok(Telemetry {
        metrics: Metrics::with_prices(config.prices.clone()),
        traces: Traces::new(),
        exporter: config.telemetry.exporter()?,
    })
}

/// What a server begins with.
struct Beginning {
    /// Tasks that had been cut off.
    begun: usize,
    /// Agents that are there for what arrives.
    live: usize,
    schedules: usize,
}

/// Ready when somebody wants the program to end. It listens from the moment this returns.
fn ended() -> Result<impl Future<Output = ()> + Send, Failure> {
    let fault = |error: std::io::Error| Failure::failed(format!("cannot hear signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(fault)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(fault)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

fn announce(at: Where<'_>, papers: &ServerFiles, beginning: &Beginning) {
    let token = papers.token_path().display();
    let going_on = match beginning.begun {
        0 => String::new(),
        begun => {
            let tasks = terminal::count(begun as u64, "task");
            format!("going on with {tasks} that had been cut off\n")
        }
    };
    let live = terminal::count(beginning.live as u64, "live agent");
    let schedules = terminal::count(beginning.schedules as u64, "schedule");
    let settings = drop_settings();
    let folders = settings.folders.iter().map(|folder| folder.path.display().to_string());
    let folders = folders.collect::<Vec<_>>().join(" and ");
    let socket = at.socket.map(|path| path.display().to_string()).unwrap_or_default();
    let (place, url) = match at.url {
        Some(url) => (url.to_owned(), url.to_owned()),
        None => (socket.clone(), format!("--unix-socket '{socket}' http://localhost")),
    };
    terminal::print(&format!(
        "listening on {place}\nthe token is in {token}\n{live}, {schedules}; requests are taken from \
         {folders}\n{going_on}\n  \
         curl -H \"Authorization: Bearer $(cat '{token}')\" -H 'Content-Type: application/json' \\\n    \
         -d '{{\"message\": \"Hello\"}}' {url}/v1/tasks\n\n"
    ));
}

fn keys(project: &Project) -> Result<Keys, Failure> {
    Keys::new(project.keys()?).map_err(|error| Failure::failed(error.to_string()))
}
