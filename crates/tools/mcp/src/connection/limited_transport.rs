//! Wraps a transport: limits the message rate, bounds the server's requests, and filters out
//! messages that `rmcp` need not see.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;

use crate::connection::rate_limiter::RateLimiter;
use crate::connection::traffic::Traffic;

/// Unanswered requests of a server. Further ones are ignored: a server that does not read answers
/// must not fill the client's memory.
pub const REQUESTS_MAX: usize = 16;

/// A transport with limits.
pub(crate) struct LimitedTransport<T> {
    inner: T,
    traffic: Arc<Traffic>,
    rate_limiter: RateLimiter,
    /// A received message that waits for the rate limiter.
    delayed: Option<ServerJsonRpcMessage>,
}

impl<T> LimitedTransport<T> {
    pub(crate) fn new(inner: T, traffic: Arc<Traffic>) -> Self {
        Self { inner, traffic, rate_limiter: RateLimiter::for_messages(), delayed: None }
    }
}

impl<T> Drop for LimitedTransport<T> {
    fn drop(&mut self) {
        self.traffic.closed.cancel();
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for LimitedTransport<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let slot = self.traffic.on_send(&message);
        let sending = self.inner.send(message);
        async move {
            let sent = sending.await;
            drop(slot);
            sent
        }
    }

    /// Safe to cancel: a message that waits for the rate limiter is kept.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if self.delayed.is_none() {
                self.delayed = self.inner.receive().await;
            }
            if self.delayed.is_none() {
                self.traffic.closed.cancel();
                return None;
            }
            self.rate_limiter.acquire(1).await;
            if let Some(message) =
                self.delayed.take().and_then(|message| self.traffic.on_receive(message))
            {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.traffic.closed.cancel();
        self.inner.close().await
    }
}
