//! One response of a conversation is created at a time: a request looks for the last response and creates the next one
//! while it holds the lock. Of two requests at once, the second finds the response of the first one unfinished.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use antiphon_core::SessionId;
use antiphon_interface_transport::answer::CreationLock;

/// Number of locks at which unused ones are dropped.
const CLEANUP_AT: usize = 1024;

/// A lock for each conversation of which a response is created. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConversationLocks {
    locks: Arc<Mutex<HashMap<SessionId, Weak<tokio::sync::Mutex<()>>>>>,
}

impl ConversationLocks {
    /// Waits until no other response of the conversation is being created.
    pub(crate) async fn lock(&self, conversation: &SessionId) -> CreationLock {
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            if locks.len() >= CLEANUP_AT {
                locks.retain(|_, lock| lock.strong_count() > 0);
            }
            let known = locks.get(conversation).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let lock = Arc::new(tokio::sync::Mutex::new(()));
                locks.insert(conversation.clone(), Arc::downgrade(&lock));
                lock
            })
        };
        lock.lock_owned().await
    }
}
