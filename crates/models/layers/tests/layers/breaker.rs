use std::num::NonZeroU32;
use std::task::Poll;
use std::time::Duration;

use antiphon_core::{Piece, PieceSource, Provider, ProviderError, Request};
use antiphon_layers::{Breaker, BreakerConfig, BreakerState};
use tokio::time::advance;

use crate::fault::{invalid_request, lasting, server, transient};
use crate::piece::{answer, asides, outputs, text};
use crate::test_provider::{Action, TestProvider, say};
use crate::world::{Read, ask, poll, read, request};

const OPEN_FOR: Duration = Duration::from_secs(30);

/// How long others wait while a probe runs.
const PROBE_WAIT: Duration = Duration::from_secs(1);
const THREE: NonZeroU32 = NonZeroU32::new(3).unwrap();

fn watched(inner: &TestProvider) -> Breaker<TestProvider> {
    Breaker::new(inner.clone(), BreakerConfig { failures: THREE, open_for: OPEN_FOR })
}

fn resting(left: Duration) -> ProviderError {
    resting_after(&server(None), left)
}

fn resting_after(last: &ProviderError, left: Duration) -> ProviderError {
    let seconds = left.as_millis().div_ceil(1000);
    ProviderError::Overloaded {
        message: format!(
            "it failed too often (the last time: {last}) and is not asked for another {seconds} s"
        ),
        retry_after: Some(left),
    }
}

/// Fails this often, then plays `then`.
fn failing(times: usize, then: Vec<Action>) -> TestProvider {
    TestProvider::new(move |requested| {
        if requested < times { vec![Action::Fail(server(None))] } else { then.clone() }
    })
}

/// A breaker that has just opened.
async fn opened(then: Vec<Action>) -> (TestProvider, Breaker<TestProvider>) {
    let inner = failing(3, then);
    let breaker = watched(&inner);
    for _ in 0..3 {
        assert_eq!(ask(&breaker).await, Read::failed(server(None)));
    }
    assert_eq!(breaker.state(), BreakerState::Open);
    (inner, breaker)
}

/// Running requests.
fn in_flight(breaker: &Breaker<TestProvider>, count: usize) -> Vec<PieceSource> {
    let mut sources: Vec<_> = (0..count).map(|_| breaker.open(request("a"))).collect();
    for source in &mut sources {
        assert_eq!(poll(source), Poll::Pending);
    }
    sources
}

