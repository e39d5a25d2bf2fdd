use std::num::NonZeroU32;
use std::task::Poll;
use std::time::Duration;

use antiphon_core::{Piece, PieceSource, Provider, ProviderError};
use antiphon_layers::{Breaker, BreakerConfig, BreakerState};
use tokio::time::advance;

use crate::fault::{invalid_request, lasting, server, transient};
use crate::piece::{answer, asides, outputs, text};
use crate::played::{Act, Played, say};
use crate::world::{Read, ask, poll, read, request};

const REST: Duration = Duration::from_secs(30);
const THREE: NonZeroU32 = NonZeroU32::new(3).unwrap();

fn watched(inner: &Played) -> Breaker<Played> {
    Breaker::new(inner.clone(), BreakerConfig { failures: THREE, rest: REST })
}

fn resting(left: Duration) -> ProviderError {
    let seconds = left.as_secs();
    ProviderError::Overloaded {
        message: format!("it failed too often and is not asked for another {seconds} s"),
        retry_after: Some(left),
    }
}

/// Fails this often, then does what it is told.
fn failing(times: usize, then: Vec<Act>) -> Played {
    Played::new(
        move |asked| {
            if asked < times { vec![Act::Fail(server(None))] } else { then.clone() }
        },
    )
}

/// A breaker that has just opened.
async fn opened(then: Vec<Act>) -> (Played, Breaker<Played>) {
    let inner = failing(3, then);
    let breaker = watched(&inner);
    for _ in 0..3 {
        assert_eq!(ask(&breaker).await, Read::failed(server(None)));
    }
    assert_eq!(breaker.state(), BreakerState::Open);
    (inner, breaker)
}

/// Answers that are being waited for.
fn in_flight(breaker: &Breaker<Played>, count: usize) -> Vec<PieceSource> {
    let mut sources: Vec<_> = (0..count).map(|_| breaker.open(request("a"))).collect();
    for source in &mut sources {
        assert_eq!(poll(source), Poll::Pending);
    }
    sources
}

