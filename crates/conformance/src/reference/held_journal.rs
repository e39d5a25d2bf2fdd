//! A journal for tests whose appends wait until the test lets them through, and that counts the approvals it lists.

use std::sync::atomic::{AtomicUsize, Ordering};

use antiphon_core::Approval;
use antiphon_core::port::{Append, Appended, ApprovalQuery, Journal, JournalError};
use async_trait::async_trait;
use tokio::sync::watch;

use super::{DelegatingJournal, JournalHooks, MemoryJournal};

/// A journal in memory. While it holds, appends wait; they have been received, and nothing of them is written.
pub struct HeldAppends {
    inner: MemoryJournal,
    holds: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
    approvals: AtomicUsize,
}

/// See [`HeldAppends`].
pub type HeldJournal = DelegatingJournal<HeldAppends>;

impl HeldJournal {
    /// A journal that does not hold yet.
    pub fn new() -> Self {
        Self(HeldAppends {
            inner: MemoryJournal::new(),
            holds: watch::Sender::new(false),
            waiting: watch::Sender::new(0),
            approvals: AtomicUsize::new(0),
        })
    }

    /// Appends wait from now on.
    pub fn hold(&self) {
        self.0.holds.send_replace(true);
    }

    /// All appends go through, those that wait and later ones.
    pub fn release(&self) {
        self.0.holds.send_replace(false);
    }

    /// How many approvals were listed since the last call.
    pub fn take_listed_approvals(&self) -> usize {
        self.0.approvals.swap(0, Ordering::SeqCst)
    }

    /// Returns when an append waits.
    pub async fn until_held(&self) {
        // The sender is in `self`.
        let _ = self.0.waiting.subscribe().wait_for(|waiting| *waiting > 0).await;
    }
}

impl Default for HeldJournal {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl JournalHooks for HeldAppends {
    fn inner(&self) -> &dyn Journal {
        &self.inner
    }

    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        let mut holds = self.holds.subscribe();
        if *holds.borrow_and_update() {
            self.waiting.send_modify(|waiting| *waiting += 1);
            // The sender is in `self`.
            let _ = holds.wait_for(|holds| !*holds).await;
            self.waiting.send_modify(|waiting| *waiting -= 1);
        }
        self.inner().append(append).await
    }

    async fn approvals(&self, query: ApprovalQuery) -> Result<Vec<Approval>, JournalError> {
        let listed = self.inner().approvals(query).await?;
        self.approvals.fetch_add(listed.len(), Ordering::SeqCst);
        Ok(listed)
    }
}
