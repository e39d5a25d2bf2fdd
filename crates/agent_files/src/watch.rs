//! Keeping up with the folders of a book, until somebody says stop.
//!
//! Changes are read once they have settled, so that a file that an editor writes in several steps is read
//! when it is whole. Whatever the system cannot tell of is looked at every second.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::book::AgentCatalog;
use crate::changes::Changes;
use crate::eyes::{Eyes, Seen, Sight};

/// How often what nobody tells of is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long nothing may change before it is read.
const QUIET: Duration = Duration::from_millis(50);

/// How long to wait for that quiet at most.
const SETTLE_MAX: Duration = Duration::from_millis(500);

/// How a book learns of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Watching {
    /// The system tells; what it cannot tell of is looked at every second.
    #[default]
    Told,
    /// By looking every second: for folders on file systems that tell nothing, such as a network's.
    Looking,
}

impl AgentCatalog {
    /// Keeps the book up to date and tells what changed, until `stop` is canceled. Reads everything
    /// once at the beginning. `told` is called between reads and should not block.
    pub async fn watch(
        self: Arc<Self>,
        how: Watching,
        stop: CancellationToken,
        told: impl FnMut(&Changes),
    ) {
        stop.run_until_cancelled_owned(self.keep_up(how, told)).await;
    }

    /// Ends only when the runtime does. May be dropped at any point: a read that has begun is finished
    /// on its own thread.
    async fn keep_up(self: Arc<Self>, how: Watching, mut told: impl FnMut(&Changes)) {
        let nudge = Arc::new(Notify::new());
        let mut eyes = match how {
            Watching::Told => Eyes::told(Arc::clone(&nudge)),
            Watching::Looking => Eyes::looking(),
        };
        loop {
            // Watched and looked at before it is read: what changes meanwhile is read again.
            eyes.turn_to(self.folders());
            let sight = eyes.sight(self.folders(), self.beside());
            let Some((seen, changes)) = self.clone().read_aside(sight.clone()).await else {
                return;
            };
            if !changes.is_empty() {
                told(&changes);
            }
            // Files that lead to others than before are not looked at yet.
            if sight == eyes.sight(self.folders(), self.beside())
                && changed(&nudge, sight, seen).await.is_none()
            {
                return;
            }
        }
    }

    /// Looks, then reads; `None` when the runtime ends.
    async fn read_aside(self: Arc<Self>, sight: Sight) -> Option<(Seen, Changes)> {
        spawn_blocking(move || (sight.look(), self.reload())).await.ok()
    }
}

/// Waits until something is not as it was seen and everything has settled. `None` when the runtime ends.
async fn changed(nudge: &Notify, sight: Sight, seen: Seen) -> Option<()> {
    loop {
        tokio::select! {
            () = nudge.notified() => break,
            () = sleep(LOOK_EVERY) => {
                let sight = sight.clone();
                if spawn_blocking(move || sight.look()).await.ok()? != seen {
                    break;
                }
            }
        }
    }
    let end = Instant::now() + SETTLE_MAX;
    while timeout(QUIET, nudge.notified()).await.is_ok() && Instant::now() < end {}
    Some(())
}
