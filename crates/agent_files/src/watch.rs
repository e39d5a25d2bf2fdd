//! Follows the folders of a catalog until it is stopped.
//!
//! Changes are read after a short pause, so that a file that an editor writes in several steps is complete.
//! Paths without file system events are polled every second.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::catalog::AgentCatalog;
use crate::changes::Changes;
use crate::folder_watcher::{FolderWatcher, PolledPaths, PolledState};

/// Interval of polling.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Pause without changes before files are read.
const SETTLE: Duration = Duration::from_millis(50);

/// Longest wait for that pause.
const SETTLE_MAX: Duration = Duration::from_millis(500);

/// How a catalog detects changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChangeDetection {
    /// File system events; paths without events are polled every second.
    #[default]
    Events,
    /// Polling every second: for file systems without events, such as network file systems.
    Polling,
}

impl AgentCatalog {
    /// Keeps the catalog up to date and reports changes, until `stop` is canceled. Reads every file once at
    /// the start. `on_change` is called between reads and should not block.
    pub async fn watch(
        self: Arc<Self>,
        detection: ChangeDetection,
        stop: CancellationToken,
        on_change: impl FnMut(&Changes),
    ) {
        stop.run_until_cancelled_owned(self.follow(detection, on_change)).await;
    }

    /// Ends only when the runtime does. Cancel safe: a read that has started ends on its own thread.
    async fn follow(
        self: Arc<Self>,
        detection: ChangeDetection,
        mut on_change: impl FnMut(&Changes),
    ) {
        let nudge = Arc::new(Notify::new());
        let mut watcher = match detection {
            ChangeDetection::Events => FolderWatcher::with_events(Arc::clone(&nudge)),
            ChangeDetection::Polling => FolderWatcher::polling(),
        };
        loop {
            // Watched before it is read: a change meanwhile is read again.
            watcher.watch_folders(self.folders());
            let polled = watcher.polled(self.folders(), self.depends_on());
            let Some((state, changes)) = self.clone().read(polled.clone()).await else {
                return;
            };
            if !changes.is_empty() {
                on_change(&changes);
            }
            // Newly referenced files are not polled yet.
            if polled == watcher.polled(self.folders(), self.depends_on())
                && changed(&nudge, polled, state).await.is_none()
            {
                return;
            }
        }
    }

    /// Reads the polled state, then the files, on a blocking thread; `None` when the runtime ends.
    async fn read(self: Arc<Self>, polled: PolledPaths) -> Option<(PolledState, Changes)> {
        spawn_blocking(move || (polled.read_state(), self.reload())).await.ok()
    }
}

/// Waits for a change and the pause after it. `None` when the runtime ends.
async fn changed(nudge: &Notify, polled: PolledPaths, state: PolledState) -> Option<()> {
    loop {
        tokio::select! {
            () = nudge.notified() => break,
            () = sleep(POLL_INTERVAL) => {
                let polled = polled.clone();
                if spawn_blocking(move || polled.read_state()).await.ok()? != state {
                    break;
                }
            }
        }
    }
    let end = Instant::now() + SETTLE_MAX;
    while timeout(SETTLE, nudge.notified()).await.is_ok() && Instant::now() < end {}
    Some(())
}
