//! Faults of claims.

use std::time::Duration;

use antiphon_core::port::{Bus, BusError, Claim, Topic};
use futures_util::{FutureExt, future};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Fault, FaultyBus};

type Answer = Result<Claim, BusError>;

/// The claim that is returned twice.
const UNLUCKY: usize = 9;

impl FaultyBus {
    /// Topic of this queue in the correct bus.
    pub(super) fn place(&self, queue: &Topic) -> Topic {
        let word = queue.as_str().split('.').next().unwrap_or_default();
        if self.fault == Fault::MixesQueues { Topic::parse(word).unwrap() } else { queue.clone() }
    }

    pub(super) async fn claim_wrongly(&self, queue: &Topic, lease: Duration) -> Answer {
        let until = Instant::now() + lease;
        let mut claim = if self.fault == Fault::HandsOutTwice && self.is_unlucky() {
            self.notes().last.clone().unwrap()
        } else if self.fault == Fault::TakesTheNewest {
            self.claiming_the_newest(queue, lease).await?
        } else if self.fault == Fault::WakesNobody {
            self.claiming_or_sleeping(queue, lease).await?
        } else if self.fault == Fault::LetsLeasesRunOutUnseen {
            self.claiming_upon_activity(queue, lease).await?
        } else if self.fault == Fault::WakesTheFirstOnly {
            self.claiming_by_ticket(queue, lease).await?
        } else if self.fault == Fault::BringsFinishedBack {
            self.claiming_the_undead(queue, lease).await?
        } else {
            self.inner.claim(queue, lease).await?
        };
        if self.fault == Fault::LosesDroppedClaims {
            yield_now().await;
        }
        let mut notes = self.notes();
        notes.held.insert(claim.item.id.clone());
        notes.lease_ends.insert(claim.fence, until);
        notes.claims += 1;
        notes.last = Some(claim.clone());
        claim.fence -= notes.fence_base(&claim);
        Ok(claim)
    }

    fn is_unlucky(&self) -> bool {
        let notes = self.notes();
        let held = notes.last.as_ref().is_some_and(|claim| notes.held.contains(&claim.item.id));
        notes.claims == UNLUCKY && held
    }

    async fn claiming_the_newest(&self, queue: &Topic, lease: Duration) -> Answer {
        let mut newest = self.inner.claim(queue, lease).await?;
        let mut older = Vec::new();
        while let Some(newer) = self.inner.claim(queue, lease).now_or_never() {
            older.push(std::mem::replace(&mut newest, newer?));
        }
        for claim in older {
            self.inner.release(&claim).await?;
        }
        Ok(newest)
    }

    async fn claiming_or_sleeping(&self, queue: &Topic, lease: Duration) -> Answer {
        match self.inner.claim(queue, lease).now_or_never() {
            Some(claim) => claim,
            None if self.notes().held.is_empty() => future::pending().await,
            None => self.inner.claim(queue, lease).await,
        }
    }

    async fn claiming_upon_activity(&self, queue: &Topic, lease: Duration) -> Answer {
        loop {
            if let Some(claim) = self.inner.claim(queue, lease).now_or_never() {
                return claim;
            }
            self.activity.notified().await;
        }
    }

    async fn claiming_by_ticket(&self, queue: &Topic, lease: Duration) -> Answer {
        loop {
            if let Some(claim) = self.inner.claim(queue, lease).now_or_never() {
                return claim;
            }
            let (ticket, called) = oneshot::channel();
            let expiry = {
                let mut notes = self.notes();
                notes.tickets.push_back(ticket);
                let ends = notes.lease_ends.values().copied();
                ends.filter(|end| *end > Instant::now()).min()
            };
            match expiry {
                Some(expiry) => drop(timeout_at(expiry, called).await),
                None => drop(called.await),
            }
        }
    }

    async fn claiming_the_undead(&self, queue: &Topic, lease: Duration) -> Answer {
        let undead = self.notes().undead.first().cloned();
        let Some((end, claim)) = undead else {
            return self.inner.claim(queue, lease).await;
        };
        tokio::select! {
            biased;
            alive = self.inner.claim(queue, lease) => alive,
            () = sleep_until(end) => Ok(claim),
        }
    }
}
