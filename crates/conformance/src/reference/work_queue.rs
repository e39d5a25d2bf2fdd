//! One queue of work items: queued and claimed items with their leases. Pure: the time is
//! passed in; the next call notices a lease that ran out.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use antiphon_core::port::WorkItem;
use tokio::time::Instant;

/// Items of one queue, oldest first.
#[derive(Debug, Default)]
pub(super) struct WorkQueue {
    items: HashMap<String, Entry>,
    /// Ordered by age.
    waiting: BTreeMap<u64, String>,
    /// Ordered by the end of their lease.
    claimed: BTreeSet<(Instant, String)>,
    enqueued: u64,
}

#[derive(Debug)]
struct Entry {
    payload: Vec<u8>,
    /// An item that returns to the queue returns to its old position.
    age: u64,
    held: Option<Hold>,
}

#[derive(Debug, Clone, Copy)]
struct Hold {
    fence: u64,
    until: Instant,
}

/// The claim is not held any more.
#[derive(Debug)]
pub(super) struct Lost;

impl WorkQueue {
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn holds(&self, id: &str) -> bool {
        self.items.contains_key(id)
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Time when the next lease runs out.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.claimed.first().map(|(until, _)| *until)
    }

    /// Adds an item that is not in the queue yet.
    pub(super) fn push(&mut self, item: WorkItem) {
        self.enqueued += 1;
        self.waiting.insert(self.enqueued, item.id.clone());
        let entry = Entry { payload: item.payload, age: self.enqueued, held: None };
        self.items.insert(item.id, entry);
    }

    /// Claims the oldest queued item, under `fence`.
    pub(super) fn claim(&mut self, fence: u64, until: Instant) -> Option<WorkItem> {
        let (_, id) = self.waiting.pop_first()?;
        let entry = self.items.get_mut(&id)?;
        entry.held = Some(Hold { fence, until });
        self.claimed.insert((until, id.clone()));
        Some(WorkItem { payload: entry.payload.clone(), id })
    }

    pub(super) fn finish(&mut self, id: &str, fence: u64) -> Result<(), Lost> {
        self.let_go(id, fence)?;
        self.items.remove(id);
        Ok(())
    }

    pub(super) fn release(&mut self, id: &str, fence: u64) -> Result<(), Lost> {
        self.let_go(id, fence)?;
        self.wait_again(id);
        Ok(())
    }

    pub(super) fn extend(&mut self, id: &str, fence: u64, until: Instant) -> Result<(), Lost> {
        self.let_go(id, fence)?;
        if let Some(entry) = self.items.get_mut(id) {
            entry.held = Some(Hold { fence, until });
            self.claimed.insert((until, id.to_owned()));
        }
        Ok(())
    }

    /// Queues items again whose lease has run out.
    pub(super) fn expire(&mut self, now: Instant) {
        while self.next_expiry().is_some_and(|until| until <= now) {
            if let Some((_, id)) = self.claimed.pop_first() {
                self.wait_again(&id);
            }
        }
    }

    fn let_go(&mut self, id: &str, fence: u64) -> Result<(), Lost> {
        let current = self.items.get(id).and_then(|entry| entry.held);
        let held = current.filter(|hold| hold.fence == fence).ok_or(Lost)?;
        self.claimed.remove(&(held.until, id.to_owned()));
        Ok(())
    }

    fn wait_again(&mut self, id: &str) {
        if let Some(entry) = self.items.get_mut(id) {
            entry.held = None;
            self.waiting.insert(entry.age, id.to_owned());
        }
    }
}
