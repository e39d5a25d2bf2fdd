//! What a server runs beside its HTTP interface: the file drop, the schedules, and notices to live agents
//! about removed peers. All of it stops before the orchestrator does.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{AgentName, Provenance};
use antiphon_file_drop::{OrderExecutor, watch};
use antiphon_private_file::{Durability, write_atomic};
use antiphon_runtime::{Arrival, Orchestrator, Receipt, Wake};
use antiphon_schedule::{
    Deliver, DeliverError, DeliveryStatus, HistoryChange, MissedPolicy, ScheduleHistory, Scheduler,
    Schedules, Tick,
};
use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::control_orders::drop_settings;
use crate::error::ProjectError;
use crate::trust::ProjectTrust;

/// Largest file with the start times of schedules, in bytes.
const SEEN_BYTES_MAX: u64 = 1024 * 1024;

/// The running services of a server. The caller stops them with [`BackgroundServices::shutdown`].
pub struct BackgroundServices {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

/// What the services work with.
pub struct ServiceDeps {
    /// Delivers ticks of schedules, and notifies agents.
    pub orchestrator: Orchestrator,
    /// Carries out dropped requests.
    pub orders: Arc<dyn OrderExecutor>,
    /// The project's root.
    pub root: PathBuf,
    /// Which request folders the user trusts.
    pub trust: ProjectTrust,
    /// The project's state folder.
    pub state: PathBuf,
    /// The user's schedules.
    pub schedules: Schedules,
    /// Names of agents whose definitions were removed.
    pub removed: mpsc::Receiver<AgentName>,
}

impl BackgroundServices {
    /// Starts the services. Fails when the start times of schedules cannot be recorded.
    pub fn start(deps: ServiceDeps) -> Result<Self, ProjectError> {
        let ServiceDeps { orchestrator, orders, root, trust, state, schedules, removed } = deps;
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let stopped = stop.clone();
        tasks.spawn(async move {
            if let Err(error) = watch(root, drop_settings(&trust), orders, stopped).await {
                tracing::error!(%error, "the file drop has stopped");
            }
        });
        if !schedules.is_empty() {
            let seen = start_times(&state.join("schedules.json"), &schedules)?;
            let scheduler = Scheduler {
                schedules,
                history: seen,
                missed: MissedPolicy::default(),
                clock: Arc::new(SystemClock),
                deliver: Arc::new(Inboxes(orchestrator.clone())),
            };
            tasks.spawn(scheduler.run(stop.clone()));
        }
        tasks.spawn(notify_removed(orchestrator, removed, stop.clone()));
        Ok(Self { stop, tasks })
    }

    /// Asks the services to stop.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Stops the services and waits until they have ended.
    pub async fn shutdown(mut self) {
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

/// Start times of the schedules. They are recorded before any schedule runs.
fn start_times(path: &Path, schedules: &Schedules) -> Result<ScheduleHistory, ProjectError> {
    let mut text = String::new();
    let read =
        File::open(path).and_then(|file| file.take(SEEN_BYTES_MAX).read_to_string(&mut text));
    // Without the file, missed ticks are skipped; none is delivered twice.
    let mut seen: ScheduleHistory =
        read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default();
    if seen.update(schedules, SystemClock.now()) == HistoryChange::Changed {
        let unwritable = |reason: String| {
            ProjectError::InvalidInput(format!("cannot write {}: {reason}", path.display()))
        };
        let text = serde_json::to_string(&seen).map_err(|error| unwritable(error.to_string()))?;
        write_atomic(path, text.as_bytes(), Durability::Synced)
            .map_err(|error| unwritable(error.to_string()))?;
    }
    Ok(seen)
}

/// Delivers ticks of schedules to agents' inboxes.
struct Inboxes(Orchestrator);

#[async_trait]
impl Deliver for Inboxes {
    async fn deliver(&self, tick: Tick) -> Result<DeliveryStatus, DeliverError> {
        let interaction = tick.interaction(antiphon_core::InteractionId::new());
        let arrival = Arrival {
            to: tick.schedule.agent.clone(),
            from: interaction.from,
            content: interaction.content,
            mode: interaction.handling_mode,
            render_metadata: interaction.render_metadata,
            wake: if tick.schedule.wake { Wake::Yes } else { Wake::No },
            until: None,
            key: Some(tick.key),
            payload: None,
            provenance: Provenance::Schedule(tick.schedule.name.to_string()),
        };
        let unavailable = |reason: String| DeliverError::Unavailable { reason };
        match self.0.admit(arrival).await.map_err(|error| unavailable(error.to_string()))? {
            Receipt::Accepted { .. } | Receipt::Filtered => Ok(DeliveryStatus::New),
            Receipt::Deduplicated { .. } => Ok(DeliveryStatus::Duplicate),
            Receipt::Rejected(rejection) if rejection.is_temporary() => {
                Err(unavailable(rejection.to_string()))
            }
            Receipt::Rejected(rejection) => {
                Err(DeliverError::Refused { reason: rejection.to_string() })
            }
        }
    }
}
