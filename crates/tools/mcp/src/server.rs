//! One server over time.
//!
//! | state    | until                | then                                                     |
//! |----------|----------------------|----------------------------------------------------------|
//! | idle     | somebody wants it    | starting                                                 |
//! | starting | it lists its tools   | ready; or failed, if it does not                         |
//! | ready    | it is gone           | idle                                                     |
//! | failed   | its pause is over    | as idle; until then, calls fail at once with the reason  |
//!
//! One task owns all of it, so that a start does not end with the call that caused it. Each start
//! after the first waits a little longer, and a server that was started [`RESTARTS_PER_MINUTE_MAX`]
//! times again within a minute is left alone for one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::catalog::{Entry, entries};
use crate::config::{ServerConfig, ServerName};
use crate::connection::{Connection, Greeting, Open, OpenError, list_failure};
use crate::listing::list;
use crate::offer::Offer;
use crate::process::ProcessGroup;
use crate::shared::Shared;
use crate::status::{ServerState, ServerStatus};

/// Calls of one server at a time. Further ones wait.
pub const CALLS_MAX: usize = 32;

/// How often a server may be started again within a minute.
pub const RESTARTS_PER_MINUTE_MAX: usize = 3;

const MINUTE: Duration = Duration::from_secs(60);

/// How long to wait before the first, second and third start after a death.
const RESTART_DELAYS: [Duration; RESTARTS_PER_MINUTE_MAX] =
    [Duration::from_millis(100), Duration::from_millis(400), Duration::from_millis(1600)];

/// How long a server that could not be started is left alone, the first time and after.
const FAILURE_PAUSES: [Duration; RESTARTS_PER_MINUTE_MAX] =
    [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(30)];

/// News of tools that come together are dealt with together.
const NEWS_DELAY: Duration = Duration::from_millis(50);

/// How soon after a list the next one is asked for.
const NEWS_PAUSE: Duration = Duration::from_secs(1);

/// How long a server may take to agree to tell news.
const LISTEN_LIMIT: Duration = Duration::from_secs(5);

/// A server, started or not.
pub(crate) struct Server {
    pub(crate) name: ServerName,
    pub(crate) config: ServerConfig,
    /// Places for calls.
    pub(crate) calls: Semaphore,
    phase: watch::Sender<Phase>,
    wanted: AtomicBool,
    want: Notify,
    record: Mutex<Record>,
}

/// What a server is doing.
enum Phase {
    Idle,
    Starting,
    Ready(Arc<Connection>),
    Failed {
        reason: String,
        until: Instant,
    },
    /// It will not be started any more.
    Over,
}

/// What is remembered of it.
struct Record {
    entries: Arc<[Arc<Entry>]>,
    greeting: Greeting,
    group: Option<Arc<ProcessGroup>>,
    /// Of the last minute.
    starts: VecDeque<Instant>,
    started: u32,
    last_error: Option<String>,
}

