//! State shared by all servers: catalog, tool cache and background tasks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::catalog::Catalog;
use crate::catalog::cache::ToolCache;
use crate::catalog::listed_tool::ListedTool;
use crate::config::ServerName;
use crate::connection::{ConnectionContext, Handshake};
use crate::server::Server;

pub(crate) struct SharedState {
    pub(crate) connection_context: ConnectionContext,
    pub(crate) servers: BTreeMap<ServerName, Arc<Server>>,
    pub(crate) cache_file: Option<PathBuf>,
    /// Canceled at shutdown.
    pub(crate) stop: CancellationToken,
    /// Owns every spawned task.
    pub(crate) tracker: TaskTracker,
    /// Set once the supervisors of the servers run.
    pub(crate) initialized: OnceCell<()>,
    catalog: RwLock<Arc<Catalog>>,
    known: Mutex<ToolCache>,
    /// Locked while the cache file is written, so that the last write has the latest data.
    writing: tokio::sync::Mutex<()>,
}

impl SharedState {
    pub(crate) fn new(
        connection_context: ConnectionContext,
        servers: BTreeMap<ServerName, Arc<Server>>,
        cache_file: Option<PathBuf>,
    ) -> Self {
        Self {
            connection_context,
            servers,
            cache_file,
            stop: CancellationToken::new(),
            tracker: TaskTracker::new(),
            initialized: OnceCell::new(),
            catalog: RwLock::default(),
            known: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// The current catalog.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Rebuilds the catalog from the entries of each server.
    pub(crate) fn rebuild(&self) {
        // Under the lock, so that of two concurrent rebuilds the last includes both changes.
        let mut catalog = self.catalog.write().unwrap_or_else(PoisonError::into_inner);
        *catalog = Arc::new(Catalog::new(self.servers.values().map(|server| server.entries())));
    }

    /// Reads the tool lists from the cache file. Blocks.
    pub(crate) fn load_cached(&self) {
        let Some(path) = &self.cache_file else {
            return;
        };
        let mut known = ToolCache::load(path);
        known.keep_only(|name| self.servers.contains_key(name));
        for server in self.servers.values() {
            if let Some((handshake, listed_tools)) = known.of(&server.name, &server.config) {
                server.load_cached(handshake, listed_tools);
            }
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
        self.rebuild();
    }

    /// Stores the tools of a server in the cache file.
    pub(crate) async fn store(
        &self,
        server: &Server,
        handshake: Handshake,
        listed_tools: &[ListedTool],
    ) {
        let Some(path) = self.cache_file.clone() else {
            return;
        };
        let changed = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.store(&server.name, &server.config, handshake, listed_tools)
        };
        if changed {
            let _writing = self.writing.lock().await;
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
            // Without the file the next run has to start the server to list its tools.
            let _ = tokio::task::spawn_blocking(move || known.save(&path)).await;
        }
    }
}
