//! Stands between a server and the protocol: sets the pace, bounds the server's requests, and takes
//! out what is not for the protocol's machinery.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;

use crate::pace::Pace;
use crate::traffic::Traffic;

/// Requests of a server that may wait for our answer. Further ones are ignored: a server that does
/// not read our answers must not make us keep them.
pub const REQUESTS_MAX: usize = 16;

/// A transport, watched.
pub(crate) struct Guard<T> {
    inner: T,
    traffic: Arc<Traffic>,
    pace: Pace,
    /// Came too fast, and waits for its turn.
    held: Option<ServerJsonRpcMessage>,
}

impl<T> Guard<T> {
    pub(crate) fn new(inner: T, traffic: Arc<Traffic>) -> Self {
        Self { inner, traffic, pace: Pace::of_messages(), held: None }
    }
}

impl<T> Drop for Guard<T> {
    fn drop(&mut self) {
        self.traffic.gone.cancel();
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Guard<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let place = self.traffic.leaving(&message);
        let sending = self.inner.send(message);
        async move {
            let sent = sending.await;
            drop(place);
            sent
        }
    }

    /// Safe to cancel: a message that waits for its turn is held.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if self.held.is_none() {
                self.held = self.inner.receive().await;
            }
            if self.held.is_none() {
                self.traffic.gone.cancel();
                return None;
            }
            self.pace.taken(1).await;
            if let Some(message) =
                self.held.take().and_then(|message| self.traffic.arrived(message))
            {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.traffic.gone.cancel();
        self.inner.close().await
    }
}
