//! The way out of all sandboxes of a process.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use antiphon_hosts::HostAccess;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::connection::{CallContext, serve};
use crate::resolver::Resolve;
use crate::traffic::Traffic;

/// Most connections of one call at a time. Further ones wait.
pub const CALL_CONNECTIONS_MAX: usize = 32;

/// Most connections of all calls at a time. Further ones wait. Each needs two descriptors, and many
/// systems give a process 1024.
pub const CONNECTIONS_MAX: usize = 128;

/// Pause after a connection could not be accepted, for instance without a free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The way out of all sandboxes of a process.
#[derive(Clone)]
pub struct Egress {
    resolver: Arc<dyn Resolve>,
    connections: Arc<Semaphore>,
}

impl Egress {
    /// Resolves names with `resolver`.
    pub fn new(resolver: Arc<dyn Resolve>) -> Self {
        Self { resolver, connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)) }
    }

    /// Serves the clients of one call. Does not return; when it is dropped, all connections end.
    pub async fn serve(&self, listener: TcpListener, access: HostAccess, traffic: Arc<Traffic>) {
        let resolver = Arc::clone(&self.resolver);
        let call = Arc::new(CallContext { access, resolver, traffic });
        let own = Arc::new(Semaphore::new(CALL_CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        loop {
            // The semaphores are never closed.
            let Ok(slot) = Arc::clone(&own).acquire_owned().await else { return };
            while connections.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((client, _)) => {
                    // Only now: a call without a connection must not take a place.
                    let shared = Arc::clone(&self.connections).acquire_owned().await;
                    let Ok(shared) = shared else { return };
                    let call = Arc::clone(&call);
                    connections.spawn(async move {
                        serve(client, call).await;
                        drop((slot, shared));
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress").finish_non_exhaustive()
    }
}
