//! Lifecycle of one server.
//!
//! | state    | until                | then                                                     |
//! |----------|----------------------|----------------------------------------------------------|
//! | idle     | a call needs it      | starting                                                 |
//! | starting | it lists its tools   | ready; or failed, if it does not                         |
//! | ready    | it disconnects       | idle                                                     |
//! | failed   | its pause is over    | as idle; until then, calls fail at once with the reason  |
//!
//! One supervisor task owns the lifecycle, so that a canceled call does not cancel the start it
//! caused. Each restart waits longer. After [`RESTARTS_PER_MINUTE_MAX`] restarts within a minute
//! the server pauses for one minute.
//!
//! | file           | subject                       |
//! |----------------|-------------------------------|
//! | `process`      | the process group of a server |
//! | `stderr`       | its standard error            |
//! | `status`       | its status, for users         |
//! | `shared_state` | what all servers share        |

pub(crate) mod process;
pub(crate) mod shared_state;
pub(crate) mod status;
pub(crate) mod stderr;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::catalog::listed_tool::ListedTool;
use crate::catalog::listing::list;
use crate::catalog::{CatalogEntry, entries};
use crate::config::{ServerConfig, ServerName};
use crate::connection::{Connection, Handshake, OpenConnection, OpenError, list_failure};
use crate::server::process::ProcessGroup;
use crate::server::shared_state::SharedState;
use crate::server::status::{ServerState, ServerStatus};

/// Concurrent calls of one server. Further calls wait.
pub const CALLS_MAX: usize = 32;

/// Restarts of a server within a minute.
pub const RESTARTS_PER_MINUTE_MAX: usize = 3;

const MINUTE: Duration = Duration::from_secs(60);

/// Delays before the first, second and third restart.
const RESTART_DELAYS: [Duration; RESTARTS_PER_MINUTE_MAX] =
    [Duration::from_millis(100), Duration::from_millis(400), Duration::from_millis(1600)];

/// Pauses after the first, second and third failed start.
const FAILURE_PAUSES: [Duration; RESTARTS_PER_MINUTE_MAX] =
    [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(30)];

/// Collects changes of the tool list that arrive together.
const TOOLS_CHANGED_DELAY: Duration = Duration::from_millis(50);

/// Shortest time between two requests for the list.
const LIST_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Time limit for the subscription to changes of the tool list.
const SUBSCRIBE_LIMIT: Duration = Duration::from_secs(5);

/// A configured server, running or not.
pub(crate) struct Server {
    pub(crate) name: ServerName,
    pub(crate) config: ServerConfig,
    /// Permits for concurrent calls.
    pub(crate) calls: Semaphore,
    phase: watch::Sender<Phase>,
    start_requested: AtomicBool,
    start_notify: Notify,
    record: Mutex<Record>,
}

/// Lifecycle phase; see the table in the module docs.
enum Phase {
    Idle,
    Starting,
    Ready(Arc<Connection>),
    Failed {
        reason: String,
        until: Instant,
    },
    /// Shut down; no more starts.
    ShutDown,
}

/// Data that outlives a connection.
struct Record {
    entries: Arc<[Arc<CatalogEntry>]>,
    handshake: Handshake,
    group: Option<Arc<ProcessGroup>>,
    /// Start times within the last minute.
    starts: VecDeque<Instant>,
    started: u32,
    last_error: Option<String>,
}

/// Why a start failed, and the pause before the next one.
struct Failure {
    reason: String,
    pause: Duration,
}

impl Server {
    pub(crate) fn new(name: ServerName, config: ServerConfig) -> Self {
        Self {
            name,
            config,
            calls: Semaphore::new(CALLS_MAX),
            phase: watch::Sender::new(Phase::Idle),
            start_requested: AtomicBool::new(false),
            start_notify: Notify::new(),
            record: Mutex::new(Record {
                entries: Arc::from([]),
                handshake: Handshake::Either,
                group: None,
                starts: VecDeque::new(),
                started: 0,
                last_error: None,
            }),
        }
    }

