//! The service: watches folders and answers the requests in them until it is stopped.
//!
//! Requests that are dropped while no service runs are answered at the next start. Stopping or
//! killing the service at any point loses no request and executes none twice.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use antiphon_core::port::OrderExecutor;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::execute::pending_request::{FileKey, Outcome};
use crate::execute::queues::RequestQueues;
use crate::execute::worker::{FILE_SLOTS_MAX, RetryPolicy, Worker};
use crate::scan::changes::{ChangeQueue, ChangedFiles, watcher};
use crate::scan::scanner::{ScanResult, Scanner, paths};
use crate::settings::{FileDropSettings, SettingsError};
use antiphon_folder_watch::FolderWatcher;

/// Full scans use at most one part in this many of the time.
const RESCAN_SHARE: u32 = 20;

/// Answers all present and future requests in the folders of a project until `stop` is canceled. It
/// then waits a few seconds for running requests.
///
/// One process at a time answers a folder: a second one waits until the first ends.
pub async fn watch(
    project: impl AsRef<Path>,
    settings: FileDropSettings,
    orders: Arc<dyn OrderExecutor>,
    stop: CancellationToken,
) -> Result<(), SettingsError> {
    settings.check()?;
    let changes = Arc::new(ChangeQueue::default());
    let watcher = watcher(Arc::clone(&changes), paths(project.as_ref(), &settings));
    let service =
        Service::new(project.as_ref(), settings, orders, watcher, RetryPolicy::Forever, stop);
    service.run(&changes).await;
    Ok(())
}

/// Answers the present requests and returns. Skips folders that another process answers.
pub async fn answer_waiting(
    project: impl AsRef<Path>,
    settings: FileDropSettings,
    orders: Arc<dyn OrderExecutor>,
    stop: CancellationToken,
) -> Result<PassCounts, SettingsError> {
    settings.check()?;
    let watcher = FolderWatcher::disabled();
    let service =
        Service::new(project.as_ref(), settings, orders, watcher, RetryPolicy::Never, stop);
    Ok(service.run(&ChangeQueue::default()).await)
}

/// Counts of one pass.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PassCounts {
    /// Requests with a response, successful or not.
    pub answered: usize,
    /// Files that were not valid requests: answered with an error, and rejected.
    pub set_aside: usize,
    /// Requests that could not be executed now.
    pub postponed: usize,
    /// Folders that another process answers.
    pub busy: Vec<PathBuf>,
}

struct Service {
    settings: Arc<FileDropSettings>,
    scanner: Scanner,
    queues: RequestQueues,
    retry: RetryPolicy,
    stop: CancellationToken,
    tally: PassCounts,
    changed: ChangedFiles,
    next_read: Option<Instant>,
    next_rescan: Instant,
}

impl Service {
    fn new(
        project: &Path,
        settings: FileDropSettings,
        orders: Arc<dyn OrderExecutor>,
        watcher: FolderWatcher,
        retry: RetryPolicy,
        stop: CancellationToken,
    ) -> Self {
        let order_slots = Semaphore::new(settings.orders_max.min(Semaphore::MAX_PERMITS));
        let file_slots = Semaphore::new(FILE_SLOTS_MAX);
        let (trust, folders) = (settings.trust.clone(), paths(project, &settings));
        let stopped = stop.clone();
        let worker =
            Worker { orders, trust, folders, order_slots, file_slots, retry, stop: stopped };
        let settings = Arc::new(settings);
        Self {
            scanner: Scanner::new(project, Arc::clone(&settings), watcher),
            queues: RequestQueues::new(worker),
            next_rescan: Instant::now() + settings.rescan_every,
            settings,
            retry,
            stop,
            tally: PassCounts::default(),
            changed: ChangedFiles::everything(),
            next_read: None,
        }
    }

    async fn run(mut self, changes: &ChangeQueue) -> PassCounts {
        while !self.stop.is_cancelled() {
            self = match self.scan().await {
                Some(service) => service,
                None => return PassCounts::default(),
            };
            if self.is_done() {
                break;
            }
            self.wait(changes).await;
        }
        let tally = PassCounts { busy: self.scanner.busy(), ..self.tally };
        self.queues.drain().await;
        tally
    }

    /// Scans what changed. `None` when the runtime shuts down.
    async fn scan(mut self) -> Option<Self> {
        if !self.is_due() {
            return Some(self);
        }
        let (started, is_rescan) = (Instant::now(), self.changed.everything);
        let (changed, capacity) = (std::mem::take(&mut self.changed), self.queues.capacity());
        let mut scanner = self.scanner;
        let mut scanning = spawn_blocking(move || {
            let found = scanner.scan(changed, capacity);
            (scanner, found)
        });
        // Meanwhile, queued requests start.
        let mut ended: Vec<(FileKey, Outcome)> = Vec::new();
        let done = loop {
            tokio::select! {
                done = &mut scanning => break done,
                Some(end) = self.queues.next(), if !self.queues.is_idle() => ended.push(end),
            }
        };
        let (scanner, found) = done.ok()?;
        let ScanResult { requests, is_all, next } = found;
        self.scanner = scanner;
        self.next_read = next;
        if is_rescan {
            // However many files there are, scanning takes a small share of the time.
            let pause = self.settings.rescan_every.max(started.elapsed() * RESCAN_SHARE);
            self.next_rescan = Instant::now() + pause;
        }
        if !is_all {
            self.changed = ChangedFiles::everything();
        }
        for pending in requests {
            self.queues.submit(pending);
        }
        for (key, outcome) in ended {
            self.finish(&key, outcome);
        }
        Some(self)
    }

    /// Waits until there is something to do. Cancel safe.
    async fn wait(&mut self, changes: &ChangeQueue) {
        if self.is_due() {
            return;
        }
        let rescan = tokio::time::sleep_until(self.next_rescan.into());
        let settles_at = self.next_read.filter(|_| self.queues.has_capacity());
        let settled = async move {
            match settles_at {
                Some(settles_at) => tokio::time::sleep_until(settles_at.into()).await,
                None => std::future::pending().await,
            }
        };
        let end = tokio::select! {
            () = self.stop.cancelled() => None,
            () = changes.changed() => {
                self.changed.merge(changes.take());
                None
            }
            () = settled => None,
            () = rescan, if self.retry == RetryPolicy::Forever => {
                self.changed = ChangedFiles::everything();
                None
            }
            Some(end) = self.queues.next(), if !self.queues.is_idle() => Some(end),
        };
        if let Some((key, outcome)) = end {
            self.finish(&key, outcome);
        }
    }

    /// Whether there is something to scan, and capacity for the result.
    fn is_due(&self) -> bool {
        let has_settled = self.next_read.is_some_and(|settles_at| settles_at <= Instant::now());
        let is_full_scan_due = has_settled || self.changed.everything;
        (is_full_scan_due && self.queues.has_capacity()) || !self.changed.files.is_empty()
    }

    fn is_done(&self) -> bool {
        self.retry == RetryPolicy::Never
            && self.queues.is_idle()
            && self.changed.is_nothing()
            && self.next_read.is_none()
    }

    fn finish(&mut self, key: &FileKey, outcome: Outcome) {
        match outcome {
            Outcome::Answered => self.tally.answered += 1,
            Outcome::SetAside => self.tally.set_aside += 1,
            Outcome::Postponed => self.tally.postponed += 1,
            Outcome::Withdrawn => {}
        }
        for path in self.scanner.finish(key, outcome) {
            self.changed.add(path);
        }
    }
}
