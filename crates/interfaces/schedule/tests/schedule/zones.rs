//! Clock changes. In Vienna, 2026: an hour is skipped on March 29 (02:00 is 03:00) and repeated on
//! October 25 (03:00 is 02:00 again).

use antiphon_project::schedules::{Cron, When};
use chrono::{
    DateTime, Datelike, NaiveDateTime, Offset, TimeDelta, TimeZone, Timelike, Utc, Weekday,
};
use chrono_tz::Tz;

use super::ticks::ticks;
use super::{time, when};

fn vienna(expression: &str) -> When {
    when(&format!("cron = \"{expression}\"\nzone = \"Europe/Vienna\""))
}

/// Ticks after `t`, checked in both directions.
fn both_ways(when: &When, t: &str, count: usize) -> Vec<String> {
    let ahead = ticks(when, t, count);
    let last = ahead.last().map(|last| time(last));
    let before = |t: &DateTime<Utc>| when.last_due(*t - TimeDelta::nanoseconds(1));
    let mut behind: Vec<_> = std::iter::successors(last, before).take(count).collect();
    behind.reverse();
    assert_eq!(behind.iter().map(DateTime::to_rfc3339).collect::<Vec<_>>(), ahead);
    ahead
}

#[test]
fn nine_in_the_morning_is_nine_in_the_morning_all_year() {
    let ticks = both_ways(&vienna("0 9 * * *"), "2026-03-28T00:00:00Z", 3);
    let summer = ["2026-03-29T07:00:00+00:00", "2026-03-30T07:00:00+00:00"];
    assert_eq!(ticks, ["2026-03-28T08:00:00+00:00", summer[0], summer[1]]);
}

#[test]
fn a_skipped_time_of_day_ticks_at_the_end_of_the_gap() {
    let expected =
        ["2026-03-28T01:30:00+00:00", "2026-03-29T01:00:00+00:00", "2026-03-30T00:30:00+00:00"];
    assert_eq!(both_ways(&vienna("30 2 * * *"), "2026-03-28T00:00:00Z", 3), expected);
}

#[test]
fn of_several_times_of_day_those_in_the_gap_are_skipped() {
    let expected = [
        "2026-03-29T00:00:00+00:00",
        "2026-03-29T00:30:00+00:00",
        "2026-03-29T01:00:00+00:00",
        "2026-03-29T01:30:00+00:00",
    ];
    assert_eq!(both_ways(&vienna("*/30 * * * *"), "2026-03-28T23:59:00Z", 4), expected);
    let expected = ["2026-03-28T08:30:00+00:00", "2026-03-29T07:30:00+00:00"];
    assert_eq!(both_ways(&vienna("30 2,9 * * *"), "2026-03-28T02:00:00Z", 2), expected);
}

#[test]
fn a_repeated_time_of_day_ticks_the_first_time() {
    let expected =
        ["2026-10-24T00:30:00+00:00", "2026-10-25T00:30:00+00:00", "2026-10-26T01:30:00+00:00"];
    assert_eq!(both_ways(&vienna("30 2 * * *"), "2026-10-24T00:00:00Z", 3), expected);
}

#[test]
fn several_times_of_day_tick_in_both_repeated_hours() {
    let expected = [
        "2026-10-25T00:00:00+00:00",
        "2026-10-25T00:30:00+00:00",
        "2026-10-25T01:00:00+00:00",
        "2026-10-25T01:30:00+00:00",
        "2026-10-25T02:00:00+00:00",
    ];
    assert_eq!(both_ways(&vienna("*/30 * * * *"), "2026-10-24T23:59:00Z", 5), expected);
}

