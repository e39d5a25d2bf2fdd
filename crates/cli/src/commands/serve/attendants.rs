//! What a server does beside its door: answers requests that are dropped as files, lets schedules tick,
//! and tells live agents when a peer of theirs is no longer defined. All of it ends before the
//! orchestrator does.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use antiphon_core::AgentName;
use antiphon_core::port::{Clock, SystemClock};
use antiphon_file_drop::{Orders, watch};
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

use crate::failure::Failure;
use crate::orders::drop_settings;

/// Largest file that says since when schedules count, in bytes.
const SEEN_BYTES_MAX: u64 = 1024 * 1024;

/// What a server does beside its door.
pub(super) struct BackgroundServices {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

/// What they need.
pub(super) struct Needs {
    pub(super) orchestrator: Orchestrator,
    pub(super) orders: Arc<dyn Orders>,
    pub(super) root: PathBuf,
    /// The project's own folder.
    pub(super) folder: PathBuf,
    pub(super) schedules: Schedules,
    pub(super) gone: mpsc::Receiver<AgentName>,
}

impl BackgroundServices {
    pub(super) fn begin(needs: Needs) -> Result<Self, Failure> {
        let Needs { orchestrator, orders, root, folder, schedules, gone } = needs;
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let stopped = stop.clone();
        tasks.spawn(async move {
            if let Err(error) = watch(root, drop_settings(), orders, stopped).await {
                tracing::error!(%error, "no files are taken");
            }
        });
        if !schedules.is_empty() {
            let seen = seen(&folder.join("schedules.json"), &schedules)?;
            let scheduler = Scheduler {
                schedules,
                history: seen,
                missed: MissedPolicy::default(),
                clock: Arc::new(SystemClock),
                deliver: Arc::new(Inboxes(orchestrator.clone())),
            };
            tasks.spawn(scheduler.run(stop.clone()));
        }
        tasks.spawn(tell(orchestrator, gone, stop.clone()));
        Ok(Self { stop, tasks })
    }

    /// Tells them to end.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Lets what they are at end.
    pub(super) async fn end(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Tells live agents of peers that are no longer defined.
async fn tell(
    orchestrator: Orchestrator,
    mut gone: mpsc::Receiver<AgentName>,
    stop: CancellationToken,
) {
    while let Some(Some(name)) = stop.run_until_cancelled(gone.recv()).await {
        if let Err(error) = orchestrator.notify_undefined(&name).await {
            tracing::warn!(agent.name = %name, %error, "its peers were not told that it is gone");
        }
    }
}

/// Since when schedules count. It is written down before any of them is run.
fn seen(path: &Path, schedules: &Schedules) -> Result<ScheduleHistory, Failure> {
    let mut text = String::new();
    let read =
        File::open(path).and_then(|file| file.take(SEEN_BYTES_MAX).read_to_string(&mut text));
    // Without it, ticks that were missed are left out, and none is delivered twice.
    let mut seen: ScheduleHistory =
        read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default();
    if seen.update(schedules, SystemClock.now()) == HistoryChange::Changed {
        let unwritable =
            |reason: String| Failure::usage(format!("cannot write {}: {reason}", path.display()));
        let text = serde_json::to_string(&seen).map_err(|error| unwritable(error.to_string()))?;
        write_atomic(path, text.as_bytes(), Durability::Synced)
            .map_err(|error| unwritable(error.to_string()))?;
    }
    Ok(seen)
}

/// The inboxes of agents, to schedules.
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
        };
        let unavailable = |reason: String| DeliverError::Unavailable { reason };
        match self.0.admit(arrival).await.map_err(|error| unavailable(error.to_string()))? {
            Receipt::Accepted { .. } | Receipt::Filtered => Ok(Delivered::New),
            Receipt::Deduplicated { .. } => Ok(Delivered::Before),
            Receipt::Rejected(rejection) if rejection.is_temporary() => {
                Err(unavailable(rejection.to_string()))
            }
            Receipt::Rejected(rejection) => {
                Err(DeliverError::Refused { reason: rejection.to_string() })
            }
        }
    }
}
