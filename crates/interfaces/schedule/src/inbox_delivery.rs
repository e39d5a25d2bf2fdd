//! Delivers ticks to the inboxes of an orchestrator. Admission accepts a key once.

use antiphon_core::{InteractionId, Provenance, Wake};
use antiphon_runtime::{Arrival, Orchestrator, Receipt};
use async_trait::async_trait;

use crate::deliver::{Deliver, DeliverError, DeliveryStatus};
use crate::tick::Tick;

/// Delivers ticks of schedules to agents' inboxes.
pub struct InboxDelivery(
    /// Admits the interactions.
    pub Orchestrator,
);

#[async_trait]
impl Deliver for InboxDelivery {
    async fn deliver(&self, tick: Tick) -> Result<DeliveryStatus, DeliverError> {
        let interaction = tick.interaction(InteractionId::new());
        let arrival = Arrival {
            to: tick.schedule.agent.clone(),
            from: interaction.from,
            content: interaction.content,
            mode: interaction.handling_mode,
            render_metadata: interaction.render_metadata,
            wake: if tick.schedule.wake { Wake::Yes } else { Wake::No },
            until: None,
            key: Some(tick.key),
            payload: None,
            provenance: Provenance::Schedule(tick.schedule.name.to_string()),
        };
        let unavailable = |reason: String| DeliverError::Unavailable { reason };
        match self.0.admit(arrival).await.map_err(|error| unavailable(error.to_string()))? {
            Receipt::Accepted { .. } | Receipt::Filtered => Ok(DeliveryStatus::New),
            Receipt::Deduplicated { .. } => Ok(DeliveryStatus::Duplicate),
            Receipt::Rejected(rejection) if rejection.is_temporary() => {
                Err(unavailable(rejection.to_string()))
            }
            Receipt::Rejected(rejection) => {
                Err(DeliverError::Refused { reason: rejection.to_string() })
            }
        }
    }
}
