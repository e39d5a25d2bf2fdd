//! What all servers have in common.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cache::Known;
use crate::catalog::Catalog;
use crate::config::ServerName;
use crate::connection::{Greeting, Surroundings};
use crate::offer::Offer;
use crate::server::Server;

pub(crate) struct Shared {
    pub(crate) surroundings: Surroundings,
    pub(crate) servers: BTreeMap<ServerName, Arc<Server>>,
    pub(crate) cache_file: Option<PathBuf>,
    /// Fires when all is over.
    pub(crate) stop: CancellationToken,
    /// Owns every task.
    pub(crate) tracker: TaskTracker,
    /// Set once the servers are looked after.
    pub(crate) begun: OnceCell<()>,
    catalog: RwLock<Arc<Catalog>>,
    known: Mutex<Known>,
    /// Held while the file is written, so that the last to know is the last to write.
    writing: tokio::sync::Mutex<()>,
}

impl Shared {
    pub(crate) fn new(
        surroundings: Surroundings,
        servers: BTreeMap<ServerName, Arc<Server>>,
        cache_file: Option<PathBuf>,
    ) -> Self {
        Self {
            surroundings,
            servers,
            cache_file,
            stop: CancellationToken::new(),
            tracker: TaskTracker::new(),
            begun: OnceCell::new(),
            catalog: RwLock::default(),
            known: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// The tools there are now.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the catalog anew from what each server has.
    pub(crate) fn rebuild(&self) {
        // Under the lock, so that of two at once the last sees what both did.
        let mut catalog = self.catalog.write().unwrap_or_else(PoisonError::into_inner);
        *catalog = Arc::new(Catalog::new(self.servers.values().map(|server| server.entries())));
    }

    /// Reads what is known from before. Blocks.
    pub(crate) fn recall(&self) {
        let Some(path) = &self.cache_file else {
            return;
        };
        let mut known = Known::load(path);
        known.keep_only(|name| self.servers.contains_key(name));
        for server in self.servers.values() {
            if let Some((greeting, offers)) = known.of(&server.name, &server.config) {
                server.recall(greeting, offers);
            }
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
        self.rebuild();
    }

    /// Keeps what a server offers for the next time.
    pub(crate) async fn remember(&self, server: &Server, greeting: Greeting, offers: &[Offer]) {
        let Some(path) = self.cache_file.clone() else {
            return;
        };
        let news = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.remember(&server.name, &server.config, greeting, offers)
        };
        if news {
            let _writing = self.writing.lock().await;
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
            // A file that was not written costs a start.
            let _ = tokio::task::spawn_blocking(move || known.save(&path)).await;
        }
    }
}
