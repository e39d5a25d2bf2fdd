//! Schedules, through the public API: configuration, ticks, delivery and failures.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clocks;
mod config;
mod delivering;
mod failing;
mod guide;
mod history;
mod missed;
mod ticks;
mod world;
mod zones;

use std::collections::BTreeMap;

use antiphon_project::schedules::{Schedule, ScheduleConfig, Schedules, When};
use chrono::{DateTime, Utc};

/// Parses a time.
fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// The tables of a configuration.
fn tables(text: &str) -> BTreeMap<String, ScheduleConfig> {
    let mut file: BTreeMap<String, BTreeMap<String, ScheduleConfig>> =
        toml::from_str(text).unwrap();
    file.remove("schedules").unwrap()
}

/// The schedules of a configuration.
fn schedules(text: &str) -> Schedules {
    Schedules::from_config(tables(text)).unwrap()
}

/// A schedule called `s`, for `scribe`, with these further lines.
fn schedule(lines: &str) -> Schedule {
    let all = schedules(&format!("[schedules.s]\nagent = \"scribe\"\n{lines}"));
    Schedule::clone(all.iter().next().unwrap())
}

/// The time of such a schedule.
fn when(lines: &str) -> When {
    schedule(lines).when
}