    /// Waits for a connection; requests a start if necessary. The error says why there is none.
    /// Safe to cancel.
    pub(crate) async fn connection(&self) -> Result<Arc<Connection>, String> {
        let mut phase = self.phase.subscribe();
        loop {
            match &*phase.borrow_and_update() {
                Phase::Ready(connection) if !connection.traffic.closed.is_cancelled() => {
                    return Ok(Arc::clone(connection));
                }
                Phase::Failed { reason, until } if Instant::now() < *until => {
                    let seconds = until.duration_since(Instant::now()).as_secs() + 1;
                    return Err(format!("{reason} (it is tried again in {seconds} s)"));
                }
                Phase::ShutDown => return Err("it has been shut down".to_owned()),
                Phase::Starting => {}
                Phase::Idle | Phase::Ready(_) | Phase::Failed { .. } => {
                    self.start_requested.store(true, Ordering::Release);
                    self.start_notify.notify_one();
                }
            }
            if phase.changed().await.is_err() {
                return Err("it has been shut down".to_owned());
            }
        }
    }

    pub(crate) fn entries(&self) -> Arc<[Arc<CatalogEntry>]> {
        Arc::clone(&self.record().entries)
    }

    /// Sets the tools from the cache, so that listing them does not start the server.
    pub(crate) fn load_cached(&self, handshake: Handshake, listed_tools: &[ListedTool]) {
        let known = entries(&self.name, &self.config, listed_tools);
        let mut record = self.record();
        record.handshake = handshake;
        record.entries = known;
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let state = match &*self.phase.borrow() {
            Phase::Starting => ServerState::Starting,
            Phase::Ready(_) => ServerState::Ready,
            Phase::Failed { reason, .. } => ServerState::Failed { reason: reason.clone() },
            Phase::Idle | Phase::ShutDown => ServerState::Idle,
        };
        let record = self.record();
        ServerStatus {
            name: self.name.clone(),
            state,
            tools: record.entries.len(),
            restarts: record.started.saturating_sub(1),
            last_error: record.last_error.clone(),
        }
    }

    /// Kills the process of the server.
    pub(crate) fn kill(&self) {
        let group = self.record().group.take();
        if let Some(group) = group {
            group.kill();
        }
    }

    /// Starts the server whenever a call needs it, until `stop`.
    pub(crate) async fn supervise(
        self: Arc<Self>,
        shared: Arc<SharedState>,
        stop: CancellationToken,
    ) {
        while stop.run_until_cancelled(self.until_start_requested()).await.is_some() {
            self.phase.send_replace(Phase::Starting);
            let Some(started) = stop.run_until_cancelled(self.start(&shared)).await else {
                break;
            };
            self.start_requested.store(false, Ordering::Release);
            match started {
                Ok(open) => {
                    self.phase.send_replace(Phase::Ready(Arc::clone(&open.connection)));
                    self.serve(open, &shared, &stop).await;
                    self.start_requested.store(false, Ordering::Release);
                    self.phase.send_replace(Phase::Idle);
                }
                Err(Failure { reason, pause }) => {
                    tracing::warn!(mcp.server = %self.name, "the MCP server failed: {reason}");
                    self.record().last_error = Some(reason.clone());
                    let until = Instant::now() + pause;
                    self.phase.send_replace(Phase::Failed { reason, until });
                }
            }
        }
        self.phase.send_replace(Phase::ShutDown);
        self.kill();
    }

    async fn until_start_requested(&self) {
        while !self.start_requested.load(Ordering::Acquire) {
            self.start_notify.notified().await;
        }
    }

    /// Starts the server and lists its tools. If this future is dropped, the server is killed.
    async fn start(&self, shared: &SharedState) -> Result<OpenConnection, Failure> {
        let recent = self.record().recent_starts();
        if recent > RESTARTS_PER_MINUTE_MAX {
            let reason = self.record().last_error.clone().unwrap_or_default();
            let reason = format!("it was started {recent} times within a minute; {reason}");
            return Err(Failure { reason, pause: MINUTE });
        }
        if let Some(delay) = recent.checked_sub(1).and_then(|n| RESTART_DELAYS.get(n)) {
            sleep(*delay).await;
        }
        self.record().started_now();
        let started = match timeout(self.config.start_timeout, self.open(shared)).await {
            Ok(started) => started,
            Err(_) => Err(format!(
                "it did not get ready within {} s",
                self.config.start_timeout.as_secs()
            )),
        };
        match started {
            Ok((open, listed_tools)) => {
                self.record().handshake = open.handshake();
                self.set_tools(shared, listed_tools).await;
                Ok(open)
            }
            Err(reason) => {
                let pause = FAILURE_PAUSES.get(recent).copied().unwrap_or(MINUTE);
                Err(Failure { reason, pause })
            }
        }
    }

