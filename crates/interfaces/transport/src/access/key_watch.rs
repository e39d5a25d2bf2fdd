//! Ends what a client has open once its key no longer allows it: the key was revoked, has expired, was
//! downgraded, its secret was rotated, or the file of keys cannot be read. Nothing stays open for longer than a
//! second.
//!
//! Before a response begins, the request is answered with 401. After that the connection is closed, also when
//! the client reads nothing: a stream that no longer moves cannot be waited for.

use std::sync::Arc;
use std::time::Duration;

use antiphon_keys::{KeyGrant, PresentedKey};
use tokio::sync::watch;

use crate::state::AppState;

/// How often an open request checks its key. Together with [`RELOAD_EVERY`](antiphon_keys::RELOAD_EVERY) less
/// than a second.
const CHECK_EVERY: Duration = Duration::from_millis(250);

/// A key that something was opened with.
pub(crate) struct KeyWatch {
    state: Arc<AppState>,
    presented: PresentedKey,
    /// What the key allowed when the request came.
    grant: KeyGrant,
}

impl KeyWatch {
    pub(crate) fn new(state: &Arc<AppState>, presented: PresentedKey, grant: KeyGrant) -> Self {
        Self { state: Arc::clone(state), presented, grant }
    }

    /// Ready once the key no longer allows what it allowed. Cancel safe.
    pub(crate) async fn lost(&self) {
        loop {
            tokio::time::sleep(CHECK_EVERY).await;
            let checked = self.state.keys.as_ref().map(|keys| keys.ring.check(&self.presented));
            let still_allowed = matches!(checked, Some(Ok(now)) if now.covers(&self.grant));
            if !still_allowed {
                tracing::info!(key.id = %self.grant.id, "a key lost its access: what it had open ends");
                return;
            }
        }
    }
}

/// The key whose response a connection is sending, if any.
#[derive(Clone)]
pub(crate) struct ConnectionKey(watch::Sender<Option<Arc<KeyWatch>>>);

impl ConnectionKey {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    pub(crate) fn set(&self, key: Option<Arc<KeyWatch>>) {
        self.0.send_if_modified(|current| {
            let changes = current.is_some() || key.is_some();
            *current = key;
            changes
        });
    }

    /// Ready once the key of the current response no longer allows it. Cancel safe.
    pub(crate) async fn lost(&self) {
        let mut keys = self.0.subscribe();
        loop {
            let key = keys.borrow_and_update().clone();
            let lost = async {
                match &key {
                    Some(key) => key.lost().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = lost => return,
                // The sender is this value: it exists as long as the receiver.
                _ = keys.changed() => {}
            }
        }
    }
}
