//! Cancellation: it unblocks a read, loses no event that was already there, and stays.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake};

use antiphon_core::{
    AssistantBlock, Cancel, MessageStream, Piece, ProviderError, StopReason, StreamError,
};
use futures_executor::block_on;
use futures_util::future::{AbortHandle, Abortable, pending};
use futures_util::{FutureExt, StreamExt};

use crate::{
    at, begin, call, delta, end, ended, message, object, read, silent_after, stop, text,
    text_delta, whole_call,
};

/// A cancellation and the handle that fires it.
fn cancelable() -> (Cancel, AbortHandle) {
    let (handle, registration) = AbortHandle::new_pair();
    (Cancel::when(Abortable::new(pending::<()>(), registration).map(drop)), handle)
}

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_read_that_waits_is_woken_by_the_cancellation() {
    let (cancel, handle) = cancelable();
    let mut stream = MessageStream::new(silent_after(vec![text(0, "hi")]), cancel, at());
    assert_eq!(block_on(stream.next()), Ok(Some(text_delta("hi"))));

    let woken = Arc::new(Woken::default());
    let waker = Arc::clone(&woken).into();
    let mut cx = Context::from_waker(&waker);
    let mut next = Box::pin(stream.next());
    assert_eq!(next.as_mut().poll(&mut cx), Poll::Pending);
    handle.abort();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert_eq!(next.as_mut().poll(&mut cx), Poll::Ready(Err(StreamError::Canceled)));
    drop(next);

    let hi = message(StopReason::Aborted, vec![AssistantBlock::text("hi")]);
    for _ in 0..3 {
        assert_eq!(block_on(stream.next()), Err(StreamError::Canceled));
        assert_eq!(stream.message(), Ok(hi.clone()));
    }
    stream.close();
    assert_eq!(block_on(stream.next()), Err(StreamError::Canceled));
    assert_eq!(stream.message(), Ok(hi));
    assert_eq!(StreamError::Canceled.to_string(), "the answer was canceled");
    assert_eq!(StreamError::Closed.to_string(), "the answer was closed before its end");
}

#[test]
fn what_was_canceled_before_the_first_read_never_reaches_the_wire() {
    let wire = futures_util::stream::poll_fn(|_| -> Poll<Option<Result<Piece, ProviderError>>> {
        unreachable!("the wire was read")
    });
    let cancel = Cancel::when(std::future::ready(()));
    let mut stream = MessageStream::new(wire.boxed(), cancel, at());
    let seen = read(&mut stream);
    assert_eq!(seen.events, []);
    assert_eq!(seen.end, Err(StreamError::Canceled));
    assert_eq!(seen.message, message(StopReason::Aborted, vec![]));
}

#[test]
fn events_that_were_there_before_the_cancellation_are_still_handed_out() {
    let (cancel, handle) = cancelable();
    let wire = silent_after(vec![call(0, "a", "read", "{}"), end(0), text(1, "more")]);
    let mut stream = MessageStream::new(wire, cancel, at());
    assert_eq!(block_on(stream.next()), Ok(Some(begin("a", "read"))));
    handle.abort();
    assert_eq!(block_on(stream.next()), Ok(Some(delta("a", "{}"))));
    assert_eq!(block_on(stream.next()), Err(StreamError::Canceled));
    assert_eq!(stream.message(), Ok(message(StopReason::Aborted, vec![])));
}

#[test]
fn a_cancellation_after_the_end_changes_nothing() {
    let (cancel, handle) = cancelable();
    let wire =
        silent_after(vec![call(0, "a", "read", "{}"), stop(StopReason::ToolUse, ""), Piece::Done]);
    let mut stream = MessageStream::new(wire, cancel, at());
    let call = whole_call("a", "read", object("{}"));
    let seen = read(&mut stream);
    assert_eq!(seen.events, [begin("a", "read"), delta("a", "{}"), ended(call.clone())]);
    handle.abort();
    assert_eq!(block_on(stream.next()), Ok(None));
    let whole = message(StopReason::ToolUse, vec![AssistantBlock::ToolCall(call)]);
    assert_eq!(stream.message(), Ok(whole));
}

#[test]
fn a_call_that_was_finished_before_the_cancellation_is_in_the_message() {
    let (cancel, handle) = cancelable();
    let wire = silent_after(vec![
        call(0, "a", "read", "{}"),
        end(0),
        call(1, "b", "write", r#"{"path":"#),
    ]);
    let mut stream = MessageStream::new(wire, cancel, at());
    while let Some(Ok(Some(_))) = stream.next().now_or_never() {}
    handle.abort();
    assert_eq!(block_on(pin!(stream.next())), Err(StreamError::Canceled));
    let finished = AssistantBlock::ToolCall(whole_call("a", "read", object("{}")));
    assert_eq!(stream.message(), Ok(message(StopReason::Aborted, vec![finished])));
}
