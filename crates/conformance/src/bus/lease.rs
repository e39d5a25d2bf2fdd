//! Leases: held, extended, released, lost.

use std::pin::pin;

use antiphon_core::port::{Bus, Claim};
use futures_util::FutureExt;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, sleep_until, timeout};

use super::test_bus::{LONG, PROMPT, TestBus, lost};
use crate::suite::{During, Finding, Outcome, ensure, equal};

pub(super) async fn a_waiting_worker_gets_an_item_whose_lease_ran_out(bus: TestBus) -> Outcome {
    bus.put("work", "a").await?;
    let first = bus.claim("work", bus.terms.lease).await?;
    bus.idle("work").await?;
    let second = bus.claim("work", LONG).await?;
    equal("the item", &second.item, &first.item)?;
    greater("after its lease ran out", &second, &first)?;
    bus.finish(&second).await
}

pub(super) async fn a_claim_that_was_lost_can_do_nothing(bus: TestBus) -> Outcome {
    bus.put("work", "a").await?;
    let until = Instant::now() + bus.terms.lease;
    let old = bus.claim("work", bus.terms.lease).await?;
    sleep_until(until + bus.terms.quiet).await;
    let new = bus.claim("work", LONG).await?;
    cannot(&*bus.bus, &old).await?;
    // The current holder was not disturbed.
    bus.idle("work").await?;
    bus.finish(&new).await
}

pub(super) async fn a_released_item_can_be_claimed_at_once(bus: TestBus) -> Outcome {
    bus.put("work", "a").await?;
    let old = bus.claim_now("work").await?;
    let waiting = bus.clone();
    let mut workers = JoinSet::new();
    workers.spawn(async move { waiting.claim("work", LONG).await });
    yield_now().await;
    bus.release(&old).await?;
    let given = timeout(PROMPT, workers.join_next()).await;
    let Some(new) = given.during("the item was released, but claiming it")? else {
        return Err(Finding::Broken("the worker went away".to_owned()));
    };
    let new: Result<Claim, Finding> = new.during("a worker")?;
    let new = new?;
    equal("the item", &new.item, &old.item)?;
    cannot(&*bus.bus, &old).await?;
    bus.finish(&new).await
}

pub(super) async fn an_extended_claim_is_kept(bus: TestBus) -> Outcome {
    bus.put("work", "a").await?;
    let until = Instant::now() + bus.terms.lease;
    let claim = bus.claim("work", bus.terms.lease).await?;
    let extended = bus.bus.extend(&claim, LONG).await;
    extended.during("extend")?;
    sleep_until(until).await;
    bus.idle("work").await?;
    bus.finish(&claim).await
}

/// Through every way in which a claim can end, also the removal of the item: a store that has
/// seen a fence refuses lower ones for ever. Whether the item comes back is another check.
pub(super) async fn a_later_claim_has_a_greater_fence(bus: TestBus) -> Outcome {
    bus.put("work", "a").await?;
    let mut last = bus.claim_now("work").await?;
    bus.release(&last).await?;
    if let Ok(claim) = bus.claim_now("work").await {
        greater("after a release", &claim, &last)?;
        last = claim;
    }
    bus.finish(&last).await?;
    if bus.enqueue("work", "a").await? {
        let claim = bus.claim_now("work").await?;
        greater("after the item was finished and queued again", &claim, &last)?;
    }
    Ok(())
}

/// Claims are dropped after each number of polls, with and without work.
pub(super) async fn a_dropped_claim_takes_nothing(bus: TestBus) -> Outcome {
    for polls in 1..8 {
        bus.put("work", &format!("item-{polls}")).await?;
        let claim = match claim_briefly(&bus, polls).await {
            Some(claim) => claim?,
            None => bus.claim_now("work").await?,
        };
        let early = claim_briefly(&bus, polls).await;
        ensure!(early.is_none(), "there is no work, but a worker got {early:?}");
        bus.finish(&claim).await?;
    }
    Ok(())
}

/// Three callers wait before a fourth, and stop waiting when work arrives.
pub(super) async fn a_dropped_claim_takes_no_wake_up_with_it(bus: TestBus) -> Outcome {
    bus.put("work", "first").await?;
    let held = bus.claim_now("work").await?;
    let mut impatient: Vec<_> = (0..3).map(|_| Box::pin(bus.claim("work", LONG))).collect();
    let mut patient = pin!(bus.claim("work", LONG));
    for claim in &mut impatient {
        ensure!(claim.now_or_never().is_none(), "there is no work, but a worker got some");
    }
    ensure!(patient.as_mut().now_or_never().is_none(), "there is no work, but a worker got some");
    bus.put("work", "second").await?;
    drop(impatient);
    let claim = timeout(PROMPT, patient).await;
    let claim = claim.during("an item waits, but a worker who waits for it")??;
    equal("the item", claim.item.id.as_str(), "second")?;
    bus.finish(&held).await
}

/// Polls a claim that often, one turn of the runtime apart, and drops it.
async fn claim_briefly(bus: &TestBus, polls: usize) -> Option<Result<Claim, Finding>> {
    let turns = async {
        for _ in 1..polls {
            yield_now().await;
        }
    };
    tokio::select! {
        biased;
        claim = bus.claim("work", LONG) => Some(claim),
        () = turns => None,
    }
}

async fn cannot(bus: &dyn Bus, claim: &Claim) -> Outcome {
    lost("finish", &bus.finish(claim).await, claim)?;
    lost("extend", &bus.extend(claim, LONG).await, claim)?;
    lost("release", &bus.release(claim).await, claim)
}

fn greater(when: &str, later: &Claim, earlier: &Claim) -> Outcome {
    ensure!(
        later.fence > earlier.fence,
        "{when} the fence went from {} to {}",
        earlier.fence,
        later.fence
    );
    Ok(())
}
