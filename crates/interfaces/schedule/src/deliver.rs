//! The port to agents' inboxes.

use async_trait::async_trait;

use crate::tick::Tick;

/// Puts ticks into inboxes.
///
/// A key is taken once, however long ago that was: whoever asks again with it is told so, and nothing
/// is put anywhere. That is the whole of what makes ticks happen once.
#[async_trait]
pub trait Deliver: Send + Sync {
    /// Puts a tick into its agent's inbox; when it answers, the tick is durable there. May be dropped
    /// before it answers. The same tick is then delivered again, with the same key.
    async fn deliver(&self, tick: Tick) -> Result<Delivered, DeliverError>;
}

/// A tick is in its inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// Since now.
    New,
    /// It had been there before, and nothing was done.
    Before,
}

/// A tick is not in its inbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliverError {
    /// And it will not be: leave it out.
    #[error("refused: {reason}")]
    Refused {
        /// Why: there is no such agent, its inbox is full.
        reason: String,
    },
    /// Not yet: try again.
    #[error("unavailable: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
}
