//! Services of a server beside its HTTP interface: the file drop, the schedules, and notices to live agents
//! about removed peers. All of it stops before the orchestrator does.

use std::path::PathBuf;
use std::sync::Arc;

use antiphon_core::AgentName;
use antiphon_core::port::{Clock, OrderExecutor, SystemClock};
use antiphon_project::request_drop::ProvidedRequestDrop;
use antiphon_project::schedules::Schedules;
use antiphon_project::trust::ProjectTrust;
use antiphon_runtime::Orchestrator;
use antiphon_schedule::{InboxDelivery, MissedPolicy, Scheduler, updated_history};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

/// The running services of a server. The caller stops them with [`BackgroundServices::shutdown`].
pub(super) struct BackgroundServices {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

/// What the services work with.
pub(super) struct ServiceDeps {
    /// Delivers ticks of schedules, and notifies agents.
    pub(super) orchestrator: Orchestrator,
    /// Carries out dropped requests.
    pub(super) orders: Arc<dyn OrderExecutor>,
    /// Reads them.
    pub(super) request_drop: ProvidedRequestDrop,
    /// The project's root.
    pub(super) root: PathBuf,
    /// Which request folders the user trusts.
    pub(super) trust: ProjectTrust,
    /// The project's state folder.
    pub(super) state: PathBuf,
    /// The user's schedules.
    pub(super) schedules: Schedules,
    /// Names of agents whose definitions were removed.
    pub(super) removed: mpsc::Receiver<AgentName>,
}

impl BackgroundServices {
    /// Starts the services. Fails when the start times of schedules cannot be recorded.
    pub(super) fn start(deps: ServiceDeps) -> Result<Self, Failure> {
        let ServiceDeps {
            orchestrator,
            orders,
            request_drop,
            root,
            trust,
            state,
            schedules,
            removed,
        } = deps;
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let stopped = stop.clone();
        tasks.spawn(async move {
            if let Err(reason) = request_drop.get().serve(root, trust, orders, stopped).await {
                tracing::error!(%reason, "the file drop has stopped");
            }
        });
        if !schedules.is_empty() {
            let path = state.join("schedules.json");
            let history = updated_history(&path, &schedules, SystemClock.now())?;
            let scheduler = Scheduler {
                schedules,
                history,
                missed: MissedPolicy::default(),
                clock: Arc::new(SystemClock),
                deliver: Arc::new(InboxDelivery(orchestrator.clone())),
            };
            tasks.spawn(scheduler.run(stop.clone()));
        }
        tasks.spawn(notify_removed(orchestrator, removed, stop.clone()));
        Ok(Self { stop, tasks })
    }

    /// Asks the services to stop.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Stops the services and waits until they have ended.
    pub(super) async fn shutdown(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Notifies live agents of peers that are no longer defined.
async fn notify_removed(
    orchestrator: Orchestrator,
    mut removed: mpsc::Receiver<AgentName>,
    stop: CancellationToken,
) {
    while let Some(Some(name)) = stop.run_until_cancelled(removed.recv()).await {
        if let Err(error) = orchestrator.notify_undefined(&name).await {
            tracing::warn!(agent.name = %name, %error, "peers were not notified of its removal");
        }
    }
}
