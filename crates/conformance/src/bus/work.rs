//! Work items: queued once, claimed by one worker.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::port::{Claim, WorkItem};
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

use super::test_bus::{LONG, TestBus, topic};
use crate::suite::{During, Finding, Outcome, ensure, equal};

const WORKERS: usize = 16;
const ITEMS: usize = 64;

pub(super) async fn a_waiting_id_is_not_queued_twice(bus: TestBus) -> Outcome {
    bus.put("work", "a").await?;
    let again = bus.enqueue("work", "a").await?;
    equal("whether a waiting id is new", &again, &false)?;
    bus.claim_now("work").await?;
    bus.idle("work").await
}

pub(super) async fn a_claimed_id_is_not_queued_twice(bus: TestBus) -> Outcome {
    bus.put("work", "a").await?;
    let claim = bus.claim_now("work").await?;
    let again = bus.enqueue("work", "a").await?;
    equal("whether a claimed id is new", &again, &false)?;
    bus.finish(&claim).await?;
    bus.idle("work").await
}

pub(super) async fn a_finished_id_can_be_queued_again(bus: TestBus) -> Outcome {
    bus.put("work", "a").await?;
    let claim = bus.claim_now("work").await?;
    bus.finish(&claim).await?;
    bus.put("work", "a").await?;
    equal("the item", &bus.claim_now("work").await?.item, &claim.item)
}

pub(super) async fn a_finished_item_does_not_come_back(bus: TestBus) -> Outcome {
    bus.put("work", "a").await?;
    let claim = bus.claim("work", bus.terms.lease).await?;
    bus.finish(&claim).await?;
    // Before the lease has run out, silence would prove nothing.
    let waited = bus.terms.lease + bus.terms.quiet;
    match timeout(waited, bus.claim("work", LONG)).await {
        Err(_) => Ok(()),
        Ok(claim) => Err(Finding::Broken(format!("a finished item came back: {:?}", claim?))),
    }
}

pub(super) async fn work_comes_back_byte_for_byte(bus: TestBus) -> Outcome {
    let payloads = [vec![], (0..=u8::MAX).collect(), vec![b'x'; 64 * 1024]];
    for (n, payload) in payloads.into_iter().enumerate() {
        let item = WorkItem { id: format!("item {n} é * > / \"'"), payload };
        let queue = topic("work")?;
        let new = bus.bus.enqueue(&queue, item.clone()).await;
        equal("whether it is new", &new.during("enqueue")?, &true)?;
        let claim = bus.claim_now("work").await?;
        equal("the item", &claim.item, &item)?;
        equal("its queue", &claim.queue, &queue)?;
        bus.finish(&claim).await?;
    }
    Ok(())
}

pub(super) async fn work_is_claimed_oldest_first(bus: TestBus) -> Outcome {
    for id in ["c", "a", "b"] {
        bus.put("work", id).await?;
    }
    for id in ["c", "a", "b"] {
        equal("the oldest", &bus.claim_now("work").await?.item.id, &id.to_owned())?;
    }
    Ok(())
}

pub(super) async fn queues_do_not_mix(bus: TestBus) -> Outcome {
    bus.put("work.a", "x").await?;
    bus.idle("work.b").await?;
    bus.put("work.b", "x").await?;
    let a = bus.claim_now("work.a").await?;
    let b = bus.claim_now("work.b").await?;
    bus.finish(&a).await?;
    bus.finish(&b).await
}

pub(super) async fn a_claim_waits_for_work(bus: TestBus) -> Outcome {
    let mut workers = JoinSet::new();
    for _ in 0..2 {
        let bus = bus.clone();
        workers.spawn(async move { bus.claim("work", LONG).await });
    }
    let early = timeout(bus.terms.quiet, workers.join_next()).await;
    ensure!(early.is_err(), "there is no work, but a worker got {early:?}");
    bus.put("work", "a").await?;
    bus.put("work", "b").await?;
    let mut got = HashSet::new();
    while let Some(claim) = workers.join_next().await {
        let claim: Result<Claim, Finding> = claim.during("a worker")?;
        got.insert(claim?.item.id);
    }
    equal("items claimed", &got.len(), &2)
}

pub(super) async fn one_worker_has_an_item_at_a_time(bus: TestBus) -> Outcome {
    for n in 0..ITEMS {
        bus.put("work", &format!("item-{n}")).await?;
    }
    let shop = Arc::<Mutex<Shop>>::default();
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(work(bus.clone(), Arc::clone(&shop)));
    }
    while let Some(worker) = workers.join_next().await {
        let worker: Outcome = worker.during("a worker")?;
        worker?;
    }
    bus.idle("work").await?;
    let done = std::mem::take(&mut shop.lock().unwrap_or_else(PoisonError::into_inner).done);
    let distinct: HashSet<&String> = done.iter().collect();
    equal("items that were worked on", &distinct.len(), &ITEMS)
}

/// Works until everything is done.
async fn work(bus: TestBus, shop: Arc<Mutex<Shop>>) -> Result<(), Finding> {
    let shop = || shop.lock().unwrap_or_else(PoisonError::into_inner);
    while shop().done.len() < ITEMS {
        let Ok(claim) = timeout(bus.terms.quiet, bus.claim("work", LONG)).await else {
            continue;
        };
        let claim = claim?;
        let id = claim.item.id.clone();
        ensure!(shop().held.insert(id.clone()), "two workers had `{id}` at the same time");
        yield_now().await;
        shop().held.remove(&id);
        bus.finish(&claim).await?;
        shop().done.push(id);
    }
    Ok(())
}

/// Items that workers hold, and finished items.
#[derive(Default)]
struct Shop {
    held: HashSet<String>,
    done: Vec<String>,
}
