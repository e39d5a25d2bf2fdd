use std::collections::HashSet;
use std::task::Poll;
use std::time::Duration;

use antiphon_core::{
    AssistantMessage, Cancel, Piece, Provider, ProviderError, StopReason, StreamError, Usage,
};
use antiphon_layers::{Retry, RetryConfig};
use antiphon_scripted::{Script, ScriptedProvider};
use futures_util::StreamExt;
use tokio::time::{Instant, sleep};

use crate::fault::{lasting, overloaded, rate_limited, server, transient};
use crate::piece::{answer, asides, outputs, text};
use crate::test_provider::{Action, TestProvider, ms, say};
use crate::world::{AT, Read, ask, message, poll, read, request};

const CONFIG: RetryConfig = RetryConfig {
    retries_max: 4,
    pause_min: Duration::from_millis(500),
    pause_max: Duration::from_secs(3),
    asked_pause_max: Duration::from_secs(60),
};

fn retrying(inner: &TestProvider) -> Retry<TestProvider> {
    Retry::new(inner.clone(), CONFIG)
}

/// Fails with this error, then answers.
fn failing_once(error: ProviderError) -> TestProvider {
    TestProvider::in_turn(vec![vec![Action::Fail(error)], say(answer("hi"))])
}

#[tokio::test(start_paused = true)]
async fn a_temporary_error_is_retried_with_the_same_request() {
    for error in transient() {
        let inner = failing_once(error.clone());
        assert_eq!(ask(&retrying(&inner)).await, Read::whole(answer("hi")), "{error}");
        assert_eq!(inner.requests(), [request("ask"), request("ask")], "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_permanent_error_is_returned_at_once() {
    for error in lasting() {
        let inner = failing_once(error.clone());
        let start = Instant::now();
        assert_eq!(ask(&retrying(&inner)).await, Read::failed(error));
        assert_eq!((inner.count(), start.elapsed()), (1, Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_shown_piece_there_is_no_retry() {
    for piece in outputs() {
        let acts = vec![Action::Send(piece.clone()), Action::Fail(server(None))];
        let inner = TestProvider::in_turn(vec![acts, say(answer("again"))]);
        let failure = Some(server(None));
        assert_eq!(ask(&retrying(&inner)).await, Read { pieces: vec![piece], failure });
        assert_eq!(inner.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn before_a_shown_piece_the_answer_is_restarted() {
    for piece in asides() {
        let acts = vec![Action::Send(piece.clone()), Action::Fail(server(None))];
        let inner = TestProvider::in_turn(vec![acts, say(answer("again"))]);
        let pieces = [vec![piece], answer("again")].concat();
        assert_eq!(ask(&retrying(&inner)).await, Read::whole(pieces));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_ends_incomplete_is_interrupted() {
    let unshown = TestProvider::in_turn(vec![vec![Action::Send(Piece::Alive)], say(answer("hi"))]);
    let pieces = [vec![Piece::Alive], answer("hi")].concat();
    assert_eq!(ask(&retrying(&unshown)).await, Read::whole(pieces));
    let shown = TestProvider::in_turn(vec![vec![Action::Send(text(0, "h"))], say(answer("hi"))]);
    let failure = Some(ProviderError::Cut);
    assert_eq!(ask(&retrying(&shown)).await, Read { pieces: vec![text(0, "h")], failure });
    let never = TestProvider::sending(Vec::new());
    assert_eq!(ask(&retrying(&never)).await, Read::failed(ProviderError::Cut));
}

#[tokio::test(start_paused = true)]
async fn a_requested_pause_is_kept_to_the_millisecond() {
    let after = Some(ms(1234));
    for error in [rate_limited(after), overloaded(after), server(after)] {
        let inner = failing_once(error);
        ask(&retrying(&inner)).await;
        assert_eq!(inner.pauses(), [ms(1234)]);
    }
    let at_once = failing_once(rate_limited(Some(Duration::ZERO)));
    ask(&retrying(&at_once)).await;
    assert!(at_once.pauses()[0] > Duration::ZERO);
    let longest = failing_once(rate_limited(Some(CONFIG.asked_pause_max)));
    ask(&retrying(&longest)).await;
    assert_eq!(longest.pauses(), [CONFIG.asked_pause_max]);
}

#[tokio::test(start_paused = true)]
async fn a_requested_pause_that_is_too_long_is_returned_as_an_error() {
    for after in [CONFIG.asked_pause_max + ms(1), Duration::MAX] {
        let inner = failing_once(rate_limited(Some(after)));
        let start = Instant::now();
        assert_eq!(ask(&retrying(&inner)).await, Read::failed(rate_limited(Some(after))));
        assert_eq!((inner.count(), start.elapsed()), (1, Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn pauses_double_within_their_limits_with_jitter() {
    let mut drawn: [HashSet<Duration>; 4] = Default::default();
    for _ in 0..100 {
        let inner = TestProvider::failing(server(None));
        ask(&retrying(&inner)).await;
        let pauses = inner.pauses();
        // Timers are accurate to a millisecond. The third would double to 4 s, which is too long.
        let limits = [(500, 1000), (1000, 2000), (1500, 3000), (1500, 3000)];
        assert_eq!(pauses.len(), limits.len());
        for ((pause, (min, max)), drawn) in pauses.into_iter().zip(limits).zip(&mut drawn) {
            assert!((ms(min)..=ms(max + 1)).contains(&pause), "{pause:?} in {min}..={max}");
            drawn.insert(pause);
        }
    }
    for drawn in drawn {
        assert!(drawn.len() > 50, "only {} different pauses", drawn.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_shortest_pause_above_the_longest_is_capped() {
    let config = RetryConfig { pause_min: ms(5000), ..CONFIG };
    let inner = TestProvider::failing(server(None));
    ask(&Retry::new(inner.clone(), config)).await;
    assert_eq!(inner.pauses(), [CONFIG.pause_max; 4]);
}

#[tokio::test(start_paused = true)]
async fn after_the_last_attempt_the_last_failure_is_returned() {
    for retries_max in [0, 1, 7] {
        let inner = TestProvider::new(|requested| {
            let status = 500 + u16::try_from(requested).expect("few requests");
            let (message, retry_after) = (String::new(), None);
            vec![Action::Fail(ProviderError::Server { status, message, retry_after })]
        });
        let read = ask(&Retry::new(inner.clone(), RetryConfig { retries_max, ..CONFIG })).await;
        let status = 500 + u16::try_from(retries_max).expect("few requests");
        let (message, retry_after) = (String::new(), None);
        let last = ProviderError::Server { status, message, retry_after };
        assert_eq!((read, inner.count()), (Read::failed(last), retries_max + 1));
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_with_requested_pauses_count_like_all_others() {
    let inner = TestProvider::failing(rate_limited(Some(ms(10))));
    assert_eq!(ask(&retrying(&inner)).await, Read::failed(rate_limited(Some(ms(10)))));
    assert_eq!(inner.pauses(), [ms(10); 4]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_answer_is_dropped_before_the_pause() {
    let inner = failing_once(rate_limited(Some(ms(1000))));
    let mut source = retrying(&inner).open(request("a"));
    assert_eq!(poll(&mut source), Poll::Pending);
    assert_eq!((inner.count(), inner.running()), (1, 0));
    sleep(ms(999)).await;
    assert_eq!(poll(&mut source), Poll::Pending);
    assert_eq!(inner.count(), 1);
    assert_eq!(read(source).await, Read::whole(answer("hi")));
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_ends_a_pause() {
    let inner = failing_once(rate_limited(Some(ms(50_000))));
    let start = Instant::now();
    let cancel = Cancel::when(sleep(ms(100)));
    let (message, failure) = message(&retrying(&inner), request("a"), cancel).await;
    assert_eq!(failure, Some(StreamError::Canceled));
    assert_eq!((start.elapsed(), inner.count(), inner.running()), (ms(100), 1, 0));
    let nothing = AssistantMessage {
        content: Vec::new(),
        stop_reason: StopReason::Aborted,
        raw_stop_reason: String::new(),
        usage: Usage::default(),
        model: None,
        timestamp: AT,
    };
    assert_eq!(message, nothing);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_before_the_answer_is_polled() {
    let inner = failing_once(server(None));
    let mut source = retrying(&inner).open(request("a"));
    sleep(ms(60_000)).await;
    assert_eq!(inner.count(), 0);
    assert!(source.next().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_flaky_model_succeeds_in_the_end() {
    let flaky = ScriptedProvider::new(Script::builtin("flaky").expect("a script"));
    let provider = Retry::new(flaky, RetryConfig::default());
    let (message, failure) = message(&provider, request("a"), Cancel::never()).await;
    assert_eq!((failure, message.stop_reason), (None, StopReason::EndTurn));
}
