//! How the servers are doing, for those who ask.

use serde::Serialize;

use crate::config::ServerName;

/// One server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerStatus {
    /// Which.
    pub name: ServerName,
    /// What it is doing.
    #[serde(flatten)]
    pub state: ServerState,
    /// How many of its tools can be called.
    pub tools: usize,
    /// How often it was started again.
    pub restarts: u32,
    /// What went wrong last, also when all is well by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// What a server is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ServerState {
    /// Not started: nobody has called it yet, or it ended by itself. The next call starts it.
    Idle,
    /// Being started.
    Starting,
    /// Ready for calls.
    Ready,
    /// It could not be started, or died too often. It is tried again after a while.
    Failed {
        /// Why.
        reason: String,
    },
}
