//! The state table: what `next` and `message` say in each state.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use antiphon_core::{
    AssistantBlock, Cancel, Message, MessageStream, NotStarted, Piece, PieceSource, Provider,
    ProviderError, Request, StopReason, StreamError, UserMessage,
};
use chrono::{DateTime, TimeDelta, Utc};
use futures_executor::block_on;
use futures_util::stream::poll_fn;
use futures_util::{FutureExt, StreamExt};

use crate::{answer, at, call, end, message, seen, silent_after, stop, text, text_delta};

fn hi(reason: StopReason) -> antiphon_core::AssistantMessage {
    message(reason, vec![AssistantBlock::text("hi")])
}

#[test]
fn a_new_stream_has_no_message() {
    let stream = answer([Ok(text(0, "hi"))]);
    assert_eq!(stream.message(), Err(NotStarted));
    assert_eq!(NotStarted.to_string(), "nothing of the answer has been read yet");
}

#[test]
fn a_stream_that_is_being_read_has_a_partial_message() {
    let mut stream = answer([Ok(text(0, "h")), Ok(text(0, "i")), Ok(Piece::Done)]);
    assert_eq!(block_on(stream.next()), Ok(Some(text_delta("h"))));
    assert_eq!(stream.message(), Ok(message(StopReason::Unknown, vec![AssistantBlock::text("h")])));
    assert_eq!(block_on(stream.next()), Ok(Some(text_delta("i"))));
    assert_eq!(stream.message(), Ok(hi(StopReason::Unknown)));
}

#[test]
fn a_stream_that_waits_for_its_first_piece_has_an_empty_message() {
    let mut stream = MessageStream::new(silent_after(vec![]), Cancel::never(), at());
    assert_eq!(stream.next().now_or_never(), None);
    assert_eq!(stream.message(), Ok(message(StopReason::Unknown, vec![])));
}

#[test]
fn a_complete_stream_ends_again_and_again_and_its_message_is_whole() {
    let mut stream =
        answer([Ok(text(0, "hi")), Ok(stop(StopReason::EndTurn, "")), Ok(Piece::Done)]);
    assert_eq!(block_on(stream.next()), Ok(Some(text_delta("hi"))));
    for _ in 0..3 {
        assert_eq!(block_on(stream.next()), Ok(None));
        assert_eq!(stream.message(), Ok(hi(StopReason::EndTurn)));
    }
    stream.close();
    assert_eq!(block_on(stream.next()), Ok(None));
    assert_eq!(stream.message(), Ok(hi(StopReason::EndTurn)));
}

#[test]
fn a_failed_stream_gives_the_same_error_again_and_a_partial_message() {
    let failure = ProviderError::Server { status: 529, message: "x".to_owned(), retry_after: None };
    let mut stream = answer([
        Ok(text(0, "hi")),
        Ok(call(1, "a", "read", "{")),
        Ok(stop(StopReason::EndTurn, "")),
        Err(failure.clone()),
        Ok(text(0, "never read")),
        Ok(Piece::Done),
    ]);
    while let Ok(Some(_)) = block_on(stream.next()) {}
    for _ in 0..3 {
        assert_eq!(block_on(stream.next()), Err(StreamError::Provider(failure.clone())));
        assert_eq!(stream.message(), Ok(hi(StopReason::Error)));
    }
    stream.close();
    assert_eq!(block_on(stream.next()), Err(StreamError::Provider(failure)));
    assert_eq!(stream.message(), Ok(hi(StopReason::Error)));
}

#[test]
fn a_stream_that_is_closed_early_says_so_and_keeps_what_there_is() {
    let mut stream = answer([Ok(text(0, "hi")), Ok(text(0, "!")), Ok(Piece::Done)]);
    assert_eq!(block_on(stream.next()), Ok(Some(text_delta("hi"))));
    for _ in 0..3 {
        stream.close();
        assert_eq!(block_on(stream.next()), Err(StreamError::Closed));
        assert_eq!(stream.message(), Ok(hi(StopReason::Aborted)));
    }
}

#[test]
fn a_stream_that_is_closed_unread_has_an_empty_message() {
    let mut stream = answer([Ok(text(0, "hi")), Ok(Piece::Done)]);
    stream.close();
    assert_eq!(stream.message(), Ok(message(StopReason::Aborted, vec![])));
    assert_eq!(block_on(stream.next()), Err(StreamError::Closed));
}

#[test]
fn closing_drops_the_events_that_were_not_taken() {
    let mut stream = answer([Ok(call(0, "a", "read", "{}")), Ok(end(0)), Ok(Piece::Done)]);
    assert!(matches!(block_on(stream.next()), Ok(Some(_))));
    stream.close();
    assert_eq!(block_on(stream.next()), Err(StreamError::Closed));
}

