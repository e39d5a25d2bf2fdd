//! Live events.

use antiphon_core::port::Delivery;
use futures_util::StreamExt;

use super::depot::{Depot, heard};
use crate::suite::{Finding, Outcome, ensure, equal};

pub(super) async fn every_subscriber_gets_everything_in_order(depot: Depot) -> Outcome {
    let mut subscribers = Vec::new();
    for _ in 0..3 {
        subscribers.push(depot.subscribe("live").await?);
    }
    for n in 0..50_u8 {
        depot.publish("live", [n]).await?;
    }
    for subscriber in &mut subscribers {
        for n in 0..50_u8 {
            equal("a payload", &heard(subscriber).await?, &vec![n])?;
        }
        depot.silent(subscriber).await?;
    }
    Ok(())
}

pub(super) async fn nothing_from_before_the_subscription_is_seen(depot: Depot) -> Outcome {
    let mut early = depot.subscribe("live").await?;
    depot.publish("live", "before").await?;
    equal("a payload", &heard(&mut early).await?, &b"before".to_vec())?;
    let mut late = depot.subscribe("live").await?;
    depot.publish("live", "after").await?;
    equal("the first payload", &heard(&mut late).await?, &b"after".to_vec())
}

pub(super) async fn other_topics_are_not_seen(depot: Depot) -> Outcome {
    let mut subscriber = depot.subscribe("live.a").await?;
    let mut others = Vec::new();
    for other in ["live", "live.a.b", "live.b", "live.A", "live.ab"] {
        others.push(depot.subscribe(other).await?);
        depot.publish(other, other).await?;
    }
    depot.publish("live.a", "mine").await?;
    equal("a payload", &heard(&mut subscriber).await?, &b"mine".to_vec())?;
    depot.silent(&mut subscriber).await
}

pub(super) async fn publishing_to_nobody_is_no_error(depot: Depot) -> Outcome {
    depot.publish("live", "nobody yet").await?;
    drop(depot.subscribe("live").await?);
    depot.publish("live", "nobody any more").await
}

pub(super) async fn payloads_come_back_byte_for_byte(depot: Depot) -> Outcome {
    let mut subscriber = depot.subscribe("live").await?;
    let payloads = [vec![], (0..=u8::MAX).collect(), vec![b'x'; 64 * 1024]];
    for payload in payloads {
        depot.publish("live", payload.clone()).await?;
        equal("a payload", &heard(&mut subscriber).await?, &payload)?;
    }
    Ok(())
}

/// What it gets and what it is told it missed make up all that was published, in place.
pub(super) async fn a_slow_subscriber_is_told_how_many_it_missed_and_goes_on(
    depot: Depot,
) -> Outcome {
    let mut slow = depot.subscribe("live").await?;
    let published = depot.terms.overflow as u64;
    for n in 0..published {
        depot.publish("live", n.to_string()).await?;
    }
    let (mut place, mut missed_any) = (0, false);
    while place < published {
        match slow.next().await {
            Some(Delivery::Payload(payload)) => {
                equal("the payload in its place", &payload, &place.to_string().into_bytes())?;
                place += 1;
            }
            Some(Delivery::Missed(missed)) => {
                ensure!(missed > 0, "a subscriber was told that it missed nothing");
                missed_any = true;
                place += missed;
            }
            None => return Err(Finding::Broken("the subscription ended".to_owned())),
        }
    }
    equal("all that was published", &place, &published)?;
    ensure!(
        missed_any,
        "{published} unread payloads were kept: `Terms::overflow` is too small, or there is no \
         bound"
    );
    depot.publish("live", "later").await?;
    equal("what came later", &heard(&mut slow).await?, &b"later".to_vec())
}

pub(super) async fn a_slow_subscriber_holds_nobody_up(depot: Depot) -> Outcome {
    let slow = depot.subscribe("live").await?;
    let mut fast = depot.subscribe("live").await?;
    for n in 0..depot.terms.overflow as u64 {
        let payload = n.to_string().into_bytes();
        depot.publish("live", payload.clone()).await?;
        equal("a payload", &heard(&mut fast).await?, &payload)?;
    }
    drop(slow);
    Ok(())
}
