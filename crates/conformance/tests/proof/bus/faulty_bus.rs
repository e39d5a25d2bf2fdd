//! Buses that are wrong in one respect each.

mod claiming;
mod live;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use antiphon_conformance::reference::MemoryBus;
use antiphon_core::port::{Bus, BusError, Claim, Subscription, Topic, WorkItem};
use async_trait::async_trait;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
    ServesTwoSubscribersAtMost,
    RetainsTheLast,
    MatchesPrefixes,
    NeedsAnAudience,
    TakesPayloadsForText,
    DropsSilently,
    WaitsForTheSlow,
    CountsWaitingTwice,
    CountsClaimedTwice,
    RemembersForEver,
    BringsFinishedBack,
    TakesWorkForText,
    TakesTheNewest,
    MixesQueues,
    WakesNobody,
    HandsOutTwice,
    LetsLeasesRunOutUnseen,
    LetsTheLateFinish,
    KeepsWhatIsReleased,
    ExtendsByTooLittle,
    StartsFencesOver,
    LosesDroppedClaims,
    WakesTheFirstOnly,
}

/// A correct bus with a fault around it.
pub(super) struct FaultyBus {
    inner: MemoryBus,
    fault: Fault,
    activity: Notify,
    notes: Mutex<Notes>,
}

/// State that a faulty bus needs.
#[derive(Default)]
struct Notes {
    subscribers: HashMap<Topic, usize>,
    published: HashMap<Topic, Vec<Vec<u8>>>,
    enqueued: HashSet<(Topic, String)>,
    held: HashSet<String>,
    released: HashSet<u64>,
    claims: usize,
    tickets: VecDeque<oneshot::Sender<()>>,
    last: Option<Claim>,
    lease_ends: HashMap<u64, Instant>,
    undead: Vec<(Instant, Claim)>,
    fence_bases: HashMap<(Topic, String), u64>,
}

impl Notes {
    fn fence_base(&self, claim: &Claim) -> u64 {
        let name = (claim.queue.clone(), claim.item.id.clone());
        self.fence_bases.get(&name).copied().unwrap_or(0)
    }
}

impl FaultyBus {
    pub(super) fn new(fault: Fault) -> Self {
        Self { inner: MemoryBus::new(), fault, activity: Notify::new(), notes: Mutex::default() }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }

    fn wake_one(&self) {
        self.activity.notify_one();
        let mut notes = self.notes();
        while let Some(ticket) = notes.tickets.pop_front() {
            if ticket.send(()).is_ok() {
                return;
            }
        }
    }

    /// The claim as the correct bus knows it.
    fn known(&self, claim: &Claim) -> Claim {
        let base = self.notes().fence_base(claim);
        Claim { fence: claim.fence + base, ..claim.clone() }
    }
}

#[async_trait]
impl Bus for FaultyBus {
    async fn publish(&self, topic: &Topic, payload: Vec<u8>) -> Result<(), BusError> {
        self.publish_wrongly(topic, payload).await
    }

    async fn subscribe(&self, topic: &Topic) -> Result<Subscription, BusError> {
        self.subscribe_wrongly(topic).await
    }

    async fn enqueue(&self, queue: &Topic, mut item: WorkItem) -> Result<bool, BusError> {
        let id = item.id.clone();
        if self.fault == Fault::TakesWorkForText {
            item.payload = String::from_utf8_lossy(&item.payload).into_owned().into_bytes();
        }
        let known = !self.notes().enqueued.insert((queue.clone(), id.clone()));
        if self.fault == Fault::RemembersForEver && known {
            return Ok(false);
        }
        let new = self.inner.enqueue(&self.place(queue), item).await?;
        self.wake_one();
        let held = self.notes().held.contains(&id);
        Ok(new
            || (self.fault == Fault::CountsClaimedTwice && held)
            || (self.fault == Fault::CountsWaitingTwice && !held))
    }

    async fn claim(&self, queue: &Topic, lease: Duration) -> Result<Claim, BusError> {
        self.claim_wrongly(&self.place(queue), lease).await
    }

    async fn finish(&self, claim: &Claim) -> Result<(), BusError> {
        let known = self.known(claim);
        let answer = self.inner.finish(&known).await;
        let mut notes = self.notes();
        if answer.is_err() {
            let late = self.fault == Fault::LetsTheLateFinish;
            return if late && !notes.released.contains(&known.fence) { Ok(()) } else { answer };
        }
        notes.held.remove(&claim.item.id);
        if self.fault == Fault::StartsFencesOver {
            let name = (claim.queue.clone(), claim.item.id.clone());
            notes.fence_bases.insert(name, known.fence);
        }
        if self.fault == Fault::BringsFinishedBack
            && let Some(end) = notes.lease_ends.get(&known.fence).copied()
        {
            notes.undead.push((end, known));
        }
        answer
    }

    async fn release(&self, claim: &Claim) -> Result<(), BusError> {
        let known = self.known(claim);
        if self.fault == Fault::KeepsWhatIsReleased {
            return self.inner.extend(&known, Duration::from_hours(1)).await;
        }
        self.inner.release(&known).await?;
        {
            let mut notes = self.notes();
            notes.held.remove(&claim.item.id);
            notes.released.insert(known.fence);
        }
        self.wake_one();
        Ok(())
    }

    async fn extend(&self, claim: &Claim, lease: Duration) -> Result<(), BusError> {
        let little = self.fault == Fault::ExtendsByTooLittle;
        let lease = if little { Duration::from_millis(1) } else { lease };
        self.inner.extend(&self.known(claim), lease).await
    }
}
