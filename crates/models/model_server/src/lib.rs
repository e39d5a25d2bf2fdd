//! A model server for tests and benchmarks: true to the wire, faulty on demand.
//!
//! It speaks HTTP/1.1 on a loopback port, writes the bytes it is given where and when it is told
//! to, and keeps what it was asked. No library stands between a test and the wire, so a reply can
//! be cut inside a chunk, stall, be reset or be no HTTP at all. It ends when it is dropped.
//!
//! [`ServedWire`] puts it behind a provider that is to pass the suite of
//! [`antiphon_conformance::provider`].

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

pub use reply::{Ending, Part, Reply};
pub use served_wire::{ServedWire, Telling};

/// Most connections at a time; more are closed at once.
pub const CONNECTIONS_MAX: usize = 20_000;

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// `POST`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Recorded {
    /// The body as JSON; `null` if it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The first header of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

type Answer = dyn Fn(&Recorded, usize) -> Reply + Send + Sync;

/// What every connection shares.
struct Shared {
    answer: Box<Answer>,
    requests: Mutex<Vec<Recorded>>,
    record: bool,
    traffic: watch::Sender<Traffic>,
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
        answer: impl Fn(&Recorded, usize) -> Reply + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        Self::start_with(answer, true).await
    }

    /// The same, without keeping requests: for benchmarks.
    pub async fn start_forgetful(
        answer: impl Fn(&Recorded, usize) -> Reply + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        Self::start_with(answer, false).await
    }

    async fn start_with(
        answer: impl Fn(&Recorded, usize) -> Reply + Send + Sync + 'static,
        record: bool,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            requests: Mutex::new(Vec::new()),
            record,
            traffic: watch::Sender::default(),
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

    /// What was asked so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many requests have been read.
    pub fn served(&self) -> usize {
        self.shared.traffic.borrow().begun
    }

    /// The requests as they come and go. One that has been read is open until the last byte of
    /// its reply is written or its peer has hung up, also while the reply waits or stalls.
    pub fn traffic(&self) -> watch::Receiver<Traffic> {
        self.shared.traffic.subscribe()
    }

    /// How many connections were ever made.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// How many connections are open.
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
