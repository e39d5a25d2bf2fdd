//! Live events.

use antiphon_core::port::Delivery;
use futures_util::StreamExt;

use super::test_bus::{TestBus, next_payload};
use crate::suite::{Finding, Outcome, ensure, equal};

pub(super) async fn every_subscriber_gets_everything_in_order(bus: TestBus) -> Outcome {
    let mut subscribers = Vec::new();
    for _ in 0..3 {
        subscribers.push(bus.subscribe("live").await?);
    }
    for n in 0..50_u8 {
        bus.publish("live", [n]).await?;
    }
    for subscriber in &mut subscribers {
        for n in 0..50_u8 {
            equal("a payload", &next_payload(subscriber).await?, &vec![n])?;
        }
        bus.silent(subscriber).await?;
    }
    Ok(())
}

pub(super) async fn nothing_from_before_the_subscription_is_seen(bus: TestBus) -> Outcome {
    let mut early = bus.subscribe("live").await?;
    bus.publish("live", "before").await?;
    equal("a payload", &next_payload(&mut early).await?, &b"before".to_vec())?;
    let mut late = bus.subscribe("live").await?;
    bus.publish("live", "after").await?;
    equal("the first payload", &next_payload(&mut late).await?, &b"after".to_vec())
}

pub(super) async fn other_topics_are_not_seen(bus: TestBus) -> Outcome {
    let mut subscriber = bus.subscribe("live.a").await?;
    let mut others = Vec::new();
    for other in ["live", "live.a.b", "live.b", "live.A", "live.ab"] {
        others.push(bus.subscribe(other).await?);
        bus.publish(other, other).await?;
    }
    bus.publish("live.a", "mine").await?;
    equal("a payload", &next_payload(&mut subscriber).await?, &b"mine".to_vec())?;
    bus.silent(&mut subscriber).await
}

pub(super) async fn publishing_without_subscribers_is_not_an_error(bus: TestBus) -> Outcome {
    bus.publish("live", "before any subscriber").await?;
    drop(bus.subscribe("live").await?);
    bus.publish("live", "after the last subscriber").await
}

pub(super) async fn payloads_come_back_byte_for_byte(bus: TestBus) -> Outcome {
    let mut subscriber = bus.subscribe("live").await?;
    let payloads = [vec![], (0..=u8::MAX).collect(), vec![b'x'; 64 * 1024]];
    for payload in payloads {
        bus.publish("live", payload.clone()).await?;
        equal("a payload", &next_payload(&mut subscriber).await?, &payload)?;
    }
    Ok(())
}

/// Received and missed payloads together are everything that was published, in order.
pub(super) async fn a_slow_subscriber_learns_how_many_it_missed_and_continues(
    bus: TestBus,
) -> Outcome {
    let mut slow = bus.subscribe("live").await?;
    let published = bus.terms.overflow as u64;
    for n in 0..published {
        bus.publish("live", n.to_string()).await?;
    }
    let (mut place, mut missed_any) = (0, false);
    while place < published {
        match slow.next().await {
            Some(Delivery::Payload(payload)) => {
                equal("the payload in its place", &payload, &place.to_string().into_bytes())?;
                place += 1;
            }
            Some(Delivery::Missed(missed)) => {
                ensure!(missed > 0, "a subscriber got a count of 0 missed payloads");
                missed_any = true;
                place += missed;
            }
            None => return Err(Finding::Broken("the subscription ended".to_owned())),
        }
    }
    equal("all that was published", &place, &published)?;
    ensure!(
        missed_any,
        "{published} unread payloads were kept: `BusTimings::overflow` is too small, or there is no \
         bound"
    );
    bus.publish("live", "later").await?;
    equal("what came later", &next_payload(&mut slow).await?, &b"later".to_vec())
}

pub(super) async fn a_slow_subscriber_does_not_delay_others(bus: TestBus) -> Outcome {
    let slow = bus.subscribe("live").await?;
    let mut fast = bus.subscribe("live").await?;
    for n in 0..bus.terms.overflow as u64 {
        let payload = n.to_string().into_bytes();
        bus.publish("live", payload.clone()).await?;
        equal("a payload", &next_payload(&mut fast).await?, &payload)?;
    }
    drop(slow);
    Ok(())
}
