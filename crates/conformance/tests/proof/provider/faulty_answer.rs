//! Answers that are wrong in one respect each.

mod retelling;

use std::pin::pin;
use std::task::{Context, Waker};

use antiphon_conformance::provider::Answer;
use antiphon_core::port::{Cancel, PieceSource, ProviderError};
use antiphon_core::{
    AssistantMessage, MessageStream, NotStarted, StopReason, StreamError, StreamEvent, Usage,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use tokio::sync::oneshot;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum AnswerFault {
    HasAMessageTooEarly,
    HidesThePartial,
    SplitsTheWhole,
    EndsTwiceOnly,
    ForgetsErrors,
    ForgetsTextWhenCut,
    ForgetsThatItIsClosed,
    AbortsWhatIsWhole,
    LooksForCancelBetweenReads,
    CallsCanceledAnError,
    SendsBeforeItLooksForCancel,
    TellsThinkingAsText,
    ForgetsTheEndOfACall,
    SortsCalls,
    ParsesArguments,
    MendsArguments,
    RepeatsIds,
    ForgetsWhatACutCost,
    LeaksWhenDropped,
    LeaksWhenClosed,
}

/// A correct answer behind a faulty reader.
pub(super) struct FaultyAnswer {
    fault: AnswerFault,
    /// `None` once it is dropped.
    stream: Option<MessageStream>,
    /// The cancel of the caller. The stream has another, which fires when this one does.
    cancel: Cancel,
    stop: Option<oneshot::Sender<()>>,
    begun: bool,
    ends: usize,
    error: Option<StreamError>,
    closed: bool,
    text_seen: bool,
}

impl FaultyAnswer {
    pub(super) fn new(
        fault: AnswerFault,
        source: PieceSource,
        cancel: Cancel,
        at: DateTime<Utc>,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let inner_cancel = Cancel::when(async {
            drop(stopped.await);
        });
        Self {
            fault,
            stream: Some(MessageStream::new(source, inner_cancel, at)),
            cancel,
            stop: Some(stop),
            begun: false,
            ends: 0,
            error: None,
            closed: false,
            text_seen: false,
        }
    }

    fn is(&self, fault: AnswerFault) -> bool {
        self.fault == fault
    }

    /// Forwards a cancel as soon as it fires, unless the fault prevents it.
    async fn read(&mut self) -> Result<Option<StreamEvent>, StreamError> {
        if !self.begun && self.is(AnswerFault::SendsBeforeItLooksForCancel) {
            for _ in 0..2 {
                let mut noop = Context::from_waker(Waker::noop());
                assert!(pin!(self.stream().next()).poll(&mut noop).is_pending());
            }
        }
        self.begun = true;
        if (&mut self.cancel).now_or_never().is_some() {
            self.stop = None;
        }
        if self.is(AnswerFault::LooksForCancelBetweenReads) {
            return self.stream().next().await;
        }
        tokio::select! {
            biased;
            next = self.stream.as_mut().unwrap().next() => return next,
            () = &mut self.cancel => {}
        }
        self.stop = None;
        self.stream().next().await
    }

    fn stream(&mut self) -> &mut MessageStream {
        self.stream.as_mut().unwrap()
    }
}

#[async_trait]
impl Answer for FaultyAnswer {
    async fn next(&mut self) -> Result<Option<StreamEvent>, StreamError> {
        if self.closed && self.ends == 0 && self.is(AnswerFault::ForgetsThatItIsClosed) {
            return Ok(None);
        }
        if self.closed && self.ends == 0 && self.is(AnswerFault::LeaksWhenClosed) {
            return Err(StreamError::Closed);
        }
        let forgets = self.is(AnswerFault::ForgetsErrors);
        if forgets && matches!(self.error, Some(StreamError::Provider(_))) {
            return Ok(None);
        }
        loop {
            match self.read().await {
                Ok(Some(event)) => {
                    if let Some(told) = self.retold(event) {
                        return Ok(Some(told));
                    }
                }
                Ok(None) => {
                    self.ends += 1;
                    let over = self.ends > 2 && self.is(AnswerFault::EndsTwiceOnly);
                    return if over { Err(StreamError::Closed) } else { Ok(None) };
                }
                Err(error) => {
                    self.error = Some(error.clone());
                    return Err(error);
                }
            }
        }
    }

    fn message(&self) -> Result<AssistantMessage, NotStarted> {
        let Ok(mut message) = self.stream.as_ref().unwrap().message() else {
            return self.message_too_early();
        };
        let cut = self.error == Some(StreamError::Provider(ProviderError::Cut));
        let running = self.ends == 0 && self.error.is_none() && !self.closed;
        let hides = running && self.is(AnswerFault::HidesThePartial);
        if hides || (cut && self.is(AnswerFault::ForgetsTextWhenCut)) {
            message.content.clear();
        }
        if cut && self.is(AnswerFault::ForgetsWhatACutCost) {
            message.usage = Usage::default();
        }
        let canceled = self.error == Some(StreamError::Canceled) && !message.content.is_empty();
        if canceled && self.is(AnswerFault::CallsCanceledAnError) {
            message.stop_reason = StopReason::Error;
        }
        let whole = self.closed && self.ends > 0;
        if (whole && self.is(AnswerFault::AbortsWhatIsWhole))
            || (self.closed && self.ends == 0 && self.is(AnswerFault::LeaksWhenClosed))
        {
            message.stop_reason = StopReason::Aborted;
        }
        Ok(self.rewritten(message))
    }

    fn close(&mut self) {
        self.closed = true;
        if !self.is(AnswerFault::LeaksWhenClosed) || self.ends > 0 {
            self.stream().close();
        }
    }
}

impl Drop for FaultyAnswer {
    fn drop(&mut self) {
        if self.is(AnswerFault::LeaksWhenDropped) && !self.closed {
            std::mem::forget(self.stream.take());
        }
    }
}
