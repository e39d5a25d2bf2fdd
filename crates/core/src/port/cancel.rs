//! Cancellation, as a value that every long-running operation takes.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::future::BoxFuture;

/// Becomes ready once, when the caller wants the work to stop. The runtime makes one
/// from its cancellation token: `Cancel::when(token.cancelled_owned())`.
pub struct Cancel {
    signal: Option<BoxFuture<'static, ()>>,
    fired: bool,
}

impl Cancel {
    /// Never fires.
    pub fn never() -> Self {
        Self { signal: None, fired: false }
    }

    /// Fires when `signal` does.
    pub fn when(signal: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { signal: Some(Box::pin(signal)), fired: false }
    }
}

/// Stays ready once it has fired, so that every `select` can use it.
impl Future for Cancel {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.fired {
            return Poll::Ready(());
        }
        let Some(signal) = &mut self.signal else {
            return Poll::Pending;
        };
        let poll = signal.as_mut().poll(cx);
        if poll.is_ready() {
            self.fired = true;
            self.signal = None;
        }
        poll
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel").field("fired", &self.fired).finish_non_exhaustive()
    }
}
