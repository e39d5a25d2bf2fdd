//! Work: queued once, claimed by one.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::port::{Claim, WorkItem};
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

use super::depot::{Depot, LONG, topic};
use crate::suite::{During, Finding, Outcome, ensure, equal};

const WORKERS: usize = 16;
const ITEMS: usize = 64;

pub(super) async fn a_waiting_id_is_not_queued_twice(depot: Depot) -> Outcome {
    depot.put("work", "a").await?;
    let again = depot.enqueue("work", "a").await?;
    equal("whether a waiting id is new", &again, &false)?;
    depot.claim_now("work").await?;
    depot.idle("work").await
}

pub(super) async fn a_claimed_id_is_not_queued_twice(depot: Depot) -> Outcome {
    depot.put("work", "a").await?;
    let claim = depot.claim_now("work").await?;
    let again = depot.enqueue("work", "a").await?;
    equal("whether a claimed id is new", &again, &false)?;
    depot.finish(&claim).await?;
    depot.idle("work").await
}

pub(super) async fn a_finished_id_can_be_queued_again(depot: Depot) -> Outcome {
    depot.put("work", "a").await?;
    let claim = depot.claim_now("work").await?;
    depot.finish(&claim).await?;
    depot.put("work", "a").await?;
    equal("the item", &depot.claim_now("work").await?.item, &claim.item)
}

pub(super) async fn a_finished_item_does_not_come_back(depot: Depot) -> Outcome {
    depot.put("work", "a").await?;
    let claim = depot.claim("work", depot.terms.lease).await?;
    depot.finish(&claim).await?;
    // The lease has to run out before nothing coming says anything.
    let waited = depot.terms.lease + depot.terms.quiet;
    match timeout(waited, depot.claim("work", LONG)).await {
        Err(_) => Ok(()),
        Ok(claim) => Err(Finding::Broken(format!("a finished item came back: {:?}", claim?))),
    }
}

pub(super) async fn work_comes_back_byte_for_byte(depot: Depot) -> Outcome {
    let payloads = [vec![], (0..=u8::MAX).collect(), vec![b'x'; 64 * 1024]];
    for (n, payload) in payloads.into_iter().enumerate() {
        let item = WorkItem { id: format!("item {n} é * > / \"'"), payload };
        let queue = topic("work")?;
        let new = depot.bus.enqueue(&queue, item.clone()).await;
        equal("whether it is new", &new.during("enqueue")?, &true)?;
        let claim = depot.claim_now("work").await?;
        equal("the item", &claim.item, &item)?;
        equal("its queue", &claim.queue, &queue)?;
        depot.finish(&claim).await?;
    }
    Ok(())
}

pub(super) async fn work_is_claimed_oldest_first(depot: Depot) -> Outcome {
    for id in ["c", "a", "b"] {
        depot.put("work", id).await?;
    }
    for id in ["c", "a", "b"] {
        equal("the oldest", &depot.claim_now("work").await?.item.id, &id.to_owned())?;
    }
    Ok(())
}

pub(super) async fn queues_do_not_mix(depot: Depot) -> Outcome {
    depot.put("work.a", "x").await?;
    depot.idle("work.b").await?;
    depot.put("work.b", "x").await?;
    let a = depot.claim_now("work.a").await?;
    let b = depot.claim_now("work.b").await?;
    depot.finish(&a).await?;
    depot.finish(&b).await
}

pub(super) async fn a_claim_waits_for_work(depot: Depot) -> Outcome {
    let mut workers = JoinSet::new();
    for _ in 0..2 {
        let depot = depot.clone();
        workers.spawn(async move { depot.claim("work", LONG).await });
    }
    let early = timeout(depot.terms.quiet, workers.join_next()).await;
    ensure!(early.is_err(), "there is no work, but a worker got {early:?}");
    depot.put("work", "a").await?;
    depot.put("work", "b").await?;
    let mut got = HashSet::new();
    while let Some(claim) = workers.join_next().await {
        let claim: Result<Claim, Finding> = claim.during("a worker")?;
        got.insert(claim?.item.id);
    }
    equal("items claimed", &got.len(), &2)
}

pub(super) async fn one_worker_has_an_item_at_a_time(depot: Depot) -> Outcome {
    for n in 0..ITEMS {
        depot.put("work", &format!("item-{n}")).await?;
    }
    let shop = Arc::<Mutex<Shop>>::default();
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(work(depot.clone(), Arc::clone(&shop)));
    }
    while let Some(worker) = workers.join_next().await {
        let worker: Outcome = worker.during("a worker")?;
        worker?;
    }
    depot.idle("work").await?;
    let done = std::mem::take(&mut shop.lock().unwrap_or_else(PoisonError::into_inner).done);
    let distinct: HashSet<&String> = done.iter().collect();
    equal("items that were worked on", &distinct.len(), &ITEMS)
}

/// Works until everything is done.
async fn work(depot: Depot, shop: Arc<Mutex<Shop>>) -> Result<(), Finding> {
    let shop = || shop.lock().unwrap_or_else(PoisonError::into_inner);
    while shop().done.len() < ITEMS {
        let Ok(claim) = timeout(depot.terms.quiet, depot.claim("work", LONG)).await else {
            continue;
        };
        let claim = claim?;
        let id = claim.item.id.clone();
        ensure!(shop().held.insert(id.clone()), "two workers had `{id}` at the same time");
        yield_now().await;
        shop().held.remove(&id);
        depot.finish(&claim).await?;
        shop().done.push(id);
    }
    Ok(())
}

/// What the workers have in their hands, and what they have done.
#[derive(Default)]
struct Shop {
    held: HashSet<String>,
    done: Vec<String>,
}
