//! Since when schedules count. Losing it leaves out ticks that were missed, and delivers none twice.

use std::collections::BTreeMap;

use antiphon_core::SourceName;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::schedule::Schedule;
use crate::schedules::Schedules;

/// Since when each schedule has been what it is. In JSON:
/// `{"daily":{"when":"cron 0 9 * * * in UTC","since":"2026-11-15T18:00:00Z"}}`.
///
/// A plain value: whoever runs schedules keeps it between runs. It has as many entries as there are
/// schedules.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seen(BTreeMap<SourceName, Sighting>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Sighting {
    when: String,
    since: DateTime<Utc>,
}

/// Whether there is anything to write down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Noted {
    /// Write it down before the schedules are run.
    Changed,
    /// It says what it said.
    Same,
}

impl Seen {
    /// Looks at the schedules that there are. One that is new, or has another time than before, counts
    /// from `now`; one that is gone is forgotten.
    pub fn note(&mut self, schedules: &Schedules, now: DateTime<Utc>) -> Noted {
        let sighting = |schedule: &Schedule| {
            // A clock that was ahead once must not keep a schedule waiting.
            let since = self.since(schedule).map_or(now, |since| since.min(now));
            (schedule.name.clone(), Sighting { when: schedule.when.to_string(), since })
        };
        let seen = Self(schedules.iter().map(|schedule| sighting(schedule)).collect());
        if *self == seen {
            return Noted::Same;
        }
        *self = seen;
        Noted::Changed
    }

    /// Since when a schedule has had its name and its time; `None` when that was not noted.
    pub fn since(&self, schedule: &Schedule) -> Option<DateTime<Utc>> {
        let sighting = self.0.get(&schedule.name)?;
        (sighting.when == schedule.when.to_string()).then_some(sighting.since)
    }
}
