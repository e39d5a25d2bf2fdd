//! Rate limits.

use std::time::Duration;

use antiphon_keys::{
    BUCKETS_MAX, KeyId, Limiter, Peer, RATE_PER_MINUTE_MAX, RateDecision, RateLimit, WrongKeys,
};
use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use serde_json::json;

use crate::world::{START, time};

fn id(nth: usize) -> KeyId {
    format!("{nth:08}").parse().unwrap()
}

fn rate(requests: u32) -> RateLimit {
    RateLimit::per_minute(requests).unwrap()
}

fn after(now: DateTime<Utc>, wait: Duration) -> DateTime<Utc> {
    now + TimeDelta::from_std(wait).unwrap()
}

#[test]
fn a_full_bucket_allows_a_minutes_requests_at_once_and_then_one_by_one() {
    let limiter = Limiter::new(rate(3));
    let now = time(START);
    let check = |now| limiter.check(id(1), None, now);
    let verdict = |remaining, reset_at, retry_after| RateDecision {
        limit: 3,
        remaining,
        reset_at: time(reset_at),
        retry_after,
    };
    assert_eq!(check(now), verdict(2, "2025-01-20T10:00:20Z", None));
    assert_eq!(check(now), verdict(1, "2025-01-20T10:00:40Z", None));
    assert_eq!(check(now), verdict(0, "2025-01-20T10:01:00Z", None));
    let wait = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(check(now), verdict(0, "2025-01-20T10:01:00Z", wait(20)));
    let later = time("2025-01-20T10:00:15Z");
    assert_eq!(check(later), verdict(0, "2025-01-20T10:01:00Z", wait(5)));
    assert_eq!(check(time("2025-01-20T10:00:20Z")), verdict(0, "2025-01-20T10:01:20Z", None));
    assert_eq!(check(time("2025-01-20T11:00:00Z")), verdict(2, "2025-01-20T11:00:20Z", None));
}

#[test]
fn each_key_has_its_own_bucket_and_limit() {
    let limiter = Limiter::new(rate(1));
    let now = time(START);
    assert!(limiter.check(id(1), None, now).is_allowed());
    assert!(!limiter.check(id(1), None, now).is_allowed());
    assert!(limiter.check(id(2), None, now).is_allowed());
    let allowed = (0..10).filter(|_| limiter.check(id(3), Some(rate(5)), now).is_allowed());
    assert_eq!(allowed.count(), 5);
}

#[test]
fn a_changed_limit_applies_to_the_next_request() {
    let limiter = Limiter::new(rate(100));
    let now = time(START);
    assert_eq!(limiter.check(id(1), Some(rate(100)), now).remaining, 99);
    let verdict = limiter.check(id(1), Some(rate(2)), now);
    assert_eq!((verdict.limit, verdict.remaining), (2, 1));
    let verdict = limiter.check(id(1), Some(rate(60)), now);
    assert_eq!((verdict.limit, verdict.remaining), (60, 0), "nothing is given for it");
    assert_eq!(limiter.check(id(1), Some(rate(60)), now).retry_after, Some(Duration::from_secs(1)));
}

#[test]
fn a_clock_that_goes_back_neither_blocks_nor_fills_the_bucket() {
    let limiter = Limiter::new(rate(60));
    let now = time(START);
    let spend = |now| (0..100).filter(|_| limiter.check(id(1), None, now).is_allowed()).count();
    assert_eq!(spend(now), 60);
    let back = time("2020-01-01T00:00:00Z");
    assert_eq!(spend(back), 0);
    assert_eq!(spend(after(back, Duration::from_secs(7))), 7);
    assert_eq!(spend(DateTime::<Utc>::MIN_UTC), 0);
    let verdict = limiter.check(id(1), None, DateTime::<Utc>::MAX_UTC);
    assert_eq!((verdict.remaining, verdict.reset_at), (59, DateTime::<Utc>::MAX_UTC));
}

#[test]
fn headers_and_details_state_the_limit() {
    let limiter = Limiter::new(rate(7));
    let now = time("2025-01-20T10:00:00.25Z");
    let verdict = limiter.check(id(1), None, now);
    let headers = |verdict: &RateDecision| {
        let headers = verdict.headers().into_iter();
        headers.map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>()
    };
    assert_eq!(
        headers(&verdict),
        ["x-ratelimit-limit: 7", "x-ratelimit-remaining: 6", "x-ratelimit-reset: 1737367209"]
    );
    for _ in 0..6 {
        limiter.check(id(1), None, now);
    }
    let verdict = limiter.check(id(1), None, now);
    assert_eq!(
        headers(&verdict),
        [
            "x-ratelimit-limit: 7",
            "x-ratelimit-remaining: 0",
            "x-ratelimit-reset: 1737367261",
            "retry-after: 9",
        ]
    );
    assert_eq!(
        verdict.details(),
        json!({
            "limit": 7,
            "remaining": 0,
            "reset_at": "2025-01-20T10:01:00.250Z",
            "retry_after_s": 9,
        })
    );
}