#[tokio::test(start_paused = true)]
async fn a_closed_breaker_opens_after_consecutive_failures() {
    for error in transient() {
        let inner = TestProvider::failing(error.clone());
        let breaker = watched(&inner);
        for count in 1..=3 {
            assert_eq!(breaker.state(), BreakerState::Closed);
            assert_eq!(ask(&breaker).await, Read::failed(error.clone()));
            assert_eq!(inner.count(), count);
        }
        assert_eq!(breaker.state(), BreakerState::Open);
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_resets_the_count_of_failures() {
    let inner = TestProvider::new(|requested| match requested % 3 {
        2 => say(answer("hi")),
        _ => vec![Action::Fail(server(None))],
    });
    let breaker = watched(&inner);
    for _ in 0..30 {
        ask(&breaker).await;
    }
    assert_eq!((breaker.state(), inner.count()), (BreakerState::Closed, 30));
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_fails_at_once_with_the_remaining_time() {
    let (inner, breaker) = opened(say(answer("hi"))).await;
    assert_eq!(ask(&breaker).await, Read::failed(resting(OPEN_FOR)));
    advance(Duration::from_millis(500)).await;
    let failure = ask(&breaker).await.failure.expect("it is open").to_string();
    assert!(failure.ends_with("is not asked for another 30 s"), "{failure}");
    advance(Duration::from_millis(28_500)).await;
    assert_eq!(ask(&breaker).await, Read::failed(resting(Duration::from_secs(1))));
    assert_eq!((breaker.state(), inner.count()), (BreakerState::Open, 3));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_a_person_wants_at_once_is_a_probe_of_an_open_breaker() {
    let urgent = || Request { is_urgent: true, ..request("a") };
    let (inner, breaker) = opened(say(answer("hi"))).await;
    assert_eq!(ask(&breaker).await, Read::failed(resting(OPEN_FOR)));
    assert_eq!(read(breaker.open(urgent())).await.failure, None);
    assert_eq!((breaker.state(), inner.count()), (BreakerState::Closed, 4));

    // One at a time, and one that fails opens it again.
    let (inner, breaker) = opened(vec![Action::Hang]).await;
    let mut probe = breaker.open(urgent());
    assert_eq!(poll(&mut probe), Poll::Pending);
    assert_eq!(read(breaker.open(urgent())).await, Read::failed(resting(PROBE_WAIT)));
    assert_eq!(inner.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_half_open_breaker_allows_one_probe() {
    let (inner, breaker) = opened(vec![Action::Hang]).await;
    advance(OPEN_FOR).await;
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    let _probe = in_flight(&breaker, 1);
    // The probe decides soon: the others do not wait for the full time.
    for _ in 0..10 {
        assert_eq!(ask(&breaker).await, Read::failed(resting(Duration::from_secs(1))));
    }
    assert_eq!((breaker.state(), inner.count()), (BreakerState::HalfOpen, 4));
}

#[tokio::test(start_paused = true)]
async fn a_successful_probe_closes_it() {
    for piece in outputs() {
        let (_, breaker) = opened(say(vec![piece])).await;
        advance(OPEN_FOR).await;
        let mut probe = breaker.open(request("probe"));
        assert!(poll(&mut probe).is_ready());
        assert_eq!(breaker.state(), BreakerState::Closed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_successful_probe_resets_the_count_of_failures() {
    let inner = TestProvider::new(|requested| match requested {
        3 => say(answer("hi")),
        _ => vec![Action::Fail(server(None))],
    });
    let breaker = watched(&inner);
    for _ in 0..3 {
        ask(&breaker).await;
    }
    advance(OPEN_FOR).await;
    assert_eq!(ask(&breaker).await, Read::whole(answer("hi")));
    for _ in 0..2 {
        ask(&breaker).await;
        assert_eq!(breaker.state(), BreakerState::Closed);
    }
    ask(&breaker).await;
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_failed_probe_opens_it_again_for_the_full_time() {
    for error in transient() {
        let (inner, breaker) = opened(vec![Action::Fail(error.clone())]).await;
        advance(OPEN_FOR).await;
        assert_eq!(ask(&breaker).await, Read::failed(error.clone()));
        assert_eq!(ask(&breaker).await, Read::failed(resting_after(&error, OPEN_FOR)));
        assert_eq!((breaker.state(), inner.count()), (BreakerState::Open, 4));
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_probe_makes_room_for_another() {
    let (inner, breaker) =
        opened([vec![Action::Send(Piece::Alive)], vec![Action::Hang]].concat()).await;
    advance(OPEN_FOR).await;
    for count in 4..10 {
        let mut probe = breaker.open(request("probe"));
        assert_eq!(poll(&mut probe), Poll::Ready(Some(Ok(Piece::Alive))));
        assert_eq!(ask(&breaker).await, Read::failed(resting(PROBE_WAIT)));
        drop(probe);
        assert_eq!((breaker.state(), inner.count()), (BreakerState::HalfOpen, count));
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_refuses_a_request_is_alive() {
    for error in lasting() {
        let inner = TestProvider::failing(error.clone());
        let breaker = watched(&inner);
        for _ in 0..10 {
            assert_eq!(ask(&breaker).await, Read::failed(error.clone()));
        }
        assert_eq!(breaker.state(), BreakerState::Closed);
        let (_, breaker) = opened(vec![Action::Fail(error)]).await;
        advance(OPEN_FOR).await;
        ask(&breaker).await;
        assert_eq!(breaker.state(), BreakerState::Closed);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_ends_before_its_first_piece_is_a_failure() {
    for piece in asides() {
        let breaker = watched(&TestProvider::sending(vec![piece.clone()]));
        for _ in 0..3 {
            assert_eq!(breaker.state(), BreakerState::Closed);
            assert_eq!(ask(&breaker).await, Read::whole(vec![piece.clone()]));
        }
        assert_eq!(breaker.state(), BreakerState::Open);
    }
}

#[tokio::test(start_paused = true)]
async fn a_started_answer_is_a_success_however_it_ends() {
    let acts = vec![Action::Send(text(0, "a")), Action::Fail(ProviderError::Cut)];
    let breaker = watched(&TestProvider::in_turn(vec![acts]));
    for _ in 0..10 {
        assert_eq!(ask(&breaker).await.failure, Some(ProviderError::Cut));
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn failures_of_earlier_requests_do_not_extend_the_open_time() {
    let late = vec![Action::Wait(OPEN_FOR / 2), Action::Fail(server(None))];
    let inner = TestProvider::new(move |requested| match requested {
        0..5 => late.clone(),
        5..8 => vec![Action::Fail(server(None))],
        _ => say(answer("hi")),
    });
    let breaker = watched(&inner);
    let sources = in_flight(&breaker, 5);
    for _ in 0..3 {
        ask(&breaker).await;
    }
    advance(OPEN_FOR / 2).await;
    for source in sources {
        assert_eq!(read(source).await, Read::failed(server(None)));
    }
    assert_eq!(ask(&breaker).await, Read::failed(resting(OPEN_FOR / 2)));
    advance(OPEN_FOR / 2).await;
    assert_eq!(ask(&breaker).await, Read::whole(answer("hi")));
}

#[tokio::test(start_paused = true)]
async fn only_the_probe_decides_when_it_is_half_open() {
    for fate in [vec![Action::Fail(server(None))], say(answer("late")), vec![Action::Hang]] {
        let late = [vec![Action::Wait(OPEN_FOR * 2)], fate].concat();
        let inner = TestProvider::new(move |requested| match requested {
            0 => late.clone(),
            1..4 => vec![Action::Fail(server(None))],
            _ => vec![Action::Hang],
        });
        let breaker = watched(&inner);
        let mut before = in_flight(&breaker, 1);
        for _ in 0..3 {
            ask(&breaker).await;
        }
        advance(OPEN_FOR * 2).await;
        let probe = in_flight(&breaker, 1);
        // It fails, starts, or is dropped.
        let _ = poll(&mut before[0]);
        drop(before);
        assert_eq!(
            ask(&breaker).await,
            Read::failed(resting(PROBE_WAIT)),
            "a second probe went through"
        );
        assert_eq!((breaker.state(), inner.count()), (BreakerState::HalfOpen, 5));
        drop(probe);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_opened_before_and_polled_after_the_breaker_opened_is_not_sent() {
    let inner = failing(3, say(answer("hi")));
    let breaker = watched(&inner);
    let unread = breaker.open(request("a"));
    let dropped = breaker.open(request("a"));
    for _ in 0..3 {
        ask(&breaker.clone()).await;
    }
    drop(dropped);
    assert_eq!(read(unread).await, Read::failed(resting(OPEN_FOR)));
    assert_eq!(inner.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_is_not_a_failure() {
    let inner = failing(2, vec![Action::Hang]);
    let breaker = watched(&inner);
    for _ in 0..2 {
        ask(&breaker).await;
    }
    drop(in_flight(&breaker, 10));
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn an_endless_open_time_is_accepted() {
    let config = BreakerConfig { failures: NonZeroU32::MIN, open_for: Duration::MAX };
    let breaker = Breaker::new(TestProvider::failing(server(None)), config);
    ask(&breaker).await;
    advance(Duration::from_hours(24 * 365)).await;
    assert_eq!(breaker.state(), BreakerState::Open);
    let healthy = Breaker::new(TestProvider::failing(invalid_request()), config);
    assert_eq!(ask(&healthy).await, Read::failed(invalid_request()));
}
