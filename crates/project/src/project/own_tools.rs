//! The MCP servers of an owner's settings. They connect beside its start: other processes are served meanwhile, and
//! only tasks that this owner starts wait for the tools.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::environment::Warnings;
use crate::toolset::mcp_pool::{UsedServers, connect_servers};

/// MCP servers that connect.
pub(crate) struct OwnTools {
    /// Fires when each server has listed its tools, has failed, or took too long.
    ready: CancellationToken,
    connecting: Mutex<JoinSet<()>>,
}

impl OwnTools {
    /// Begins to connect.
    pub(crate) fn connect(servers: Arc<UsedServers>, warnings: Warnings) -> Arc<Self> {
        let (ready, mut connecting) = (CancellationToken::new(), JoinSet::new());
        let done = ready.clone();
        connecting.spawn(async move {
            connect_servers(&servers, &warnings).await;
            done.cancel();
        });
        Arc::new(Self { ready, connecting: Mutex::new(connecting) })
    }

    /// Whether no task has to wait.
    pub(crate) fn are_ready(&self) -> bool {
        self.ready.is_cancelled()
    }

    /// Waits for the tools.
    pub(crate) async fn ready(&self) {
        self.ready.cancelled().await;
    }

    /// Stops waiting for servers.
    pub(crate) async fn close(&self) {
        self.ready.cancel();
        let mut connecting =
            std::mem::take(&mut *self.connecting.lock().unwrap_or_else(PoisonError::into_inner));
        connecting.shutdown().await;
    }
}
