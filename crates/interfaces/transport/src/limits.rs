//! Limits of the server, so that no client can exhaust it.

use std::time::Duration;

/// Limits of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest body of a request, in bytes. A larger one is refused with 413.
    pub body_bytes_max: usize,
    /// Open connections, at most. The next one waits in the queue of the operating system.
    pub connections_max: usize,
    /// Open event streams, at most. The next one is refused with 503.
    pub streams_max: usize,
    /// How long the head of a request may take, and how long a connection may be idle.
    pub head_wait: Duration,
    /// How long the body of a request may take. A slower one is refused with 408.
    pub body_wait: Duration,
    /// How long a response may take to begin. A slower request is answered with 503; what was accepted
    /// continues.
    pub answer_wait: Duration,
    /// How long a client may read nothing of a response. A slower connection is closed.
    pub read_wait: Duration,
    /// Interval of heartbeats on an idle event stream.
    pub heartbeat: Duration,
    /// How long open requests may take to end at a shutdown.
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