#[tokio::test(start_paused = true)]
async fn closed_it_lets_requests_through_until_so_many_fail_in_a_row() {
    for error in transient() {
        let inner = Played::failing(error.clone());
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
async fn a_success_in_between_begins_the_row_again() {
    let inner = Played::new(|asked| match asked % 3 {
        2 => say(answer("hi")),
        _ => vec![Act::Fail(server(None))],
    });
    let breaker = watched(&inner);
    for _ in 0..30 {
        ask(&breaker).await;
    }
    assert_eq!((breaker.state(), inner.count()), (BreakerState::Closed, 30));
}

#[tokio::test(start_paused = true)]
async fn open_it_fails_at_once_and_says_for_how_long() {
    let (inner, breaker) = opened(say(answer("hi"))).await;
    assert_eq!(ask(&breaker).await, Read::failed(resting(REST)));
    advance(Duration::from_secs(29)).await;
    assert_eq!(ask(&breaker).await, Read::failed(resting(Duration::from_secs(1))));
    assert_eq!((breaker.state(), inner.count()), (BreakerState::Open, 3));
}

#[tokio::test(start_paused = true)]
async fn after_the_rest_one_goes_through_and_the_others_fail() {
    let (inner, breaker) = opened(vec![Act::Hang]).await;
    advance(REST).await;
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    let _probe = in_flight(&breaker, 1);
    for _ in 0..10 {
        assert_eq!(ask(&breaker).await, Read::failed(resting(REST)));
    }
    assert_eq!((breaker.state(), inner.count()), (BreakerState::HalfOpen, 4));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_answered_closes_it() {
    for piece in outputs() {
        let (_, breaker) = opened(say(vec![piece])).await;
        advance(REST).await;
        let mut probe = breaker.open(request("probe"));
        assert!(poll(&mut probe).is_ready());
        assert_eq!(breaker.state(), BreakerState::Closed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_closed_it_has_wiped_the_slate_clean() {
    let inner = Played::new(|asked| match asked {
        3 => say(answer("hi")),
        _ => vec![Act::Fail(server(None))],
    });
    let breaker = watched(&inner);
    for _ in 0..3 {
        ask(&breaker).await;
    }
    advance(REST).await;
    assert_eq!(ask(&breaker).await, Read::whole(answer("hi")));
    for _ in 0..2 {
        ask(&breaker).await;
        assert_eq!(breaker.state(), BreakerState::Closed);
    }
    ask(&breaker).await;
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_opens_it_again_for_the_whole_rest() {
    for error in transient() {
        let (inner, breaker) = opened(vec![Act::Fail(error.clone())]).await;
        advance(REST).await;
        assert_eq!(ask(&breaker).await, Read::failed(error));
        assert_eq!(ask(&breaker).await, Read::failed(resting(REST)));
        assert_eq!((breaker.state(), inner.count()), (BreakerState::Open, 4));
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_makes_room_for_another() {
    let (inner, breaker) = opened([vec![Act::Say(Piece::Alive)], vec![Act::Hang]].concat()).await;
    advance(REST).await;
    for count in 4..10 {
        let mut probe = breaker.open(request("probe"));
        assert_eq!(poll(&mut probe), Poll::Ready(Some(Ok(Piece::Alive))));
        assert_eq!(ask(&breaker).await, Read::failed(resting(REST)));
        drop(probe);
        assert_eq!((breaker.state(), inner.count()), (BreakerState::HalfOpen, count));
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_refuses_a_request_is_alive() {
    for error in lasting() {
        let inner = Played::failing(error.clone());
        let breaker = watched(&inner);
        for _ in 0..10 {
            assert_eq!(ask(&breaker).await, Read::failed(error.clone()));
        }
        assert_eq!(breaker.state(), BreakerState::Closed);
        let (_, breaker) = opened(vec![Act::Fail(error)]).await;
        advance(REST).await;
        ask(&breaker).await;
        assert_eq!(breaker.state(), BreakerState::Closed);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_ends_before_it_has_begun_is_a_failure() {
    for piece in asides() {
        let breaker = watched(&Played::saying(vec![piece.clone()]));
        for _ in 0..3 {
            assert_eq!(breaker.state(), BreakerState::Closed);
            assert_eq!(ask(&breaker).await, Read::whole(vec![piece.clone()]));
        }
        assert_eq!(breaker.state(), BreakerState::Open);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_has_begun_is_a_success_however_it_ends() {
    let acts = vec![Act::Say(text(0, "a")), Act::Fail(ProviderError::Cut)];
    let breaker = watched(&Played::in_turn(vec![acts]));
    for _ in 0..10 {
        assert_eq!(ask(&breaker).await.failure, Some(ProviderError::Cut));
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn failures_of_what_was_asked_before_do_not_prolong_the_rest() {
    let late = vec![Act::Wait(REST / 2), Act::Fail(server(None))];
    let inner = Played::new(move |asked| match asked {
        0..5 => late.clone(),
        5..8 => vec![Act::Fail(server(None))],
        _ => say(answer("hi")),
    });
    let breaker = watched(&inner);
    let sources = in_flight(&breaker, 5);
    for _ in 0..3 {
        ask(&breaker).await;
    }
    advance(REST / 2).await;
    for source in sources {
        assert_eq!(read(source).await, Read::failed(server(None)));
    }
    assert_eq!(ask(&breaker).await, Read::failed(resting(REST / 2)));
    advance(REST / 2).await;
    assert_eq!(ask(&breaker).await, Read::whole(answer("hi")));
}

#[tokio::test(start_paused = true)]
async fn only_the_probe_decides_when_it_is_half_open() {
    for fate in [vec![Act::Fail(server(None))], say(answer("late")), vec![Act::Hang]] {
        let late = [vec![Act::Wait(REST * 2)], fate].concat();
        let inner = Played::new(move |asked| match asked {
            0 => late.clone(),
            1..4 => vec![Act::Fail(server(None))],
            _ => vec![Act::Hang],
        });
        let breaker = watched(&inner);
        let mut before = in_flight(&breaker, 1);
        for _ in 0..3 {
            ask(&breaker).await;
        }
        advance(REST * 2).await;
        let probe = in_flight(&breaker, 1);
        // It fails, begins, or is dropped without a word.
        let _ = poll(&mut before[0]);
        drop(before);
        assert_eq!(ask(&breaker).await, Read::failed(resting(REST)), "a second probe went through");
        assert_eq!((breaker.state(), inner.count()), (BreakerState::HalfOpen, 5));
        drop(probe);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_opened_before_and_read_after_it_opened_is_not_sent() {
    let inner = failing(3, say(answer("hi")));
    let breaker = watched(&inner);
    let unread = breaker.open(request("a"));
    let dropped = breaker.open(request("a"));
    for _ in 0..3 {
        ask(&breaker.clone()).await;
    }
    drop(dropped);
    assert_eq!(read(unread).await, Read::failed(resting(REST)));
    assert_eq!(inner.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_is_no_failure() {
    let inner = failing(2, vec![Act::Hang]);
    let breaker = watched(&inner);
    for _ in 0..2 {
        ask(&breaker).await;
    }
    drop(in_flight(&breaker, 10));
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_rest_without_end_is_taken() {
    let config = BreakerConfig { failures: NonZeroU32::MIN, rest: Duration::MAX };
    let breaker = Breaker::new(Played::failing(server(None)), config);
    ask(&breaker).await;
    advance(Duration::from_hours(24 * 365)).await;
    assert_eq!(breaker.state(), BreakerState::Open);
    let healthy = Breaker::new(Played::failing(invalid_request()), config);
    assert_eq!(ask(&healthy).await, Read::failed(invalid_request()));
}
