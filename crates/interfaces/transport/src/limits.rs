//! Limits of the server, so that no client can exhaust it.

use std::time::Duration;

/// Limits of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Largest body of a request, in bytes. A larger one is refused with 413.
    pub body_bytes_max: usize,
    /// Memory for bodies that are being received, over all connections, in bytes. A request beyond it is refused
    /// with 503. API keys and webhooks together may use three quarters of it.
    pub body_bytes_total_max: usize,
    /// Open TCP connections, at most. The next one waits in the queue of the operating system.
    pub connections_max: usize,
    /// Open connections of the Unix socket, at most. They are counted apart from TCP connections, so that no
    /// client of the network can keep the owner out.
    pub socket_connections_max: usize,
    /// Open event streams, at most. The next one is refused with 503. API keys together may have three quarters
    /// of them.
    pub streams_max: usize,
    /// Open requests of one API key, streams included, at most. The next one is refused with 429.
    pub requests_per_key_max: usize,
    /// Wrong tokens and keys of one address per minute. Further ones are refused with 429 in place of 401. A
    /// right token or key is accepted regardless.
    pub wrong_keys_per_minute: u32,
    /// The same, of all addresses together.
    pub wrong_keys_per_minute_total: u32,
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

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body_bytes_max: 16 * 1024 * 1024,
            body_bytes_total_max: 256 * 1024 * 1024,
            connections_max: 4096,
            socket_connections_max: 512,
            streams_max: 1024,
            requests_per_key_max: 128,
            wrong_keys_per_minute: 60,
            wrong_keys_per_minute_total: 1200,
            head_wait: Duration::from_secs(15),
            body_wait: Duration::from_secs(30),
            answer_wait: Duration::from_secs(60),
            read_wait: Duration::from_secs(60),
            heartbeat: Duration::from_secs(15),
            drain_wait: Duration::from_secs(10),
        }
    }
}
