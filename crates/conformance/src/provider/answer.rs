//! An answer, as its reader sees it.

use antiphon_core::{AssistantMessage, MessageStream, NotStarted, StreamError, StreamEvent};
use async_trait::async_trait;

/// Operations of the checks on an answer. [`MessageStream`] is the implementation; the trait exists
/// so that this crate's own tests can pass a wrong one to the checks.
#[async_trait]
pub trait Answer: Send {
    /// See [`MessageStream::next`].
    async fn next(&mut self) -> Result<Option<StreamEvent>, StreamError>;

    /// See [`MessageStream::message`].
    fn message(&self) -> Result<AssistantMessage, NotStarted>;

    /// See [`MessageStream::close`].
    fn close(&mut self);
}

#[async_trait]
impl Answer for MessageStream {
    async fn next(&mut self) -> Result<Option<StreamEvent>, StreamError> {
        Self::next(self).await
    }

    fn message(&self) -> Result<AssistantMessage, NotStarted> {
        Self::message(self)
    }

    fn close(&mut self) {
        Self::close(self);
    }
}
