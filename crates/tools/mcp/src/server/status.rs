//! Status of the servers, for users and diagnostics.

use serde::Serialize;

use crate::config::ServerName;

/// Status of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerStatus {
    /// Name from the configuration.
    pub name: ServerName,
    /// Current state.
    #[serde(flatten)]
    pub state: ServerState,
    /// Number of its tools that can be called.
    pub tools: usize,
    /// Number of starts after the first.
    pub restarts: u32,
    /// The last error, also after a recovery; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// State of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ServerState {
    /// Not running: no call has needed it yet, or it exited. The next call starts it.
    Idle,
    /// The process or connection is being started.
    Starting,
    /// Connected; calls can run.
    Ready,
    /// It could not be started, or ended too often. The next start follows after a pause.
    Failed {
        /// Cause of the last failure.
        reason: String,
    },
}
