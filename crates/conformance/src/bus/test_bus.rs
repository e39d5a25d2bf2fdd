//! A bus under test, with operations for the checks.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{Bus, BusError, Claim, Delivery, Subscription, Topic, WorkItem};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::BusTimings;
use crate::suite::{During, Finding, Outcome, equal, quote};

/// A lease that outlasts every check.
pub(super) const LONG: Duration = Duration::from_hours(1);

/// Time limit of a call that should return at once, even over a slow network. Far shorter than [`LONG`].
pub(super) const PROMPT: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(super) struct TestBus {
    pub(super) bus: Arc<dyn Bus>,
    pub(super) terms: BusTimings,
}

impl TestBus {
    pub(super) fn new(bus: impl Bus + 'static, terms: BusTimings) -> Self {
        Self { bus: Arc::new(bus), terms }
    }

    pub(super) async fn publish(&self, name: &str, payload: impl Into<Vec<u8>>) -> Outcome {
        self.bus.publish(&topic(name)?, payload.into()).await.during("publish")
    }

    pub(super) async fn subscribe(&self, name: &str) -> Result<Subscription, Finding> {
        self.bus.subscribe(&topic(name)?).await.during("subscribe")
    }

    /// Asserts that nothing reaches a subscriber.
    pub(super) async fn silent(&self, subscription: &mut Subscription) -> Outcome {
        match timeout(self.terms.quiet, subscription.next()).await {
            Err(_) => Ok(()),
            Ok(delivery) => Err(Finding::Broken(format!(
                "a subscriber who should hear nothing got {}",
                quote(&delivery)
            ))),
        }
    }

    /// Queues an item named like its payload. Returns whether it was new.
    pub(super) async fn enqueue(&self, queue: &str, id: &str) -> Result<bool, Finding> {
        let item = WorkItem { id: id.to_owned(), payload: id.as_bytes().to_vec() };
        self.bus.enqueue(&topic(queue)?, item).await.during("enqueue")
    }

    /// Queues an item that must be new.
    pub(super) async fn put(&self, queue: &str, id: &str) -> Outcome {
        let new = self.enqueue(queue, id).await?;
        equal(&format!("whether `{id}` is new"), &new, &true)
    }

    pub(super) async fn claim(&self, queue: &str, lease: Duration) -> Result<Claim, Finding> {
        self.bus.claim(&topic(queue)?, lease).await.during("claim")
    }

    /// A claim that must succeed at once, without waiting for the end of a lease.
    pub(super) async fn claim_now(&self, queue: &str) -> Result<Claim, Finding> {
        let claim = timeout(PROMPT, self.claim(queue, LONG)).await;
        claim.during("an item waits, but claiming one")?
    }

    /// Asserts that nothing can be claimed.
    pub(super) async fn idle(&self, queue: &str) -> Outcome {
        match timeout(self.terms.quiet, self.claim(queue, LONG)).await {
            Err(_) => Ok(()),
            Ok(claim) => Err(Finding::Broken(format!(
                "there is nothing to claim, but a worker got {:?}",
                claim?
            ))),
        }
    }

    pub(super) async fn finish(&self, claim: &Claim) -> Outcome {
        self.bus.finish(claim).await.during("finish")
    }

    pub(super) async fn release(&self, claim: &Claim) -> Outcome {
        self.bus.release(claim).await.during("release")
    }
}

/// The next payload.
pub(super) async fn next_payload(subscription: &mut Subscription) -> Result<Vec<u8>, Finding> {
    match subscription.next().await {
        Some(Delivery::Payload(payload)) => Ok(payload),
        Some(Delivery::Missed(missed)) => Err(Finding::Broken(format!(
            "a fast subscriber got a count of missed payloads: {missed}"
        ))),
        None => Err(Finding::Broken("a subscription ended".to_owned())),
    }
}

pub(super) fn topic(name: &str) -> Result<Topic, Finding> {
    Topic::parse(name).during("a topic")
}

/// The error that every operation on a lost claim must return.
pub(super) fn lost(what: &str, answer: &Result<(), BusError>, claim: &Claim) -> Outcome {
    let expected = Err(BusError::ClaimLost { id: claim.item.id.clone() });
    equal(&format!("{what} under a lost claim"), answer, &expected)
}