#[test]
fn a_skipped_midnight_is_not_another_time_of_day() {
    // In Cairo, on 2026-04-24, 00:00 is 01:00.
    let cairo = |expression| When::Cron(Cron::parse(expression, "Africa/Cairo").unwrap());
    let expected = ["2026-04-23T07:00:00+00:00", "2026-04-24T06:00:00+00:00"];
    assert_eq!(both_ways(&cairo("0 9 * * *"), "2026-04-23T00:00:00Z", 2), expected);
    let expected = ["2026-04-22T22:15:00+00:00", "2026-04-23T22:00:00+00:00"];
    assert_eq!(both_ways(&cairo("15 0 * * *"), "2026-04-22T12:00:00Z", 2), expected);
}

/// An expression, whether it has one hour and one minute, and the times that match it.
type Case = (&'static str, bool, fn(NaiveDateTime) -> bool);

const CASES: [Case; 7] = [
    ("30 2 * * *", true, |t| (t.hour(), t.minute()) == (2, 30)),
    ("0 0 * * *", true, |t| (t.hour(), t.minute()) == (0, 0)),
    ("5 9 * * *", true, |t| (t.hour(), t.minute()) == (9, 5)),
    ("15 0 * * fri,sun", true, |t| {
        (t.hour(), t.minute()) == (0, 15) && matches!(t.weekday(), Weekday::Fri | Weekday::Sun)
    }),
    ("*/20 * * * *", false, |t| t.minute() % 20 == 0),
    ("10 */2 * * *", false, |t| t.hour() % 2 == 0 && t.minute() == 10),
    ("0,45 0-3 * * *", false, |t| t.hour() <= 3 && (t.minute() == 0 || t.minute() == 45)),
];

/// Shifts by one hour, two, and half of one; at night and at midnight; and none.
const ZONES: [&str; 8] = [
    "Europe/Vienna",
    "America/New_York",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Africa/Cairo",
    "America/Santiago",
    "Asia/Beirut",
    "UTC",
];

/// Whether an expression ticks at `t`, by the table in the guide, minute by minute.
fn is_tick((_, one_time, fits): Case, zone: Tz, t: DateTime<Utc>) -> bool {
    let minute = TimeDelta::minutes(1);
    let local = t.with_timezone(&zone).naive_local();
    if !one_time {
        return fits(local);
    }
    let before = (t - minute).with_timezone(&zone).naive_local();
    let gap = std::iter::successors(Some(before + minute), |t| Some(*t + minute));
    let is_first = || zone.from_local_datetime(&local).earliest().is_some_and(|first| first == t);
    fits(local) && is_first() || gap.take_while(|left_out| *left_out < local).any(fits)
}

/// Two days around each clock change of a zone in 2026, and around the new year.
fn windows(zone: Tz) -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
    let new_year = time("2026-01-01T00:00:00Z");
    let hours = (0..8760).map(|hour| new_year + TimeDelta::hours(hour));
    let offset = |t: DateTime<Utc>| zone.offset_from_utc_datetime(&t.naive_utc()).fix();
    let changes =
        hours.filter(|t| *t == new_year || offset(*t) != offset(*t - TimeDelta::hours(1)));
    changes.map(|t| (t - TimeDelta::days(2), t + TimeDelta::days(2))).collect()
}

#[test]
fn every_clock_change_follows_the_guide() {
    for (zone, case) in ZONES.iter().flat_map(|zone| CASES.map(|case| (zone, case))) {
        let when = When::Cron(Cron::parse(case.0, zone).unwrap());
        let zone: Tz = zone.parse().unwrap();
        for (start, end) in windows(zone) {
            let minutes = (0..(end - start).num_minutes()).map(|m| start + TimeDelta::minutes(m));
            let ticks: Vec<_> = minutes.filter(|t| is_tick(case, zone, *t)).collect();
            for t in (0..(end - start).num_minutes()).step_by(29) {
                let t = start + TimeDelta::minutes(t);
                let (due, ahead) = ticks.split_at(ticks.partition_point(|tick| *tick <= t));
                if let Some(next) = ahead.first() {
                    assert_eq!(when.next_after(t), Some(*next), "{when} behind {t}");
                }
                if let Some(last) = due.last() {
                    assert_eq!(when.last_due(t), Some(*last), "{when} up to {t}");
                }
            }
        }
    }
}
