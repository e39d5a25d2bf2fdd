//! When schedules tick.

use std::time::Duration;

use antiphon_project::schedules::{Cron, Every, When, WhenError};
use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;

use super::{time, when};

/// The first `count` ticks after `t`.
pub(crate) fn ticks(when: &When, t: &str, count: usize) -> Vec<String> {
    let next = |t: &DateTime<Utc>| when.next_after(*t);
    let ticks = std::iter::successors(when.next_after(time(t)), next).take(count);
    ticks.map(|tick| tick.to_rfc3339()).collect()
}

#[test]
fn a_period_is_aligned_to_the_unix_epoch() {
    let when = when("every = \"7m\"");
    let expected =
        ["2026-11-15T18:04:00+00:00", "2026-11-15T18:11:00+00:00", "2026-11-15T18:18:00+00:00"];
    assert_eq!(ticks(&when, "2026-11-15T18:00:00Z", 3), expected);
    // A later query gives the same ticks.
    assert_eq!(ticks(&when, "2026-11-15T18:10:59.999Z", 2), expected[1..]);
    assert_eq!(ticks(&when, "2026-11-15T18:11:00Z", 1), expected[2..]);
}

#[test]
fn a_period_can_be_aligned_to_a_given_time() {
    let when = when("every = \"1w\"\nfrom = \"2026-11-16T10:00:00+01:00\"");
    let expected = ["2026-11-16T09:00:00+00:00", "2026-11-23T09:00:00+00:00"];
    assert_eq!(ticks(&when, "2020-01-01T00:00:00Z", 2), expected);
    assert_eq!(when.last_due(time("2026-11-16T08:59:59Z")), None);
    let first = time("2026-11-16T09:00:00Z");
    assert_eq!(when.last_due(time("2026-11-16T09:00:00Z")), Some(first));
    assert_eq!(when.last_due(time("2026-11-23T08:59:59.9Z")), Some(first));
}

#[test]
fn an_expression_ticks_on_the_days_it_names() {
    let when = when("cron = \"0 9 * * mon-fri\"");
    let expected =
        ["2026-11-20T09:00:00+00:00", "2026-11-23T09:00:00+00:00", "2026-11-24T09:00:00+00:00"];
    assert_eq!(ticks(&when, "2026-11-19T09:00:00Z", 3), expected);
    assert_eq!(when.last_due(time("2026-11-22T12:00:00Z")), Some(time("2026-11-20T09:00:00Z")));
    assert_eq!(when.last_due(time("2026-11-20T09:00:00.5Z")), Some(time("2026-11-20T09:00:00Z")));
    assert_eq!(when.last_due(time("2026-11-20T08:59:59.9Z")), Some(time("2026-11-19T09:00:00Z")));
}

#[test]
fn a_day_matches_if_its_day_of_month_or_its_day_of_week_matches() {
    let when = when("cron = \"0 0 13 * fri\"");
    let expected = [
        "2026-11-13T00:00:00+00:00",
        "2026-11-20T00:00:00+00:00",
        "2026-11-27T00:00:00+00:00",
        "2026-12-04T00:00:00+00:00",
        "2026-12-11T00:00:00+00:00",
        "2026-12-13T00:00:00+00:00",
    ];
    assert_eq!(ticks(&when, "2026-11-12T00:00:00Z", 6), expected);
}

#[test]
fn days_can_be_counted_from_the_end_of_a_month_or_by_its_weeks() {
    for (expression, day) in [
        ("0 0 L * *", "2026-11-30"),
        // The 15th is a Sunday.
        ("0 0 15W * *", "2026-11-16"),
        ("0 0 * * fri#2", "2026-11-13"),
        ("0 0 * * fri#L", "2026-11-27"),
        ("0 0 13 * +fri", "2026-11-13"),
        ("0 0 14 * +fri", "2027-05-14"),
        ("0 0 * * 7", "2026-11-01"),
        ("0 0 * * sat-sun", "2026-11-01"),
    ] {
        let tick = when(&format!("cron = {expression:?}")).next_after(time("2026-10-31T00:00:00Z"));
        assert_eq!(tick, Some(time(&format!("{day}T00:00:00Z"))), "{expression}");
    }
}

#[test]
fn a_rare_day_is_found_from_far_away() {
    let when = when("cron = \"0 0 29 feb *\"");
    assert_eq!(when.next_after(time("2096-03-01T00:00:00Z")), Some(time("2104-02-29T00:00:00Z")));
    assert_eq!(when.last_due(time("2104-02-28T00:00:00Z")), Some(time("2096-02-29T00:00:00Z")));
}

