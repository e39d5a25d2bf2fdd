//! Since when schedules count.

use antiphon_schedule::{Noted, Schedules, Seen};
use serde_json::json;

use super::{schedule, schedules, time};

const DAILY: &str = "[schedules.s]\nagent = \"a\"\ncron = \"0 9 * * *\"";

#[test]
fn what_was_seen_survives_being_written_down() {
    let mut seen = Seen::default();
    assert_eq!(seen.note(&schedules(DAILY), time("2026-11-15T18:00:00Z")), Noted::Changed);
    let written = serde_json::to_value(&seen).unwrap();
    let expected = json!({"s": {"when": "cron 0 9 * * * in UTC", "since": "2026-11-15T18:00:00Z"}});
    assert_eq!(written, expected);
    let mut read: Seen = serde_json::from_value(written).unwrap();
    assert_eq!(read, seen);
    assert_eq!(read.note(&schedules(DAILY), time("2026-11-20T00:00:00Z")), Noted::Same);
    assert_eq!(read, seen);
}

#[test]
fn a_schedule_counts_since_it_has_its_time() {
    let (first, later) = (time("2026-11-15T18:00:00Z"), time("2026-11-20T00:00:00Z"));
    let daily = schedule("cron = \"0 9 * * *\"");
    let mut seen = Seen::default();
    assert_eq!(seen.since(&daily), None);
    assert_eq!(seen.note(&schedules(DAILY), first), Noted::Changed);
    assert_eq!(seen.since(&daily), Some(first));

    // Another text is the same schedule.
    let other_text = schedule("cron = \"0  9 * * *\"\nbody = \"x\"");
    assert_eq!(seen.since(&other_text), Some(first));

    // Another time is not, and going back to the first is new again.
    let weekly = schedules("[schedules.s]\nagent = \"a\"\ncron = \"0 9 * * mon\"");
    assert_eq!(seen.note(&weekly, later), Noted::Changed);
    assert_eq!(seen.since(&daily), None);
    assert_eq!(seen.note(&schedules(DAILY), later), Noted::Changed);
    assert_eq!(seen.since(&daily), Some(later));
}

#[test]
fn a_schedule_that_is_gone_is_forgotten() {
    let mut seen = Seen::default();
    assert_eq!(seen.note(&schedules(DAILY), time("2026-11-15T18:00:00Z")), Noted::Changed);
    let none = Schedules::default();
    assert_eq!(seen.note(&none, time("2026-11-16T18:00:00Z")), Noted::Changed);
    assert_eq!(seen, Seen::default());
    assert_eq!(seen.note(&none, time("2026-11-17T18:00:00Z")), Noted::Same);
}
