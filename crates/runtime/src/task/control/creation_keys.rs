//! Idempotency keys of creations that are being written.
//!
//! The first model request of a task with a key may leave before the journal has the task if its key is new: no other creation
//! with the same key is being written, and the journal has not answered it. Of several creations with one key at a time, the
//! first alone may find that.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon_core::TaskId;
use antiphon_core::port::{IdempotencyKey, Journal};

/// The keys of creations that are being written.
#[derive(Debug, Default)]
pub(crate) struct CreationKeys(Mutex<HashSet<IdempotencyKey>>);

impl CreationKeys {
    fn keys(&self) -> MutexGuard<'_, HashSet<IdempotencyKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a key while its creation is written. `None` when another creation holds it.
    pub(crate) fn hold(&self, key: &IdempotencyKey) -> Option<HeldKey<'_>> {
        let is_free = self.keys().insert(key.clone());
        is_free.then(|| HeldKey { keys: self, key: key.clone() })
    }
}

/// A key that no other creation can hold. Dropping it releases the key.
#[derive(Debug)]
pub(crate) struct HeldKey<'a> {
    keys: &'a CreationKeys,
    key: IdempotencyKey,
}

impl HeldKey<'_> {
    /// Whether the key is new: the journal has not answered it, except with the task that is being written. A journal that
    /// cannot be read does not say so.
    pub(crate) async fn is_new(&self, task_id: &TaskId, journal: &dyn Journal) -> bool {
        match journal.answered(&self.key).await {
            Ok(answered) => answered.is_none_or(|first| first.task_id == *task_id),
            Err(_) => false,
        }
    }
}

impl Drop for HeldKey<'_> {
    fn drop(&mut self) {
        self.keys.keys().remove(&self.key);
    }
}
