//! A bus within one process. It fails only at its bounds. Dropping it loses everything, which is
//! allowed: the journal is the truth.
//!
//! A lease ends when its time is over, whether or not another worker wants the item.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antiphon_core::port::{Bus, BusError, Claim, Delivery, Subscription, Topic, WorkItem};
use async_trait::async_trait;
use futures_util::stream;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, broadcast};
use tokio::time::{Instant, timeout_at};

use super::work_queue::WorkQueue;

/// Unread payloads kept for a subscriber. One more drops the oldest, which the subscriber learns.
pub const LIVE_BACKLOG_MAX: usize = 256;

/// Items in one queue, queued and claimed. One more is [`BusError::Full`].
pub const QUEUE_ITEMS_MAX: usize = 65_536;

/// Topics with subscribers, and queues in use. One more is [`BusError::Full`].
pub const TOPICS_MAX: usize = 65_536;

/// The longest lease that the clock can count; longer ones are cut to it.
const LEASE_MAX: Duration = Duration::from_hours(365 * 24);

/// A bus in memory.
#[derive(Debug, Default)]
pub struct MemoryBus {
    live: Mutex<HashMap<Topic, broadcast::Sender<Vec<u8>>>>,
    queues: Mutex<HashMap<Topic, Arc<Counter>>>,
    /// One counter for all queues, so that an item that is queued again gets a higher fence.
    fence: AtomicU64,
}

/// The workers that wait for items of one queue.
#[derive(Debug, Default)]
struct Counter {
    queue: Mutex<WorkQueue>,
    /// Notifies one worker of a queued item, and all workers of a lease that ends sooner than they
    /// know.
    changed: Notify,
}

impl MemoryBus {
    /// An empty bus.
    pub fn new() -> Self {
        Self::default()
    }

    fn counter(&self, topic: &Topic) -> Result<Arc<Counter>, BusError> {
        let mut queues = lock(&self.queues);
        if let Some(counter) = queues.get(topic) {
            return Ok(Arc::clone(counter));
        }
        if queues.len() >= TOPICS_MAX {
            queues.retain(|_, counter| {
                Arc::strong_count(counter) > 1 || lock(&counter.queue).len() > 0
            });
        }
        if queues.len() >= TOPICS_MAX {
            return Err(full(topic, TOPICS_MAX));
        }
        let counter = Arc::<Counter>::default();
        queues.insert(topic.clone(), Arc::clone(&counter));
        Ok(counter)
    }

    /// Claims the oldest queued item.
    fn try_claim(&self, counter: &Counter, topic: &Topic, lease: Duration) -> Option<Claim> {
        let mut queue = counter.looked_at();
        if !queue.has_waiting() {
            return None;
        }
        let expiry_known = queue.next_expiry();
        let until = Instant::now() + lease.min(LEASE_MAX);
        let fence = self.fence.fetch_add(1, Ordering::Relaxed) + 1;
        let item = queue.claim(fence, until)?;
        if queue.has_waiting() {
            counter.changed.notify_one();
        }
        if expiry_known.is_none_or(|known| until < known) {
            counter.changed.notify_waiters();
        }
        Some(Claim { queue: topic.clone(), item, fence })
    }
}

impl Counter {
    /// The queue as of now.
    fn looked_at(&self) -> MutexGuard<'_, WorkQueue> {
        let mut queue = lock(&self.queue);
        queue.expire(Instant::now());
        queue
    }
}

#[async_trait]
impl Bus for MemoryBus {
    async fn publish(&self, topic: &Topic, payload: Vec<u8>) -> Result<(), BusError> {
        let mut live = lock(&self.live);
        if let Some(sender) = live.get(topic)
            && sender.send(payload).is_err()
        {
            live.remove(topic);
        }
        Ok(())
    }

    async fn subscribe(&self, topic: &Topic) -> Result<Subscription, BusError> {
        let mut live = lock(&self.live);
        if live.len() >= TOPICS_MAX && !live.contains_key(topic) {
            live.retain(|_, sender| sender.receiver_count() > 0);
            if live.len() >= TOPICS_MAX {
                return Err(full(topic, TOPICS_MAX));
            }
        }
        let receiver = live
            .entry(topic.clone())
            .or_insert_with(|| broadcast::Sender::new(LIVE_BACKLOG_MAX))
            .subscribe();
        Ok(Box::pin(stream::unfold(receiver, |mut receiver| async {
            let delivery = match receiver.recv().await {
                Ok(payload) => Delivery::Payload(payload),
                Err(RecvError::Lagged(missed)) => Delivery::Missed(missed),
                Err(RecvError::Closed) => return None,
            };
            Some((delivery, receiver))
        })))
    }

    async fn enqueue(&self, queue: &Topic, item: WorkItem) -> Result<bool, BusError> {
        let counter = self.counter(queue)?;
        let mut items = counter.looked_at();
        if items.holds(&item.id) {
            return Ok(false);
        }
        if items.len() >= QUEUE_ITEMS_MAX {
            return Err(full(queue, QUEUE_ITEMS_MAX));
        }
        items.push(item);
        counter.changed.notify_one();
        Ok(true)
    }

    async fn claim(&self, queue: &Topic, lease: Duration) -> Result<Claim, BusError> {
        let counter = self.counter(queue)?;
        loop {
            // Subscribe before checking, so that no change is missed.
            let mut changed = pin!(counter.changed.notified());
            changed.as_mut().enable();
            if let Some(claim) = self.try_claim(&counter, queue, lease) {
                return Ok(claim);
            }
            let expiry = lock(&counter.queue).next_expiry();
            match expiry {
                // In both cases, check again.
                Some(expiry) => drop(timeout_at(expiry, changed).await),
                None => changed.await,
            }
        }
    }

    async fn finish(&self, claim: &Claim) -> Result<(), BusError> {
        self.counter(&claim.queue)?
            .looked_at()
            .finish(&claim.item.id, claim.fence)
            .map_err(|_| lost(claim))
    }

    async fn release(&self, claim: &Claim) -> Result<(), BusError> {
        let counter = self.counter(&claim.queue)?;
        counter.looked_at().release(&claim.item.id, claim.fence).map_err(|_| lost(claim))?;
        counter.changed.notify_one();
        Ok(())
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<(), BusError> {
        let counter = self.counter(&claim.queue)?;
        counter
            .looked_at()
            .extend(&claim.item.id, claim.fence, Instant::now() + lease.min(LEASE_MAX))
            .map_err(|_| lost(claim))?;
        counter.changed.notify_waiters();
        Ok(())
    }
}

/// No state is half changed when a thread panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn full(queue: &Topic, limit: usize) -> BusError {
    BusError::Full { queue: queue.clone(), limit }
}

fn lost(claim: &Claim) -> BusError {
    BusError::ClaimLost { id: claim.item.id.clone() }
}