    async fn open(
        &self,
        shared: &SharedState,
    ) -> Result<(OpenConnection, Vec<ListedTool>), String> {
        let handshake = self.record().handshake;
        let open = match self.connect(shared, handshake).await {
            // Some servers exit at an unknown request, and the cached handshake may be of an older
            // version of the server.
            Err(OpenError::Refused(_)) => self.connect(shared, handshake.other()).await,
            other => other,
        };
        let open = open.map_err(|error| match error {
            OpenError::Permanent(reason) | OpenError::Refused(reason) => reason,
        })?;
        match list(&open.connection.peer, &self.config).await {
            Ok(listed_tools) => Ok((open, listed_tools)),
            Err(error) => Err(format!("{}; it {}", list_failure(&error), open.close().await)),
        }
    }

    async fn connect(
        &self,
        shared: &SharedState,
        handshake: Handshake,
    ) -> Result<OpenConnection, OpenError> {
        let started = |group| self.record().group = Some(group);
        OpenConnection::new(
            &self.name,
            &self.config,
            &shared.connection_context,
            handshake,
            started,
        )
        .await
    }

    /// Replaces the tools of the server, in the catalog and in the cache.
    async fn set_tools(&self, shared: &SharedState, listed_tools: Vec<ListedTool>) {
        let (name, config) = (self.name.clone(), self.config.clone());
        let checked = tokio::task::spawn_blocking(move || {
            let known = entries(&name, &config, &listed_tools);
            (known, listed_tools)
        });
        let Ok((known, listed_tools)) = checked.await else {
            tracing::error!(mcp.server = %self.name, "its tools cannot be looked at");
            return;
        };
        let handshake = {
            let mut record = self.record();
            record.entries = known;
            record.handshake
        };
        shared.rebuild();
        shared.store(self, handshake, &listed_tools).await;
    }

    /// Watches a ready server until it disconnects, then closes it.
    async fn serve(
        &self,
        mut open: OpenConnection,
        shared: &SharedState,
        stop: &CancellationToken,
    ) {
        let connection = Arc::clone(&open.connection);
        let subscribing = timeout(SUBSCRIBE_LIMIT, open.listen());
        // Kept alive: dropping it ends the subscription.
        let _subscription = stop.run_until_cancelled(subscribing).await;
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = open.closed() => {}
            () = self.watch_tools(&connection, shared) => {}
        }
        let ended = open.close().await;
        if !stop.is_cancelled() {
            tracing::warn!(mcp.server = %self.name, "the MCP server {ended}");
            self.record().last_error = Some(format!("it {ended}"));
        }
        self.record().group = None;
    }

    /// Lists the tools again after each change. Never returns.
    async fn watch_tools(&self, connection: &Connection, shared: &SharedState) {
        loop {
            connection.traffic.tools_changed.notified().await;
            sleep(TOOLS_CHANGED_DELAY).await;
            let listing = list(&connection.peer, &self.config);
            match timeout(self.config.start_timeout, listing).await {
                Ok(Ok(listed_tools)) => self.set_tools(shared, listed_tools).await,
                Ok(Err(error)) => {
                    self.record().last_error = Some(list_failure(&error));
                }
                Err(_) => {
                    self.record().last_error = Some("it did not list its tools again".to_owned());
                }
            }
            sleep(LIST_INTERVAL_MIN).await;
        }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    /// Number of starts within the last minute.
    fn recent_starts(&mut self) -> usize {
        self.starts.retain(|start| start.elapsed() < MINUTE);
        self.starts.len()
    }

    fn started_now(&mut self) {
        self.starts.push_back(Instant::now());
        self.started += 1;
    }
}
