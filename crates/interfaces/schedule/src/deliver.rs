//! The port to agents' inboxes.

use async_trait::async_trait;

use crate::tick::Tick;

/// Puts ticks into agents' inboxes.
///
/// A key is accepted once, however long ago that was. A later call with the same key does nothing
/// and reports the duplicate. This alone makes each tick happen once.
#[async_trait]
pub trait Deliver: Send + Sync {
    /// Puts a tick into its agent's inbox. The tick is durable there when this returns. May be
    /// dropped earlier: the same tick is then delivered again with the same key.
    async fn deliver(&self, tick: Tick) -> Result<DeliveryStatus, DeliverError>;
}

/// How a tick came to be in its inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// This call put it there.
    New,
    /// An earlier call put it there, and this call did nothing.
    Duplicate,
}

/// Why a tick is not in its inbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliverError {
    /// The tick is refused, and would be again: skip it.
    #[error("refused: {reason}")]
    Refused {
        /// Why it is refused, such as an unknown agent or a full inbox.
        reason: String,
    },
    /// The inbox is temporarily unavailable: try again.
    #[error("unavailable: {reason}")]
    Unavailable {
        /// What is unavailable.
        reason: String,
    },
}
