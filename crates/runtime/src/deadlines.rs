//! When approvals that nobody answers are answered by the clock.
//!
//! One future sleeps until the next of them; a task that waits costs nothing.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::ApprovalId;
use antiphon_core::port::Clock;
use chrono::{DateTime, Utc};
use tokio::sync::Notify;

/// Approvals by the time they expire.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    waiting: Mutex<BTreeSet<(DateTime<Utc>, ApprovalId)>>,
    changed: Notify,
}

impl Deadlines {
    pub(crate) fn add(&self, at: DateTime<Utc>, approval_id: ApprovalId) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert((at, approval_id));
        self.changed.notify_one();
    }

    /// The next approval whose time is over. Cancel safe: one that was not returned is still
    /// there.
    pub(crate) async fn next(&self, clock: &Arc<dyn Clock>) -> ApprovalId {
        loop {
            let now = clock.now();
            let first = {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                match waiting.first() {
                    Some((at, _)) if *at <= now => waiting.pop_first(),
                    Some(_) | None => None,
                }
            };
            if let Some((_, approval_id)) = first {
                return approval_id;
            }
            let next = {
                let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.first().map(|(at, _)| (*at - now).to_std().unwrap_or_default())
            };
            let changed = self.changed.notified();
            match next {
                Some(wait) => {
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = changed => {}
                    }
                }
                None => changed.await,
            }
        }
    }
}
