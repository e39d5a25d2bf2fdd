//! The limiter uses the real clock, so these tests take a fraction of a second.

use std::num::NonZeroU32;
use std::task::Poll;
use std::time::Duration;

use antiphon_core::{Provider, ProviderError};
use antiphon_layers::RateLimit;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::piece::answer;
use crate::test_provider::{TestProvider, ms};
use crate::world::{Read, ask, poll, read, request};

fn limited(inner: &TestProvider, per_minute: u32) -> RateLimit<TestProvider> {
    RateLimit::per_minute(inner.clone(), NonZeroU32::new(per_minute).expect("a limit"))
}

#[tokio::test]
async fn a_minutes_requests_are_sent_at_once_and_the_next_one_waits() {
    let inner = TestProvider::sending(answer("hi"));
    let provider = limited(&inner, 5);
    for _ in 0..5 {
        assert_eq!(ask(&provider).await, Read::whole(answer("hi")));
    }
    let waiting = timeout(ms(50), ask(&provider)).await;
    assert!(waiting.is_err(), "twelve seconds are not over");
    assert_eq!(inner.count(), 5);
}

#[tokio::test]
async fn requests_above_the_limit_are_spread_evenly() {
    // One each 10 ms, after the first 6000.
    let inner = TestProvider::sending(answer("hi"));
    let provider = limited(&inner, 6000);
    let start = Instant::now();
    let mut answers = JoinSet::new();
    for _ in 0..6020 {
        answers.spawn(read(provider.open(request("a"))));
    }
    let reads = answers.join_all().await;
    assert!(reads.iter().all(|read| read.failure.is_none()));
    let elapsed = start.elapsed();
    assert!(elapsed >= Duration::from_millis(199), "{elapsed:?}");
    assert_eq!(inner.count(), 6020);
}

#[tokio::test]
async fn a_request_that_stops_waiting_uses_no_turn() {
    let inner = TestProvider::sending(answer("hi"));
    let provider = limited(&inner, 600);
    for _ in 0..600 {
        ask(&provider).await;
    }
    // One turn each 100 ms. Fifty that give up must not delay the next one.
    for _ in 0..50 {
        assert_eq!(poll(&mut provider.open(request("a"))), Poll::Pending);
    }
    let next = timeout(ms(450), ask(&provider)).await;
    assert_eq!(next.expect("it came"), Read::whole(answer("hi")));
    assert_eq!(inner.count(), 601);
}

#[tokio::test]
async fn unpolled_answers_use_no_turn_and_failures_use_theirs() {
    let inner = TestProvider::failing(ProviderError::Cut);
    let provider = limited(&inner, 1);
    drop(provider.open(request("a")));
    assert_eq!(ask(&provider).await, Read::failed(ProviderError::Cut));
    assert_eq!(poll(&mut provider.open(request("a"))), Poll::Pending);
    assert_eq!(inner.count(), 1);
}
