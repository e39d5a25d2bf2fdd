//! When each schedule took effect. Without it, missed ticks are skipped and none is delivered
//! twice.

use std::collections::BTreeMap;

use antiphon_core::SourceName;
use antiphon_project::schedules::{Schedule, Schedules};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Since when each schedule has its current time. In JSON: `{"daily":{"when":"cron 0 9 * * * in
/// UTC","since":"2026-11-15T18:00:00Z"}}`.
///
/// A plain value: the caller stores it between runs. It has one entry per schedule.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ScheduleHistory(BTreeMap<SourceName, Entry>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    when: String,
    since: DateTime<Utc>,
}

/// Whether the history must be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum HistoryChange {
    /// Store it before the schedules run.
    Changed,
    /// Nothing changed.
    Unchanged,
}

impl ScheduleHistory {
    /// Adds new schedules and schedules with a changed time as of `now`; removes entries of deleted
    /// ones.
    pub fn update(&mut self, schedules: &Schedules, now: DateTime<Utc>) -> HistoryChange {
        let entry = |schedule: &Schedule| {
            // A clock that was ahead must not delay a schedule.
            let since = self.since(schedule).map_or(now, |since| since.min(now));
            (schedule.name.clone(), Entry { when: schedule.when.to_string(), since })
        };
        let history = Self(schedules.iter().map(|schedule| entry(schedule)).collect());
        if *self == history {
            return HistoryChange::Unchanged;
        }
        *self = history;
        HistoryChange::Changed
    }

    /// Since when a schedule has its current time; `None` without an entry.
    pub fn since(&self, schedule: &Schedule) -> Option<DateTime<Utc>> {
        let entry = self.0.get(&schedule.name)?;
        (entry.when == schedule.when.to_string()).then_some(entry.since)
    }
}
