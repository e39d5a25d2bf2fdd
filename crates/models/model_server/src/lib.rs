//! Plays the HTTP server of a model provider, for tests and benchmarks only. It can fail on demand.
//!
//! It speaks HTTP/1.1 on a loopback port, writes the given bytes at the given times, and records
//! requests. No HTTP library is involved, so a reply can be cut inside of a chunk, stall, be reset
//! or be no HTTP at all. The server ends when it is dropped.
//!
//! [`ServedWire`] runs the suite of [`antiphon_conformance::provider`] against a provider over this
//! server.

mod connection;
mod reply;
mod served_wire;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_conformance::provider::Traffic;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

pub use reply::{Ending, Part, Release, Reply};
pub use served_wire::{ServedWire, WireWriter};

/// Most connections at a time; further ones are closed at once.
pub const CONNECTIONS_MAX: usize = 20_000;

/// A received request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    /// The method, such as `POST`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names in lower case, in the order of arrival.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl RecordedRequest {
    /// The body as JSON; `null` if it is not JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

type Answer = dyn Fn(&RecordedRequest, usize) -> Reply + Send + Sync;

/// State that all connections share.
struct Shared {
    answer: Box<Answer>,
    requests: Mutex<Vec<RecordedRequest>>,
    record: bool,
    traffic: watch::Sender<Traffic>,
    release: watch::Sender<Option<Release>>,
    held: AtomicUsize,
    connections: AtomicUsize,
    open: AtomicUsize,
}

/// A running server.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
    /// Owns the accept loop, which owns the connections.
    _tasks: JoinSet<()>,
}

impl ModelServer {
    /// Starts a server that answers the n-th request (from 0) with `answer(request, n)`.
    pub async fn start(
        answer: impl Fn(&RecordedRequest, usize) -> Reply + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        Self::start_with(answer, true).await
    }

    /// The same without recording requests: for benchmarks.
    pub async fn start_forgetful(
        answer: impl Fn(&RecordedRequest, usize) -> Reply + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        Self::start_with(answer, false).await
    }

    async fn start_with(
        answer: impl Fn(&RecordedRequest, usize) -> Reply + Send + Sync + 'static,
        record: bool,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            requests: Mutex::new(Vec::new()),
            record,
            traffic: watch::Sender::default(),
            release: watch::Sender::default(),
            held: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
        });
        let mut tasks = JoinSet::new();
        let accepting = tasks.spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, accepting, _tasks: tasks })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The recorded requests.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Number of requests that were read.
    pub fn served(&self) -> usize {
        self.shared.traffic.borrow().begun
    }

    /// Counts of open and finished requests. A request is open from when it is read until the last
    /// byte of its reply is written or its peer disconnects, also while the reply waits or stalls.
    pub fn traffic(&self) -> watch::Receiver<Traffic> {
        self.shared.traffic.subscribe()
    }

    /// Continues or cuts every reply at [`Part::Hold`], those that are held and those that come.
    pub fn release(&self, release: Release) {
        self.shared.release.send_replace(Some(release));
    }

    /// Number of replies that are held.
    pub fn held(&self) -> usize {
        self.shared.held.load(Ordering::SeqCst)
    }

    /// Number of connections ever made.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Number of open connections.
    pub fn open_connections(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        if connections.len() < CONNECTIONS_MAX {
            connections.spawn(connection::serve(socket, Arc::clone(&shared)));
        }
    }
}