#[test]
fn a_wire_that_ends_without_saying_so_was_cut() {
    let cut = StreamError::Provider(ProviderError::Cut);
    let hello = seen([text(0, "hi"), stop(StopReason::EndTurn, "")]);
    assert_eq!(hello.events, [text_delta("hi")]);
    assert_eq!(hello.end, Err(cut.clone()));
    assert_eq!(hello.message, hi(StopReason::Error));
    let nothing = seen([]);
    assert_eq!((nothing.end, nothing.message), (Err(cut), message(StopReason::Error, vec![])));
}

#[test]
fn an_answer_can_be_read_in_one_go() {
    let whole = answer([Ok(text(0, "hi")), Ok(stop(StopReason::EndTurn, "")), Ok(Piece::Done)]);
    assert_eq!(block_on(whole.complete()), Ok(hi(StopReason::EndTurn)));
    let cut = answer([Ok(text(0, "hi"))]);
    assert_eq!(block_on(cut.complete()), Err(StreamError::Provider(ProviderError::Cut)));
}

#[test]
fn a_next_that_was_dropped_has_taken_nothing() {
    let mut waits_once = [false, true].into_iter();
    let late = poll_fn(move |cx| match waits_once.next() {
        Some(false) => {
            cx.waker().wake_by_ref();
            std::task::Poll::Pending
        }
        Some(true) => std::task::Poll::Ready(Some(Ok(text(0, "hi")))),
        None => std::task::Poll::Ready(None),
    });
    let mut stream = MessageStream::new(late.boxed(), Cancel::never(), at());
    assert_eq!(stream.next().now_or_never(), None);
    assert_eq!(block_on(stream.next()), Ok(Some(text_delta("hi"))));
}

/// Says whether it was let go.
struct Held(Arc<AtomicBool>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn the_wire_is_let_go_as_soon_as_nothing_more_is_read_from_it() {
    let source = |last: Result<Piece, ProviderError>| {
        let gone = Arc::new(AtomicBool::new(false));
        let held = Held(Arc::clone(&gone));
        let wire = futures_util::stream::iter([last]).map(move |piece| {
            let _ = &held;
            piece
        });
        (MessageStream::new(wire.boxed(), Cancel::never(), at()), gone)
    };
    for last in [Ok(Piece::Done), Err(ProviderError::Cut), Ok(end(0))] {
        let (mut stream, gone) = source(last);
        let _ = block_on(stream.next());
        assert!(gone.load(Ordering::SeqCst));
    }
    let (mut stream, gone) = source(Ok(Piece::Done));
    assert!(!gone.load(Ordering::SeqCst));
    stream.close();
    assert!(gone.load(Ordering::SeqCst));
}

/// Calls without an id.
struct Nameless;

impl Provider for Nameless {
    fn open(&self, _request: Request) -> PieceSource {
        silent_after(vec![call(0, "", "read", "{}"), Piece::Done])
    }
}

#[test]
fn a_made_id_depends_on_the_length_of_the_conversation_and_on_nothing_else() {
    let made = |messages: usize, at: DateTime<Utc>| {
        let question = Arc::<Message>::from(UserMessage::text("hi", at));
        let request = Request { messages: vec![question; messages].into(), ..Request::default() };
        let stream = MessageStream::open(&Nameless, request, Cancel::never(), at);
        let answer = block_on(stream.complete()).unwrap();
        answer.tool_calls().map(|call| call.id.to_string()).collect::<String>()
    };
    let later = at() + TimeDelta::days(1);
    assert_eq!(made(1, at()), "00000000-0000-0001-0000-000000000000");
    assert_eq!(made(1, later), made(1, at()));
    assert_eq!(made(3, later), "00000000-0000-0003-0000-000000000000");
}

/// Remembers what it was asked.
struct Recording(Mutex<Vec<Request>>);

impl Provider for Recording {
    fn open(&self, request: Request) -> PieceSource {
        self.0.lock().unwrap().push(request);
        silent_after(vec![text(0, "hi"), Piece::Done])
    }
}

#[test]
fn opening_hands_the_request_to_the_provider() {
    let provider = Recording(Mutex::new(vec![]));
    let request = Request { model: "m".to_owned(), ..Request::default() };
    let stream = MessageStream::open(&provider, request.clone(), Cancel::never(), at());
    assert_eq!(block_on(stream.complete()), Ok(hi(StopReason::Unknown)));
    assert_eq!(*provider.0.lock().unwrap(), [request]);
}
