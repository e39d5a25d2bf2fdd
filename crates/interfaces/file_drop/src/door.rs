//! The door: watches folders and answers what is dropped there, until somebody says stop.
//!
//! What is dropped while nobody watches is answered by whoever watches next. Stopping, or being
//! killed, at any point loses nothing and does nothing twice.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::desk::{Desk, Found, paths};
use crate::eyes::{Changed, Eyes, Notebook};
use crate::job::{FileKey, Outcome};
use crate::lanes::Lanes;
use crate::orders::Orders;
use crate::settings::{Settings, SettingsError};
use crate::worker::{HANDS_MAX, Patience, Worker};

/// Looking at everything takes one part in so many of the time at most.
const RESCAN_SHARE: u32 = 20;

/// Answers every request in the folders of a project, those that are there and those to come, until
/// `stop` is canceled. Then it lets what has begun finish, for a few seconds.
///
/// Only one at a time answers a folder: another that is started meanwhile waits for its turn.
pub async fn watch(
    project: impl AsRef<Path>,
    settings: Settings,
    orders: Arc<dyn Orders>,
    stop: CancellationToken,
) -> Result<(), SettingsError> {
    settings.check()?;
    let notebook = Arc::new(Notebook::default());
    let eyes = Eyes::told(Arc::clone(&notebook), paths(project.as_ref(), &settings));
    let door = Door::new(project.as_ref(), settings, orders, eyes, Patience::Forever, stop);
    door.serve(&notebook).await;
    Ok(())
}

/// Answers the requests that are there, and returns. For when nobody watches: what somebody else
/// watches is left to them.
pub async fn answer_waiting(
    project: impl AsRef<Path>,
    settings: Settings,
    orders: Arc<dyn Orders>,
    stop: CancellationToken,
) -> Result<Tally, SettingsError> {
    settings.check()?;
    let eyes = Eyes::closed();
    let door = Door::new(project.as_ref(), settings, orders, eyes, Patience::Once, stop);
    Ok(door.serve(&Notebook::default()).await)
}

/// What was done in one go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// Requests that were answered, well or not.
    pub answered: usize,
    /// Files that were no requests: answered as well, and set aside.
    pub set_aside: usize,
    /// Requests that could not be answered now.
    pub left: usize,
    /// Folders that somebody else answers.
    pub taken: Vec<PathBuf>,
}

struct Door {
    settings: Arc<Settings>,
    desk: Desk,
    lanes: Lanes,
    patience: Patience,
    stop: CancellationToken,
    tally: Tally,
    /// What is to be looked at next.
    changed: Changed,
    next_look: Option<Instant>,
    next_rescan: Instant,
}

impl Door {
    fn new(
        project: &Path,
        settings: Settings,
        orders: Arc<dyn Orders>,
        eyes: Eyes,
        patience: Patience,
        stop: CancellationToken,
    ) -> Self {
        let places = Semaphore::new(settings.orders_max.min(Semaphore::MAX_PERMITS));
        let hands = Semaphore::new(HANDS_MAX);
        let worker = Worker { orders, places, hands, patience, stop: stop.clone() };
        let settings = Arc::new(settings);
        Self {
            desk: Desk::new(project, Arc::clone(&settings), eyes),
            lanes: Lanes::new(worker),
            next_rescan: Instant::now() + settings.rescan_every,
            settings,
            patience,
            stop,
            tally: Tally::default(),
            changed: Changed::everything(),
            next_look: None,
        }
    }

    async fn serve(mut self, notebook: &Notebook) -> Tally {
        while !self.stop.is_cancelled() {
            self = match self.look().await {
                Some(door) => door,
                None => return Tally::default(),
            };
            if self.is_done() {
                break;
            }
            self.wait(notebook).await;
        }
        let tally = Tally { taken: self.desk.taken(), ..self.tally };
        self.lanes.drain().await;
        tally
    }

    /// Looks at what changed. `None` when the runtime ends.
    async fn look(mut self) -> Option<Self> {
        if !self.is_due() {
            return Some(self);
        }
        let (begun, is_rescan) = (Instant::now(), self.changed.everything);
        let (changed, room) = (std::mem::take(&mut self.changed), self.lanes.room());
        let mut desk = self.desk;
        let mut looking = spawn_blocking(move || {
            let found = desk.look(changed, room);
            (desk, found)
        });
        // Meanwhile those whose turn it is begin.
        let mut ended: Vec<(FileKey, Outcome)> = Vec::new();
        let looked = loop {
            tokio::select! {
                looked = &mut looking => break looked,
                Some(end) = self.lanes.next(), if !self.lanes.is_idle() => ended.push(end),
            }
        };
        let (desk, found) = looked.ok()?;
        let Found { jobs, is_all, next } = found;
        self.desk = desk;
        self.next_look = next;
        if is_rescan {
            // However much there is to look at, it takes little of the time.
            let pause = self.settings.rescan_every.max(begun.elapsed() * RESCAN_SHARE);
            self.next_rescan = Instant::now() + pause;
        }
        if !is_all {
            self.changed = Changed::everything();
        }
        for job in jobs {
            self.lanes.submit(job);
        }
        for (key, outcome) in ended {
            self.finish(&key, outcome);
        }
        Some(self)
    }

    /// Waits until there is something to do. Cancel safe.
    async fn wait(&mut self, notebook: &Notebook) {
        if self.is_due() {
            return;
        }
        let rescan = tokio::time::sleep_until(self.next_rescan.into());
        let ripe = self.next_look.filter(|_| self.lanes.has_room());
        let ripen = async move {
            match ripe {
                Some(ripe) => tokio::time::sleep_until(ripe.into()).await,
                None => std::future::pending().await,
            }
        };
        let end = tokio::select! {
            () = self.stop.cancelled() => None,
            () = notebook.changed() => {
                self.changed.merge(notebook.take());
                None
            }
            () = ripen => None,
            () = rescan, if self.patience == Patience::Forever => {
                self.changed = Changed::everything();
                None
            }
            Some(end) = self.lanes.next(), if !self.lanes.is_idle() => Some(end),
        };
        if let Some((key, outcome)) = end {
            self.finish(&key, outcome);
        }
    }

    /// Whether there is something to look at, and room for what is found.
    fn is_due(&self) -> bool {
        let is_ripe = self.next_look.is_some_and(|ripe| ripe <= Instant::now());
        let is_wide = is_ripe || self.changed.everything;
        (is_wide && self.lanes.has_room()) || !self.changed.files.is_empty()
    }

    fn is_done(&self) -> bool {
        self.patience == Patience::Once
            && self.lanes.is_idle()
            && self.changed.is_nothing()
            && self.next_look.is_none()
    }

    fn finish(&mut self, key: &FileKey, outcome: Outcome) {
        match outcome {
            Outcome::Answered => self.tally.answered += 1,
            Outcome::SetAside => self.tally.set_aside += 1,
            Outcome::Left => self.tally.left += 1,
            Outcome::Withdrawn => {}
        }
        for path in self.desk.finish(key, outcome) {
            self.changed.add(path);
        }
    }
}