/// Why a server is not there.
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
            wanted: AtomicBool::new(false),
            want: Notify::new(),
            record: Mutex::new(Record {
                entries: Arc::from([]),
                greeting: Greeting::Either,
                group: None,
                starts: VecDeque::new(),
                started: 0,
                last_error: None,
            }),
        }
    }

    /// The connection, when there is one. An error is why there will be none soon. Safe to cancel.
    pub(crate) async fn connection(&self) -> Result<Arc<Connection>, String> {
        let mut phase = self.phase.subscribe();
        loop {
            match &*phase.borrow_and_update() {
                Phase::Ready(connection) if !connection.traffic.gone.is_cancelled() => {
                    return Ok(Arc::clone(connection));
                }
                Phase::Failed { reason, until } if Instant::now() < *until => {
                    let seconds = until.duration_since(Instant::now()).as_secs() + 1;
                    return Err(format!("{reason} (it is tried again in {seconds} s)"));
                }
                Phase::Over => return Err("it has been shut down".to_owned()),
                Phase::Starting => {}
                Phase::Idle | Phase::Ready(_) | Phase::Failed { .. } => {
                    self.wanted.store(true, Ordering::Release);
                    self.want.notify_one();
                }
            }
            if phase.changed().await.is_err() {
                return Err("it has been shut down".to_owned());
            }
        }
    }

    pub(crate) fn entries(&self) -> Arc<[Arc<Entry>]> {
        Arc::clone(&self.record().entries)
    }

    /// Takes what is known from before: the server need not be started to list its tools.
    pub(crate) fn recall(&self, greeting: Greeting, offers: &[Offer]) {
        let known = entries(&self.name, &self.config, offers);
        let mut record = self.record();
        record.greeting = greeting;
        record.entries = known;
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let state = match &*self.phase.borrow() {
            Phase::Starting => ServerState::Starting,
            Phase::Ready(_) => ServerState::Ready,
            Phase::Failed { reason, .. } => ServerState::Failed { reason: reason.clone() },
            Phase::Idle | Phase::Over => ServerState::Idle,
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

    /// Kills its process, whatever it is doing.
    pub(crate) fn kill(&self) {
        let group = self.record().group.take();
        if let Some(group) = group {
            group.end();
        }
    }

    /// Starts the server when it is wanted, again and again, until `stop`.
    pub(crate) async fn supervise(self: Arc<Self>, shared: Arc<Shared>, stop: CancellationToken) {
        while stop.run_until_cancelled(self.until_wanted()).await.is_some() {
            self.phase.send_replace(Phase::Starting);
            let Some(started) = stop.run_until_cancelled(self.start(&shared)).await else {
                break;
            };
            self.wanted.store(false, Ordering::Release);
            match started {
                Ok(open) => {
                    self.phase.send_replace(Phase::Ready(Arc::clone(&open.connection)));
                    self.serve(open, &shared, &stop).await;
                    self.wanted.store(false, Ordering::Release);
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
        self.phase.send_replace(Phase::Over);
        self.kill();
    }

    async fn until_wanted(&self) {
        while !self.wanted.load(Ordering::Acquire) {
            self.want.notified().await;
        }
    }

    /// Starts the server and asks for its tools. Canceled, the server is killed.
    async fn start(&self, shared: &Shared) -> Result<Open, Failure> {
        let recent = self.record().starting();
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
            Ok((open, offers)) => {
                self.record().greeting = open.greeting();
                self.adopt(shared, offers).await;
                Ok(open)
            }
            Err(reason) => {
                let pause = FAILURE_PAUSES.get(recent).copied().unwrap_or(MINUTE);
                Err(Failure { reason, pause })
            }
        }
    }

    async fn open(&self, shared: &Shared) -> Result<(Open, Vec<Offer>), String> {
        let greeting = self.record().greeting;
        let open = match self.greeted(shared, greeting).await {
            // Some servers end when they hear a word they do not know, and one that is known may have
            // been replaced by a newer one.
            Err(OpenError::Refused(_)) => self.greeted(shared, greeting.other()).await,
            other => other,
        };
        let open = open.map_err(|error| match error {
            OpenError::Hopeless(reason) | OpenError::Refused(reason) => reason,
        })?;
        match list(&open.connection.peer, &self.config).await {
            Ok(offers) => Ok((open, offers)),
            Err(error) => Err(format!("{}; it {}", list_failure(&error), open.close().await)),
        }
    }

    async fn greeted(&self, shared: &Shared, greeting: Greeting) -> Result<Open, OpenError> {
        let started = |group| self.record().group = Some(group);
        Open::new(&self.name, &self.config, &shared.surroundings, greeting, started).await
    }

    /// Makes these the server's tools.
    async fn adopt(&self, shared: &Shared, offers: Vec<Offer>) {
        let (name, config) = (self.name.clone(), self.config.clone());
        let looked_at = tokio::task::spawn_blocking(move || {
            let known = entries(&name, &config, &offers);
            (known, offers)
        });
        let Ok((known, offers)) = looked_at.await else {
            tracing::error!(mcp.server = %self.name, "its tools cannot be looked at");
            return;
        };
        let greeting = {
            let mut record = self.record();
            record.entries = known;
            record.greeting
        };
        shared.rebuild();
        shared.remember(self, greeting, &offers).await;
    }

    /// Looks after a server that is ready until it is gone.
    async fn serve(&self, mut open: Open, shared: &Shared, stop: &CancellationToken) {
        let connection = Arc::clone(&open.connection);
        let news = timeout(LISTEN_LIMIT, open.listen());
        // Kept: it ends the news when it is dropped.
        let _news = stop.run_until_cancelled(news).await;
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = open.gone() => {}
            () = self.follow_news(&connection, shared) => {}
        }
        let ended = open.close().await;
        if !stop.is_cancelled() {
            tracing::warn!(mcp.server = %self.name, "the MCP server {ended}");
            self.record().last_error = Some(format!("it {ended}"));
        }
        self.record().group = None;
    }

    /// Asks for the tools again whenever they have changed. Does not end.
    async fn follow_news(&self, connection: &Connection, shared: &Shared) {
        loop {
            connection.traffic.tools_changed.notified().await;
            sleep(NEWS_DELAY).await;
            let asked = list(&connection.peer, &self.config);
            match timeout(self.config.start_timeout, asked).await {
                Ok(Ok(offers)) => self.adopt(shared, offers).await,
                Ok(Err(error)) => {
                    self.record().last_error = Some(list_failure(&error));
                }
                Err(_) => {
                    self.record().last_error = Some("it did not list its tools again".to_owned());
                }
            }
            sleep(NEWS_PAUSE).await;
        }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    /// How often it was started within the last minute.
    fn starting(&mut self) -> usize {
        self.starts.retain(|start| start.elapsed() < MINUTE);
        self.starts.len()
    }

    fn started_now(&mut self) {
        self.starts.push_back(Instant::now());
        self.started += 1;
    }
}