#[test]
fn the_number_of_buckets_is_bounded_and_the_longest_unused_is_forgotten_first() {
    let limiter = Limiter::new(rate(1));
    let start = time(START);
    for nth in 0..BUCKETS_MAX {
        let now = after(start, Duration::from_millis(nth as u64));
        assert!(limiter.check(id(nth), None, now).is_allowed());
    }
    let now = after(start, Duration::from_secs(20));
    assert!(limiter.check(id(BUCKETS_MAX), None, now).is_allowed());
    assert_eq!(limiter.bucket_count(), BUCKETS_MAX);
    assert!(!limiter.check(id(1), None, now).is_allowed(), "it is remembered");
    assert!(!limiter.check(id(BUCKETS_MAX - 1), None, now).is_allowed());
    assert!(limiter.check(id(0), None, now).is_allowed(), "it was forgotten");
    // All buckets are full by now but this one and the last two.
    let later = after(start, Duration::from_secs(79));
    limiter.check(id(BUCKETS_MAX + 1), None, later);
    assert_eq!(limiter.bucket_count(), 3);
}

#[test]
fn the_highest_limit_is_counted_exactly() {
    let limiter = Limiter::new(rate(RATE_PER_MINUTE_MAX));
    let now = time(START);
    let spend = |now| {
        let verdicts = std::iter::repeat_with(|| limiter.check(id(1), None, now));
        verdicts.take_while(RateDecision::is_allowed).count()
    };
    assert_eq!(spend(now), RATE_PER_MINUTE_MAX as usize);
    assert_eq!(spend(after(now, Duration::from_micros(60 * 5))), 5);
    assert_eq!(spend(after(now, Duration::from_micros(60 * 6) - Duration::from_nanos(1))), 0);
}

#[test]
fn a_limit_has_documented_bounds() {
    for wrong in [0, RATE_PER_MINUTE_MAX + 1] {
        let error = RateLimit::per_minute(wrong).unwrap_err();
        let expected = format!("a rate limit is from 1 to 1000000 requests a minute, not {wrong}");
        assert_eq!(error.to_string(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn waiting_retry_after_is_sufficient_and_necessary(
        limit in prop_oneof![4 => 1..100_u32, 1 => 1..5_000_u32],
        pauses in proptest::collection::vec(0..90_000_000_000_u64, 0..20),
    ) {
        let limiter = Limiter::new(rate(limit));
        let mut now = time(START);
        for pause in pauses {
            now = after(now, Duration::from_nanos(pause));
            limiter.check(id(1), None, now);
        }
        let refused = (0..=limit).map(|_| limiter.check(id(1), None, now)).find(|it| !it.is_allowed());
        let refused = refused.unwrap();
        let wait = refused.retry_after.unwrap();
        let early = after(now, wait.checked_sub(Duration::from_nanos(1)).unwrap());
        prop_assert!(!limiter.check(id(1), None, early).is_allowed());
        prop_assert!(limiter.check(id(1), None, after(now, wait)).is_allowed());
        let whole = limiter.check(id(1), None, after(now, wait)).reset_at;
        prop_assert_eq!(limiter.check(id(1), None, whole).remaining, limit - 1);
    }

    #[test]
    fn no_interval_has_more_requests_than_the_limit_allows(
        limit in 1..50_u32,
        pauses in proptest::collection::vec(0..5_000_000_000_u64, 1..300),
    ) {
        let limiter = Limiter::new(rate(limit));
        let mut now = time(START);
        let mut allowed = Vec::new();
        for pause in pauses {
            now = after(now, Duration::from_nanos(pause));
            let verdict = limiter.check(id(1), None, now);
            prop_assert!(verdict.remaining < limit);
            if verdict.is_allowed() {
                allowed.push(now);
            }
        }
        for (nth, from) in allowed.iter().enumerate() {
            for (more, to) in allowed[nth..].iter().enumerate() {
                let ns = u64::try_from((*to - *from).num_nanoseconds().unwrap()).unwrap();
                let filled = u128::from(ns) * u128::from(limit) / 60_000_000_000;
                prop_assert!((more as u128) < u128::from(limit) + filled);
            }
        }
    }
}

fn address(text: &str) -> Peer {
    Peer::of(text.parse().unwrap())
}

#[test]
fn wrong_keys_are_counted_by_peer_and_a_peer_over_its_limit_leaves_the_total_to_the_others() {
    let wrong = WrongKeys::new(rate(3), rate(5));
    let now = time(START);
    let (one, two, three) = (address("10.0.0.1"), address("10.0.0.2"), address("10.0.0.3"));
    let allowed =
        |peer, times: usize| (0..times).filter(|_| wrong.count(peer, now).is_allowed()).count();
    assert_eq!(allowed(one, 1000), 3, "its own limit");
    assert_eq!(allowed(two, 1000), 2, "what is left of the total");
    assert_eq!(allowed(three, 1000), 0);
    assert_eq!(wrong.peer_count(), 2, "a peer over the total is not stored");
    let later = now + TimeDelta::minutes(1);
    assert!(wrong.count(three, later).is_allowed());
}

#[test]
fn an_ipv6_network_and_a_mapped_address_are_one_peer() {
    assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:ffff:ffff:ffff"));
    assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
    assert_eq!(address("::ffff:10.0.0.1"), address("10.0.0.1"));
    assert_ne!(address("10.0.0.1"), Peer::Socket);
}
