//! Idempotency keys of creations that are being written.
//!
//! The first model request of a task with a key may leave before the journal has the task if its key is new: the journal has not
//! answered it, and no other creation with the same key is being written. Of several creations with one key at a time, any may be
//! the first in the journal: then none is known to be new.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon_core::TaskId;
use antiphon_core::port::{IdempotencyKey, Journal};

/// The keys of creations that are being written.
#[derive(Debug, Default)]
pub(crate) struct CreationKeys(Mutex<HashMap<IdempotencyKey, Creations>>);

/// Creations with one key.
#[derive(Debug)]
struct Creations {
    /// Those that are being written.
    count: usize,
    /// Whether there was a second one since the first of them began.
    is_shared: bool,
}

impl CreationKeys {
    fn keys(&self) -> MutexGuard<'_, HashMap<IdempotencyKey, Creations>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a creation with this key is written, until what is returned is dropped. Call it before the journal gets the
    /// creation.
    pub(crate) fn begin(&self, key: &IdempotencyKey) -> WrittenKey<'_> {
        match self.keys().entry(key.clone()) {
            Entry::Occupied(mut others) => {
                let others = others.get_mut();
                others.count += 1;
                others.is_shared = true;
            }
            Entry::Vacant(none) => {
                none.insert(Creations { count: 1, is_shared: false });
            }
        }
        WrittenKey { keys: self, key: key.clone() }
    }
}

/// The key of a creation that is being written.
#[derive(Debug)]
pub(crate) struct WrittenKey<'a> {
    keys: &'a CreationKeys,
    key: IdempotencyKey,
}

impl WrittenKey<'_> {
    /// Whether the key is new: the journal has not answered it, except with the task that is being written, and no other creation
    /// may answer it first. A journal that cannot be read does not say so. To be asked after the journal got the creation: those
    /// that begin later are behind it.
    pub(crate) async fn is_new(&self, task_id: &TaskId, journal: &dyn Journal) -> bool {
        let is_unanswered = match journal.answered(&self.key).await {
            Ok(answered) => answered.is_none_or(|first| first.task_id == *task_id),
            Err(_) => false,
        };
        is_unanswered && !self.is_shared()
    }

    fn is_shared(&self) -> bool {
        self.keys.keys().get(&self.key).is_some_and(|creations| creations.is_shared)
    }
}

impl Drop for WrittenKey<'_> {
    fn drop(&mut self) {
        let mut keys = self.keys.keys();
        let Some(creations) = keys.get_mut(&self.key) else { return };
        creations.count -= 1;
        if creations.count == 0 {
            keys.remove(&self.key);
        }
    }
}
