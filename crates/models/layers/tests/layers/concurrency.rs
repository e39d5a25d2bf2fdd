use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::task::Poll;

use antiphon_core::{Piece, Provider, ProviderError, Request};
use antiphon_layers::{Concurrency, Retry, RetryConfig};
use tokio::task::{JoinSet, yield_now};
use tokio::time::Instant;

use crate::fault::server;
use crate::piece::{answer, text};
use crate::test_provider::{Action, TestProvider, ms, say};
use crate::world::{Read, ask, poll, read, request};

fn limited(inner: &TestProvider, limit: usize) -> Concurrency<TestProvider> {
    Concurrency::new(inner.clone(), NonZeroUsize::new(limit).expect("a limit"))
}

fn hanging() -> TestProvider {
    TestProvider::in_turn(vec![vec![Action::Send(Piece::Alive), Action::Hang]])
}

/// The numbers of the allowed requests, in order.
fn order(inner: &TestProvider) -> Vec<String> {
    inner.requests().into_iter().map(|request| request.system_prompt).collect()
}

fn numbered(number: usize) -> Request {
    Request { system_prompt: number.to_string(), ..request("a") }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_answers_never_exceed_the_limit_and_run_in_order() {
    let acts = [vec![Action::Wait(ms(10)), Action::Send(Piece::Alive)], say(answer("hi"))].concat();
    let inner = TestProvider::in_turn(vec![acts]);
    let provider = limited(&inner, 7);
    let mut answers = JoinSet::new();
    let start = Instant::now();
    for number in 0..100 {
        answers.spawn(read(provider.open(numbered(number))));
    }
    let whole = Read::whole([vec![Piece::Alive], answer("hi")].concat());
    for read in answers.join_all().await {
        assert_eq!(read, whole);
    }
    assert_eq!((inner.count(), inner.most_running(), inner.running()), (100, 7, 0));
    // Fifteen rounds of seven: no slot was ever unused.
    assert_eq!(start.elapsed(), ms(150));
    let numbers: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    assert_eq!(order(&inner), numbers);
}

#[tokio::test(start_paused = true)]
async fn requests_above_the_limit_wait_in_order() {
    let inner = hanging();
    let provider = limited(&inner, 1);
    let mut sources: BTreeMap<_, _> =
        (0..4).map(|number| (number, provider.open(numbered(number)))).collect();
    // The order is that of the first poll, not of opening.
    for number in [2, 0, 3, 1] {
        let polled = poll(sources.get_mut(&number).expect("it is there"));
        assert_eq!(polled.is_ready(), number == 2);
    }
    for (gone, next) in [(2, 0), (0, 3), (3, 1)] {
        sources.remove(&gone);
        for (number, source) in &mut sources {
            assert_eq!(poll(source).is_ready(), *number == next, "{number} after {gone}");
        }
    }
    assert_eq!(order(&inner), ["2", "0", "3", "1"]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_answer_frees_its_slot() {
    let inner = hanging();
    let provider = limited(&inner, 1);
    let mut sources: Vec<_> = (0..3).map(|number| provider.open(numbered(number))).collect();
    for source in &mut sources {
        let _ = poll(source);
    }
    let mut last = sources.pop().expect("three");
    let waiting = sources.pop().expect("two");
    let running = sources.pop().expect("one");
    // Dropped while waiting, and dropped after its turn came but before it was polled.
    drop(running);
    assert_eq!(poll(&mut last), Poll::Pending);
    drop(waiting);
    assert_eq!(poll(&mut last), Poll::Ready(Some(Ok(Piece::Alive))));
    assert_eq!(order(&inner), ["0", "2"]);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_dropped_waiters_lose_no_slot() {
    let inner = hanging();
    let provider = limited(&inner, 3);
    for _ in 0..100 {
        let mut sources: Vec<_> = (0..9).map(|number| provider.open(numbered(number))).collect();
        for source in &mut sources {
            let _ = poll(source);
        }
        assert_eq!(inner.running(), 3);
        // The runtime forces a task that polls this much to yield.
        yield_now().await;
    }
    assert_eq!((inner.running(), inner.most_running()), (0, 3));
}

#[tokio::test(start_paused = true)]
async fn an_ended_answer_frees_its_slot_even_if_it_is_not_dropped() {
    let inner = TestProvider::in_turn(vec![say(answer("hi"))]);
    let provider = limited(&inner, 1);
    let mut kept = provider.open(request("a"));
    while let Poll::Ready(Some(_)) = poll(&mut kept) {}
    assert_eq!(ask(&provider).await, Read::whole(answer("hi")));
    assert_eq!(poll(&mut kept), Poll::Ready(None));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_polled_takes_no_slot() {
    let inner = TestProvider::sending(answer("hi"));
    let provider = limited(&inner, 1);
    let unread = provider.open(request("a"));
    assert_eq!(ask(&provider).await, Read::whole(answer("hi")));
    drop(unread);
    assert_eq!(inner.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn failures_are_returned_and_free_their_slot() {
    let inner = TestProvider::in_turn(vec![
        vec![Action::Fail(server(None))],
        say(vec![text(0, "cu")]),
        say(answer("hi")),
    ]);
    let provider = limited(&inner, 1);
    assert_eq!(ask(&provider).await, Read::failed(server(None)));
    assert_eq!(ask(&provider).await, Read::whole(vec![text(0, "cu")]));
    assert_eq!(ask(&provider).await, Read::whole(answer("hi")));
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_held_during_the_pauses_of_a_retry() {
    let inner = TestProvider::failing(ProviderError::Cut);
    let config = RetryConfig { retries_max: 1, ..RetryConfig::default() };
    let retry = Retry::new(inner.clone(), config);
    let provider = Concurrency::new(retry, NonZeroUsize::MIN);
    let (first, second) = (provider.open(numbered(0)), provider.open(numbered(1)));
    let mut answers = JoinSet::from_iter([read(first), read(second)]);
    while answers.join_next().await.is_some() {}
    assert_eq!(order(&inner), ["0", "0", "1", "1"]);
}

#[tokio::test(start_paused = true)]
async fn the_largest_limit_is_accepted() {
    let inner = TestProvider::sending(answer("hi"));
    let provider = Concurrency::new(inner, NonZeroUsize::MAX);
    assert_eq!(ask(&provider).await, Read::whole(answer("hi")));
}
