//! Faults of live events.

use antiphon_conformance::reference::LIVE_BACKLOG_MAX;
use antiphon_core::port::{Bus, BusError, Delivery, Subscription, Topic};
use futures_util::{StreamExt, future, stream};

use super::{Fault, FaultyBus};

impl FaultyBus {
    pub(super) async fn publish_wrongly(
        &self,
        topic: &Topic,
        mut payload: Vec<u8>,
    ) -> Result<(), BusError> {
        let listening = self.notes().subscribers.get(topic).copied().unwrap_or(0);
        if self.fault == Fault::NeedsAnAudience && listening == 0 {
            return Err(BusError::Unavailable { reason: "no subscriber".to_owned() });
        }
        if self.fault == Fault::TakesPayloadsForText {
            payload = String::from_utf8_lossy(&payload).into_owned().into_bytes();
        }
        let published = {
            let mut notes = self.notes();
            let past = notes.published.entry(topic.clone()).or_default();
            past.push(payload.clone());
            past.len()
        };
        if self.fault == Fault::WaitsForTheSlow && listening == 2 && published > LIVE_BACKLOG_MAX {
            future::pending::<()>().await;
        }
        if self.fault == Fault::MatchesPrefixes {
            for (end, _) in topic.as_str().match_indices('.') {
                let shorter = Topic::parse(&topic.as_str()[..end]).unwrap();
                self.inner.publish(&shorter, payload.clone()).await?;
            }
        }
        self.inner.publish(topic, payload).await
    }

    pub(super) async fn subscribe_wrongly(&self, topic: &Topic) -> Result<Subscription, BusError> {
        let (before, last) = {
            let mut notes = self.notes();
            let count = notes.subscribers.entry(topic.clone()).or_default();
            *count += 1;
            let before = *count - 1;
            (before, notes.published.get(topic).and_then(|past| past.last().cloned()))
        };
        let subscription = self.inner.subscribe(topic).await?;
        if self.fault == Fault::ServesTwoSubscribersAtMost && before >= 2 {
            return Ok(Box::pin(stream::pending()));
        }
        if self.fault == Fault::RetainsTheLast {
            let retained = stream::iter(last.map(Delivery::Payload));
            return Ok(Box::pin(retained.chain(subscription)));
        }
        if self.fault == Fault::DropsSilently {
            let heard = |delivery: &Delivery| {
                future::ready(match delivery {
                    Delivery::Payload(_) => true,
                    Delivery::Missed(_) => false,
                })
            };
            return Ok(Box::pin(subscription.filter(heard)));
        }
        Ok(subscription)
    }
}
