//! Executes orders of control requests.
//!
//! The same order may be requested again: after a crash, after a failed write, and when a file is
//! dropped a second time. It then has the same key. The implementation of [`OrderExecutor`] ensures that
//! it has one effect.

use async_trait::async_trait;

use crate::{Order, OrderError, OrderResult};

/// Executes orders.
#[async_trait]
pub trait OrderExecutor: Send + Sync {
    /// Executes an order once: the same key has the same result and one effect, also for concurrent
    /// calls and across restarts. The result is durable when this returns.
    ///
    /// May be dropped at any point; the same order is then requested again with the same key.
    async fn execute(
        &self,
        order: Order,
        requester: &str,
        key: &str,
    ) -> Result<OrderResult, OrderError>;
}
