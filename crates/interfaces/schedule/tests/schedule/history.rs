//! When schedules take effect.

use antiphon_project::schedules::Schedules;
use antiphon_schedule::{HistoryChange, ScheduleHistory};
use serde_json::json;

use super::{schedule, schedules, time};

const DAILY: &str = "[schedules.s]\nagent = \"a\"\ncron = \"0 9 * * *\"";

#[test]
fn the_history_survives_serialization() {
    let mut history = ScheduleHistory::default();
    assert_eq!(
        history.update(&schedules(DAILY), time("2026-11-15T18:00:00Z")),
        HistoryChange::Changed
    );
    let written = serde_json::to_value(&history).unwrap();
    let expected = json!({"s": {"when": "cron 0 9 * * * in UTC", "since": "2026-11-15T18:00:00Z"}});
    assert_eq!(written, expected);
    let mut read: ScheduleHistory = serde_json::from_value(written).unwrap();
    assert_eq!(read, history);
    assert_eq!(
        read.update(&schedules(DAILY), time("2026-11-20T00:00:00Z")),
        HistoryChange::Unchanged
    );
    assert_eq!(read, history);
}

#[test]
fn a_schedule_takes_effect_when_its_time_is_set() {
    let (first, later) = (time("2026-11-15T18:00:00Z"), time("2026-11-20T00:00:00Z"));
    let daily = schedule("cron = \"0 9 * * *\"");
    let mut history = ScheduleHistory::default();
    assert_eq!(history.since(&daily), None);
    assert_eq!(history.update(&schedules(DAILY), first), HistoryChange::Changed);
    assert_eq!(history.since(&daily), Some(first));

    // A changed text keeps the schedule's history.
    let other_text = schedule("cron = \"0  9 * * *\"\nbody = \"x\"");
    assert_eq!(history.since(&other_text), Some(first));

    // A changed time does not, and changing it back counts as new again.
    let weekly = schedules("[schedules.s]\nagent = \"a\"\ncron = \"0 9 * * mon\"");
    assert_eq!(history.update(&weekly, later), HistoryChange::Changed);
    assert_eq!(history.since(&daily), None);
    assert_eq!(history.update(&schedules(DAILY), later), HistoryChange::Changed);
    assert_eq!(history.since(&daily), Some(later));
}

#[test]
fn a_deleted_schedule_is_removed_from_the_history() {
    let mut history = ScheduleHistory::default();
    assert_eq!(
        history.update(&schedules(DAILY), time("2026-11-15T18:00:00Z")),
        HistoryChange::Changed
    );
    let none = Schedules::default();
    assert_eq!(history.update(&none, time("2026-11-16T18:00:00Z")), HistoryChange::Changed);
    assert_eq!(history, ScheduleHistory::default());
    assert_eq!(history.update(&none, time("2026-11-17T18:00:00Z")), HistoryChange::Unchanged);
}