#[test]
fn a_single_time_ticks_once() {
    let when = when("at = \"2026-11-20T10:00:00+01:00\"");
    let at = time("2026-11-20T09:00:00Z");
    let second = TimeDelta::seconds(1);
    assert_eq!(when, When::At(at));
    assert_eq!((when.next_after(at - second), when.next_after(at)), (Some(at), None));
    assert_eq!((when.last_due(at - second), when.last_due(at)), (None, Some(at)));
    assert_eq!(when.last_due(at + TimeDelta::days(3650)), Some(at));
}

#[test]
fn a_period_that_is_made_in_code_is_checked_as_well() {
    let second = Duration::from_secs(1);
    assert_eq!(Every::new(second).unwrap().period(), second);
    assert_eq!(Every::new(366 * 24 * 3600 * second).unwrap().period(), 31_622_400 * second);
    for (period, found) in [
        (Duration::ZERO, "0s"),
        (Duration::from_millis(999), "999ms"),
        (Duration::from_millis(1500), "1s 500ms"),
    ] {
        assert_eq!(Every::new(period), Err(WhenError::Bounds { found: found.to_owned() }));
    }
    assert!(matches!(Every::new(31_622_401 * second), Err(WhenError::Bounds { .. })));
    assert!(matches!(Every::new(Duration::MAX), Err(WhenError::Bounds { .. })));
}

#[test]
fn the_limits_of_time_have_no_ticks_and_cause_no_panic() {
    let every = when("every = \"1s\"");
    let cron = when("cron = \"* * * * *\"\nzone = \"Pacific/Auckland\"");
    for t in [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
        assert_eq!((cron.next_after(t), cron.last_due(t)), (None, None));
    }
    assert_eq!(every.last_due(DateTime::<Utc>::MIN_UTC), None);
    assert_eq!(every.next_after(DateTime::<Utc>::MAX_UTC), None);
}

#[test]
fn the_text_of_a_time_is_complete() {
    let texts = [
        ("every = \"90m\"", "every 1h 30m"),
        ("every = \"1d\"\nfrom = \"2026-11-16T09:00:00Z\"", "every 1day from 2026-11-16T09:00:00Z"),
        ("cron = \" 0  9 * * mon-fri \"", "cron 0 9 * * mon-fri in UTC"),
        ("cron = \"0 9 * * *\"\nzone = \"Asia/Tokyo\"", "cron 0 9 * * * in Asia/Tokyo"),
        ("at = \"2026-11-20T10:00:00.5+01:00\"", "at 2026-11-20T09:00:00.500Z"),
    ];
    for (lines, text) in texts {
        assert_eq!(when(lines).to_string(), text);
    }
}

/// Zones that change their clocks in different ways, one by half an hour, one at midnight.
const ZONES: [&str; 6] = [
    "UTC",
    "Europe/Vienna",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Cairo",
    "Asia/Kathmandu",
];

const EXPRESSIONS: [&str; 10] = [
    "* * * * *",
    "*/7 * * * *",
    "30 2 * * *",
    "0 0 * * *",
    "0,30 1-3 * * *",
    "15 */2 * * *",
    "0 3 * * sun",
    "30 1 1 * mon",
    "59 23 L * *",
    "0 2 29 2 *",
];

fn any_when() -> impl Strategy<Value = When> {
    let cron = (0..EXPRESSIONS.len(), 0..ZONES.len())
        .prop_map(|(e, z)| When::Cron(Cron::parse(EXPRESSIONS[e], ZONES[z]).unwrap()));
    let every =
        (1_u64..10_000_000, -1_000_000_000_i64..2_000_000_000).prop_map(|(period, from)| {
            let every = Every::new(Duration::from_secs(period)).unwrap();
            When::Every(every.from(DateTime::from_timestamp(from, 0).unwrap()))
        });
    prop_oneof![cron, every]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn next_and_last_agree_on_the_ticks(
        when in any_when(),
        // From 2025 to 2028, in milliseconds.
        t in 1_735_689_600_000_i64..1_830_000_000_000,
    ) {
        let t = DateTime::from_timestamp_millis(t).unwrap();
        if let Some(next) = when.next_after(t) {
            prop_assert!(next > t);
            prop_assert_eq!(when.last_due(next), Some(next));
            prop_assert!(when.last_due(next - TimeDelta::nanoseconds(1)).is_none_or(|last| last <= t));
        }
        if let Some(last) = when.last_due(t) {
            prop_assert!(last <= t);
            prop_assert!(when.next_after(last).is_none_or(|next| next > t));
            prop_assert_eq!(when.next_after(last - TimeDelta::nanoseconds(1)), Some(last));
        }
    }
}
