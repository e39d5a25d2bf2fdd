//! A limited amount that all callers share. API keys and webhooks together get at most three quarters, so that
//! the owner always finds a rest.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access::caller::Caller;

/// One part in so many is kept for the owner.
const OWNER_PART: usize = 4;

/// A limited amount that all callers share.
#[derive(Debug)]
pub(crate) struct SharedLimit {
    all: Arc<Semaphore>,
    /// What callers other than the owner may have of it.
    others: Arc<Semaphore>,
}

/// A part of a shared limit, free again when dropped.
#[derive(Debug)]
pub struct Reservation {
    all: OwnedSemaphorePermit,
    others: Option<OwnedSemaphorePermit>,
}

impl SharedLimit {
    pub(crate) fn new(max: usize) -> Self {
        let of = |max| Arc::new(Semaphore::new(max));
        Self { all: of(max), others: of(max - max / OWNER_PART) }
    }

    /// Reserves an amount for a caller, who is absent where a signature is the credential. `None` when there is
    /// not enough left.
    pub(crate) fn reserve(&self, caller: Option<&Caller>, amount: u32) -> Option<Reservation> {
        let take = |from: &Arc<Semaphore>| Arc::clone(from).try_acquire_many_owned(amount).ok();
        let others = match caller {
            Some(Caller::Owner) => None,
            Some(Caller::Key(_)) | None => Some(take(&self.others)?),
        };
        Some(Reservation { all: take(&self.all)?, others })
    }
}

impl Reservation {
    /// Adds another reservation of the same caller.
    pub(crate) fn merge(&mut self, other: Self) {
        self.all.merge(other.all);
        match (&mut self.others, other.others) {
            (Some(own), Some(more)) => own.merge(more),
            (own @ None, more) => *own = more,
            (Some(_), None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_leave_a_quarter_to_the_owner() {
        let limit = SharedLimit::new(8);
        let mut held: Vec<Reservation> = (0..6).filter_map(|_| limit.reserve(None, 1)).collect();
        assert_eq!(held.len(), 6);
        assert!(limit.reserve(None, 1).is_none());
        let owner = limit.reserve(Some(&Caller::Owner), 2);
        assert!(owner.is_some());
        assert!(limit.reserve(Some(&Caller::Owner), 1).is_none());
        held.pop();
        assert!(limit.reserve(None, 1).is_some());
        drop(owner);
        let mut first = limit.reserve(None, 1);
        assert!(first.is_some());
        if let (Some(first), Some(owners)) = (&mut first, limit.reserve(Some(&Caller::Owner), 2)) {
            first.merge(owners);
        }
        assert!(limit.reserve(Some(&Caller::Owner), 1).is_none());
        drop(first);
        assert!(limit.reserve(Some(&Caller::Owner), 3).is_some());
    }
}
