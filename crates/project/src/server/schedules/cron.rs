//! Ticks at calendar times of a time zone. An invalid expression, or one that never matches, is
//! refused.
//!
//! An expression has five fields: minute, hour, day of month, month, day of week. The shortest
//! period is a minute; [`Every`](crate::schedules::every::Every) allows shorter ones. When both a day of month and a
//! day of week are given, a day matches if either does, as in every cron.
//!
//! When clocks change:
//!
//! | the expression has              | an hour is skipped                  | an hour is repeated |
//! |---------------------------------|-------------------------------------|---------------------|
//! | one hour and one minute         | a tick in it comes right after it   | the first time only |
//! | lists, ranges, steps or a `*` there | a tick in it is skipped         | both times          |

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Datelike, LocalResult, NaiveDateTime, TimeDelta, TimeZone, Utc};
use chrono_tz::{GapInfo, TZ_VARIANTS, Tz};
use croner::parser::{CronParser, Seconds, Year};
use croner::{Direction, JobType, YEAR_LOWER_LIMIT, YEAR_UPPER_LIMIT};

use super::when_error::{WhenError, bounded};

/// The zone of an expression without one.
pub const ZONE_DEFAULT: &str = "UTC";

/// No zone has ever shifted its clocks by more, not even across the date line.
const SHIFT_MAX: TimeDelta = TimeDelta::days(2);

/// Every word that an expression may contain: days, months, `L` (last) and `W` (weekday).
const WORDS: [&str; 22] = [
    "SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "JAN", "FEB", "MAR", "APR", "MAY", "JUN",
    "JUL", "AUG", "SEP", "OCT", "NOV", "DEC", "L", "W", "LW",
];

/// Ticks at the times of a zone that match an expression.
#[derive(Clone, PartialEq, Eq)]
pub struct Cron {
    expression: String,
    zone: Tz,
    /// Boxed because it is large.
    pattern: Box<croner::Cron>,
}

impl Cron {
    /// Parses an expression such as `0 9 * * mon-fri` for a zone such as `Europe/Vienna`.
    pub fn parse(expression: &str, zone: &str) -> Result<Self, WhenError> {
        let expression = bounded("cron", expression)?;
        let zone = parse_zone(bounded("zone", zone)?)?;
        let refuse = |reason: String| WhenError::Cron { found: expression.to_owned(), reason };
        let fields: Vec<&str> = expression.split_whitespace().collect();
        if fields.len() != 5 {
            return Err(refuse(format!("it has {} fields, not 5", fields.len())));
        }
        // The parser replaces names anywhere: it would read `sunmon` as a Monday.
        let mut words = expression.split(|c: char| !c.is_alphabetic()).filter(|w| !w.is_empty());
        if let Some(word) = words.find(|w| !WORDS.contains(&w.to_ascii_uppercase().as_str())) {
            return Err(refuse(format!("{word:?} is neither a day nor a month")));
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed);
        let pattern =
            parser.build().parse(expression).map_err(|error| refuse(error.to_string()))?;
        let cron = Self { expression: fields.join(" "), zone, pattern: Box::new(pattern) };
        if cron.next_after(DateTime::UNIX_EPOCH).is_none() {
            return Err(WhenError::Never { found: expression.to_owned() });
        }
        Ok(cron)
    }

    /// The first tick after `t`.
    pub(super) fn next_after(&self, t: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.find(t, Direction::Forward)
    }

    /// The last tick at or before `now`.
    pub(super) fn last_due(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.find(now, Direction::Backward)
    }

    fn find(&self, t: DateTime<Utc>, direction: Direction) -> Option<DateTime<Utc>> {
        if !(YEAR_LOWER_LIMIT..YEAR_UPPER_LIMIT).contains(&t.year()) {
            return None;
        }
        // Ticks are at whole seconds, so the last tick is at or before the second of `t`.
        let t = DateTime::from_timestamp(t.timestamp(), 0)?.with_timezone(&self.zone);
        match (self.pattern.determine_job_type(), direction) {
            (JobType::FixedTime, direction) => self.find_time_of_day(t, direction),
            // No result means beyond the years that are searched.
            (JobType::IntervalWildcard, Direction::Forward) => {
                self.pattern.find_next_occurrence(&t, false).ok()
            }
            (JobType::IntervalWildcard, Direction::Backward) => {
                self.pattern.find_previous_occurrence(&t, true).ok()
            }
        }
        .map(|tick| tick.to_utc())
    }

    /// Finds wall clock times and converts them to the zone. The parser's own search with a zone
    /// (4.0.2) confuses a skipped midnight with the time of day it looks for.
    fn find_time_of_day(&self, t: DateTime<Tz>, direction: Direction) -> Option<DateTime<Tz>> {
        let local = t.naive_local();
        let convert = |time: NaiveDateTime| self.to_instant(time);
        match direction {
            Direction::Forward => {
                let start = local.checked_sub_signed(SHIFT_MAX)?;
                self.pattern.iter_after(start).filter_map(convert).find(|tick| *tick > t)
            }
            Direction::Backward => {
                let start = local.checked_add_signed(SHIFT_MAX)?;
                self.pattern.iter_before(start).filter_map(convert).find(|tick| *tick <= t)
            }
        }
    }

    /// The instant of a local time: the first one if it occurs twice, the end of the gap if it is
    /// skipped.
    fn to_instant(&self, time: NaiveDateTime) -> Option<DateTime<Tz>> {
        match self.zone.from_local_datetime(&time) {
            LocalResult::Single(tick) | LocalResult::Ambiguous(tick, _) => Some(tick),
            LocalResult::None => GapInfo::new(&time, &self.zone)?.end,
        }
    }
}

fn parse_zone(name: &str) -> Result<Tz, WhenError> {
    Tz::from_str(name).map_err(|_| {
        let mut known = TZ_VARIANTS.iter().map(|zone| zone.name());
        let near = known.find(|known| known.eq_ignore_ascii_case(name));
        WhenError::Zone { found: name.to_owned(), near: near.map(str::to_owned) }
    })
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cron {} in {}", self.expression, self.zone.name())
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The pattern itself is very long.
        write!(f, "Cron({self})")
    }
}
