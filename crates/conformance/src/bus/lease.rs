//! Leases: kept, prolonged, given back, lost.

use std::pin::pin;

use antiphon_core::port::{Bus, Claim};
use futures_util::FutureExt;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, sleep_until, timeout};

use super::depot::{Depot, LONG, PROMPT, lost};
use crate::suite::{During, Finding, Outcome, ensure, equal};

pub(super) async fn a_waiting_worker_gets_an_item_whose_lease_ran_out(depot: Depot) -> Outcome {
    depot.put("work", "a").await?;
    let first = depot.claim("work", depot.terms.lease).await?;
    depot.idle("work").await?;
    let second = depot.claim("work", LONG).await?;
    equal("the item", &second.item, &first.item)?;
    greater("after its lease ran out", &second, &first)?;
    depot.finish(&second).await
}

pub(super) async fn a_claim_that_was_lost_can_do_nothing(depot: Depot) -> Outcome {
    depot.put("work", "a").await?;
    let until = Instant::now() + depot.terms.lease;
    let old = depot.claim("work", depot.terms.lease).await?;
    sleep_until(until + depot.terms.quiet).await;
    let new = depot.claim("work", LONG).await?;
    cannot(&*depot.bus, &old).await?;
    // The one who has it now was not disturbed.
    depot.idle("work").await?;
    depot.finish(&new).await
}

pub(super) async fn a_released_item_can_be_claimed_at_once(depot: Depot) -> Outcome {
    depot.put("work", "a").await?;
    let old = depot.claim_now("work").await?;
    let waiting = depot.clone();
    let mut workers = JoinSet::new();
    workers.spawn(async move { waiting.claim("work", LONG).await });
    yield_now().await;
    depot.release(&old).await?;
    let given = timeout(PROMPT, workers.join_next()).await;
    let Some(new) = given.during("the item was released, but claiming it")? else {
        return Err(Finding::Broken("the worker went away".to_owned()));
    };
    let new: Result<Claim, Finding> = new.during("a worker")?;
    let new = new?;
    equal("the item", &new.item, &old.item)?;
    cannot(&*depot.bus, &old).await?;
    depot.finish(&new).await
}

pub(super) async fn an_extended_claim_is_kept(depot: Depot) -> Outcome {
    depot.put("work", "a").await?;
    let until = Instant::now() + depot.terms.lease;
    let claim = depot.claim("work", depot.terms.lease).await?;
    let extended = depot.bus.extend(&claim, LONG).await;
    extended.during("extend")?;
    sleep_until(until).await;
    depot.idle("work").await?;
    depot.finish(&claim).await
}

/// Over every way in which a claim can end, the end of the item itself included: a store that has
/// seen a fence refuses smaller ones for ever. Whether the item comes back is another check.
pub(super) async fn a_later_claim_has_a_greater_fence(depot: Depot) -> Outcome {
    depot.put("work", "a").await?;
    let mut last = depot.claim_now("work").await?;
    depot.release(&last).await?;
    if let Ok(claim) = depot.claim_now("work").await {
        greater("after a release", &claim, &last)?;
        last = claim;
    }
    depot.finish(&last).await?;
    if depot.enqueue("work", "a").await? {
        let claim = depot.claim_now("work").await?;
        greater("after the item was finished and queued again", &claim, &last)?;
    }
    Ok(())
}

/// Claims are dropped after each number of polls, with work there and without.
pub(super) async fn a_dropped_claim_takes_nothing(depot: Depot) -> Outcome {
    for polls in 1..8 {
        depot.put("work", &format!("item-{polls}")).await?;
        let claim = match claim_briefly(&depot, polls).await {
            Some(claim) => claim?,
            None => depot.claim_now("work").await?,
        };
        let early = claim_briefly(&depot, polls).await;
        ensure!(early.is_none(), "there is no work, but a worker got {early:?}");
        depot.finish(&claim).await?;
    }
    Ok(())
}

/// Three wait in front of a fourth, and turn away just when there is work.
pub(super) async fn a_dropped_claim_takes_no_wake_up_with_it(depot: Depot) -> Outcome {
    depot.put("work", "first").await?;
    let held = depot.claim_now("work").await?;
    let mut impatient: Vec<_> = (0..3).map(|_| Box::pin(depot.claim("work", LONG))).collect();
    let mut patient = pin!(depot.claim("work", LONG));
    for claim in &mut impatient {
        ensure!(claim.now_or_never().is_none(), "there is no work, but a worker got some");
    }
    ensure!(patient.as_mut().now_or_never().is_none(), "there is no work, but a worker got some");
    depot.put("work", "second").await?;
    drop(impatient);
    let claim = timeout(PROMPT, patient).await;
    let claim = claim.during("an item waits, but a worker who waits for it")??;
    equal("the item", claim.item.id.as_str(), "second")?;
    depot.finish(&held).await
}

/// Polls a claim that often, a turn of the runtime apart, and drops it.
async fn claim_briefly(depot: &Depot, polls: usize) -> Option<Result<Claim, Finding>> {
    let turns = async {
        for _ in 1..polls {
            yield_now().await;
        }
    };
    tokio::select! {
        biased;
        claim = depot.claim("work", LONG) => Some(claim),
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
