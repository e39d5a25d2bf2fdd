use std::time::Duration;

use antiphon_core::port::TimeoutPhase;
use antiphon_core::{
    AssistantBlock, AssistantMessage, Cancel, ModelRef, Piece, Provider, StopReason, StreamError,
    Usage,
};
use antiphon_layers::{Timeouts, TimeoutsConfig};
use futures_util::StreamExt;
use tokio::time::{Instant, sleep};

use crate::fault::{server, timeout};
use crate::piece::{answer, model, text};
use crate::test_provider::{Action, TestProvider, ms, say};
use crate::world::{AT, Read, ask, message, request, scripted};

/// The first byte within 10 s, each other within 2 s.
const QUICK: TimeoutsConfig =
    TimeoutsConfig { first_byte: Duration::from_secs(10), stall: Duration::from_secs(2) };

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_starts_fails_after_the_first_timeout() {
    let inner = TestProvider::in_turn(vec![vec![Action::Hang]]);
    let start = Instant::now();
    let read = ask(&Timeouts::new(inner.clone(), QUICK)).await;
    assert_eq!(read, Read::failed(timeout(TimeoutPhase::FirstByte)));
    assert_eq!(start.elapsed(), QUICK.first_byte);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_stalls_fails_after_the_stall_timeout() {
    for piece in [text(0, "and"), Piece::Alive, model("a/b")] {
        let acts = vec![Action::Wait(ms(1000)), Action::Send(piece.clone()), Action::Hang];
        let start = Instant::now();
        let read = ask(&Timeouts::new(TestProvider::in_turn(vec![acts]), QUICK)).await;
        let failure = Some(timeout(TimeoutPhase::Stall));
        assert_eq!(read, Read { pieces: vec![piece], failure });
        assert_eq!(start.elapsed(), ms(1000) + QUICK.stall);
    }
}

#[tokio::test(start_paused = true)]
async fn the_stall_timeout_may_be_longer_than_the_first() {
    let patient = TimeoutsConfig { first_byte: ms(500), stall: ms(60_000) };
    let alive = || Action::Send(Piece::Alive);
    let acts = vec![alive(), Action::Wait(ms(59_999)), alive(), Action::Hang];
    let start = Instant::now();
    let read = ask(&Timeouts::new(TestProvider::in_turn(vec![acts]), patient)).await;
    let failure = Some(timeout(TimeoutPhase::Stall));
    assert_eq!(read, Read { pieces: vec![Piece::Alive, Piece::Alive], failure });
    assert_eq!(start.elapsed(), ms(119_999));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_stays_active_may_take_any_time() {
    // Keep-alives for two hours, then word by word.
    let beat = [Action::Wait(ms(1999)), Action::Send(Piece::Alive)];
    let word = [Action::Wait(ms(1999)), Action::Send(text(0, "a"))];
    let acts = [
        vec![Action::Wait(ms(9999)), Action::Send(Piece::Alive)],
        beat.iter().cycle().take(2 * 3600).cloned().collect(),
        word.iter().cycle().take(200).cloned().collect(),
        vec![Action::Send(Piece::Done)],
    ]
    .concat();
    let pieces = [vec![Piece::Alive; 3601], vec![text(0, "a"); 100], vec![Piece::Done]].concat();
    let read = ask(&Timeouts::new(TestProvider::in_turn(vec![acts]), QUICK)).await;
    assert_eq!(read, Read::whole(pieces));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_timed_out_is_dropped() {
    let inner = TestProvider::in_turn(vec![vec![Action::Send(Piece::Alive), Action::Hang]]);
    let mut source = Timeouts::new(inner.clone(), QUICK).open(request("a"));
    assert_eq!(source.next().await, Some(Ok(Piece::Alive)));
    assert_eq!(inner.running(), 1);
    assert_eq!(source.next().await, Some(Err(timeout(TimeoutPhase::Stall))));
    assert_eq!(inner.running(), 0);
    assert_eq!(source.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_does_not_count_against_the_provider() {
    // It works only while it is polled, so the reader's pause is not its own.
    let acts = vec![Action::Send(Piece::Alive), Action::Wait(ms(500)), Action::Send(Piece::Done)];
    let mut source = Timeouts::new(TestProvider::in_turn(vec![acts]), QUICK).open(request("a"));
    sleep(QUICK.first_byte * 3).await;
    assert_eq!(source.next().await, Some(Ok(Piece::Alive)));
    sleep(QUICK.stall * 3).await;
    assert_eq!(source.next().await, Some(Ok(Piece::Done)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_time_is_unchanged() {
    let acts = vec![Action::Wait(ms(9999)), Action::Fail(server(None))];
    let failed = ask(&Timeouts::new(TestProvider::in_turn(vec![acts]), QUICK)).await;
    assert_eq!(failed, Read::failed(server(None)));
    let whole = ask(&Timeouts::new(TestProvider::sending(answer("hi")), QUICK)).await;
    assert_eq!(whole, Read::whole(answer("hi")));
    let cut = ask(&Timeouts::new(TestProvider::sending(vec![text(0, "cu")]), QUICK)).await;
    assert_eq!(cut, Read::whole(vec![text(0, "cu")]));
}

#[tokio::test(start_paused = true)]
async fn endless_limits_are_no_limits() {
    let forever = TimeoutsConfig { first_byte: Duration::MAX, stall: Duration::MAX };
    let day = Duration::from_hours(24);
    let acts = [
        vec![Action::Wait(day), Action::Send(Piece::Alive), Action::Wait(day)],
        say(answer("late")),
    ];
    let read = ask(&Timeouts::new(TestProvider::in_turn(vec![acts.concat()]), forever)).await;
    assert_eq!(read, Read::whole([vec![Piece::Alive], answer("late")].concat()));
}

#[tokio::test(start_paused = true)]
async fn a_stalled_answer_keeps_its_content() {
    let inner = scripted("[[reply]]\nsteps = [{ text = 'wait' }, { stall = true }]");
    let provider = Timeouts::new(inner, QUICK);
    let (message, failure) = message(&provider, request("a"), Cancel::never()).await;
    assert_eq!(failure, Some(StreamError::Provider(timeout(TimeoutPhase::Stall))));
    assert_eq!(
        message,
        AssistantMessage {
            content: vec![AssistantBlock::text("wait")],
            stop_reason: StopReason::Error,
            raw_stop_reason: String::new(),
            usage: Usage::default(),
            model: Some(ModelRef::parse("scripted/script").expect("a model")),
            timestamp: AT,
        }
    );
}
