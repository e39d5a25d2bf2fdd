//! What stands behind the door, and how much of it anybody gets.

use std::sync::Arc;
use std::time::Duration;

use antiphon_runtime::Orchestrator;

use crate::desk::TaskFactory;
use crate::token::Token;

/// What stands behind the door.
#[derive(Clone)]
pub struct ServerDeps {
    /// Who does as told.
    pub orchestrator: Orchestrator,
    /// Who makes tasks of requests.
    pub desk: Arc<dyn TaskFactory>,
    /// What a client has to show.
    pub token: Token,
    /// Names this server goes by beside those of the loopback: `name`, or `name:port`.
    pub hosts: Vec<String>,
    /// How much anybody gets.
    pub limits: Limits,
}

/// How much anybody gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest body of a request. A larger one is refused with 413.
    pub body_bytes_max: usize,
    /// Connections at a time. The next one waits in the queue of the system.
    pub connections_max: usize,
    /// Streams of events at a time. The next one is refused with 503.
    pub streams_max: usize,
    /// How long the head of a request may take, and how long a connection may be idle.
    pub head_wait: Duration,
    /// How long the body of a request may take. A slower one is refused with 408.
    pub body_wait: Duration,
    /// How long an answer may take to begin. A slower one is given up with 503; what was accepted
    /// goes on.
    pub answer_wait: Duration,
    /// How long a client may read nothing of what it is sent. A slower one is cut off.
    pub read_wait: Duration,
    /// How often a stream with nothing to say says so.
    pub heartbeat: Duration,
    /// How long requests that are under way may take to end at a shutdown.
    pub drain_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 16 * 1024 * 1024,
            connections_max: 4096,
            streams_max: 1024,
            head_wait: Duration::from_secs(15),
            body_wait: Duration::from_secs(30),
            answer_wait: Duration::from_secs(60),
            read_wait: Duration::from_secs(60),
            heartbeat: Duration::from_secs(15),
            drain_wait: Duration::from_secs(10),
        }
    }
}
