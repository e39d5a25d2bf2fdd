//! One answer of a model, from its first piece to the complete message.
//!
//! A [`MessageStream`] reads [`Piece`]s from a provider, returns semantic
//! [`StreamEvent`]s and assembles the [`AssistantMessage`]. Every provider's answer goes
//! through here, so that each of these is handled once: interleaved calls, empty arguments,
//! interrupted arguments, repeated ids, signatures, unknown blocks.
//!
//! | state        | [`next`](MessageStream::next) | [`message`](MessageStream::message)     |
//! |--------------|-------------------------------|-----------------------------------------|
//! | new          | reads                         | [`NotStarted`]                          |
//! | streaming    | reads                         | partial                                 |
//! | complete     | `None`, again and again       | complete                                |
//! | error        | the same error again          | partial, `error` (`aborted` if canceled)|
//! | closed early | [`StreamError::Closed`]       | partial, `aborted`                      |
//!
//! A partial message never holds an unfinished call: it could not run, and providers would refuse
//! the next request.

mod assembly;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::port::{Cancel, Piece, PieceSource, Provider, ProviderError};
use crate::{AssistantMessage, Request, StopReason, ToolCallBlock, ToolCallId};
use assembly::Assembly;
pub use assembly::{BLOCKS_MAX, MESSAGE_BYTES_MAX};

/// One event of an answer. Failures are not events: `next` returns them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum StreamEvent {
    /// More text.
    TextDelta {
        /// Text to append.
        delta: String,
    },
    /// More thinking.
    ThinkingDelta {
        /// Text to append.
        delta: String,
    },
    /// A tool call begins; its tool is known.
    ToolCallBegin {
        /// Id of the call.
        id: ToolCallId,
        /// Name of the tool.
        name: String,
    },
    /// More of a call's arguments.
    ToolCallDelta {
        /// Id of the call.
        id: ToolCallId,
        /// JSON text to append.
        delta: String,
    },
    /// A call is complete.
    ToolCallEnd {
        /// The call.
        call: ToolCallBlock,
    },
}

/// Why there is nothing more to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The provider failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The [`Cancel`] of the stream fired.
    #[error("the answer was canceled")]
    Canceled,
    /// The stream was closed before its end.
    #[error("the answer was closed before its end")]
    Closed,
}

/// [`MessageStream::message`] was called before anything was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nothing of the answer has been read yet")]
pub struct NotStarted;

/// One answer of a model. See the [module](self) for its states.
pub struct MessageStream {
    source: Option<PieceSource>,
    cancel: Cancel,
    assembly: Assembly,
    ready: VecDeque<StreamEvent>,
    state: State,
}

enum State {
    New,
    Streaming,
    Complete,
    Failed(StreamError),
    Closed,
}

impl MessageStream {
    /// Calls `provider`. Nothing is sent before the first [`next`](Self::next). `at` becomes
    /// the message's timestamp. A call without an id gets one made from the number of
    /// messages in the request: no other answer of the conversation has it, and a replay makes
    /// the same id.
    pub fn open(
        provider: &dyn Provider,
        request: Request,
        cancel: Cancel,
        at: DateTime<Utc>,
    ) -> Self {
        let stamp = request.messages.len();
        Self::stamped(provider.open(request), cancel, at, stamp)
    }

    /// Assembles the pieces of `source`, as the answer to an empty conversation.
    pub fn new(source: PieceSource, cancel: Cancel, at: DateTime<Utc>) -> Self {
        Self::stamped(source, cancel, at, 0)
    }

    fn stamped(source: PieceSource, cancel: Cancel, at: DateTime<Utc>, stamp: usize) -> Self {
        Self {
            source: Some(source),
            cancel,
            assembly: Assembly::new(at, stamp),
            ready: VecDeque::new(),
            state: State::New,
        }
    }

    /// The next event, `None` at the end. Cancel safe: a dropped `next` has consumed
    /// nothing.
    pub async fn next(&mut self) -> Result<Option<StreamEvent>, StreamError> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The message so far; complete once `next` has returned `None`.
    pub fn message(&self) -> Result<AssistantMessage, NotStarted> {
        match &self.state {
            State::New => Err(NotStarted),
            State::Streaming => Ok(self.assembly.partial(StopReason::Unknown)),
            State::Complete => Ok(self.assembly.whole()),
            State::Failed(StreamError::Canceled | StreamError::Closed) | State::Closed => {
                Ok(self.assembly.partial(StopReason::Aborted))
            }
            State::Failed(StreamError::Provider(_)) => Ok(self.assembly.partial(StopReason::Error)),
        }
    }

    /// Drops the provider's stream. The assembled message stays; a finished stream stays finished.
    pub fn close(&mut self) {
        self.source = None;
        if matches!(self.state, State::New | State::Streaming) {
            self.ready.clear();
            self.state = State::Closed;
        }
    }

    /// Reads to the end and returns the complete message.
    pub async fn complete(mut self) -> Result<AssistantMessage, StreamError> {
        while self.next().await?.is_some() {}
        Ok(self.assembly.whole())
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<StreamEvent>, StreamError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Ok(Some(event)));
            }
            match &self.state {
                State::New => self.state = State::Streaming,
                State::Streaming => {}
                State::Complete => return Poll::Ready(Ok(None)),
                State::Failed(error) => return Poll::Ready(Err(error.clone())),
                State::Closed => return Poll::Ready(Err(StreamError::Closed)),
            }
            if std::pin::Pin::new(&mut self.cancel).poll(cx).is_ready() {
                self.fail(StreamError::Canceled);
                continue;
            }
            let Some(source) = &mut self.source else {
                self.fail(StreamError::Closed);
                continue;
            };
            match source.as_mut().poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(piece))) => self.take(piece),
                Poll::Ready(Some(Err(error))) => self.fail(error.into()),
                Poll::Ready(None) => self.fail(ProviderError::Cut.into()),
            }
        }
    }

    fn take(&mut self, piece: Piece) {
        let done = piece == Piece::Done;
        let taken = self.assembly.apply(piece, &mut self.ready);
        match taken {
            Ok(()) if done => {
                self.source = None;
                self.state = State::Complete;
            }
            Ok(()) => {}
            Err(error) => self.fail(error.into()),
        }
    }

    fn fail(&mut self, error: StreamError) {
        self.source = None;
        self.state = State::Failed(error);
    }
}
