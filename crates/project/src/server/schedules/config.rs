//! A schedule in the configuration: the table `[schedules.NAME]`. Unknown fields are refused.

use std::fmt;

use antiphon_core::{AgentName, Salience, SourceName};
use chrono::{DateTime, Utc};
use serde::de::{self, Deserialize, Deserializer, Visitor};

use super::cron::{Cron, ZONE_DEFAULT};
use super::every::Every;
use super::schedule::Schedule;
use super::schedule_set::ScheduleError;
use super::when::When;
use super::when_error::{WhenError, bounded};

/// A schedule as the user writes it. Exactly one of `every`, `cron` and `at` must be present.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleConfig {
    /// Name of the receiving agent.
    pub agent: AgentName,
    /// A period, such as `5m`.
    pub every: Option<String>,
    /// Time of the first tick of `every`, RFC 3339.
    #[serde(default, deserialize_with = "time_text")]
    pub from: Option<String>,
    /// Five fields, such as `0 9 * * mon-fri`.
    pub cron: Option<String>,
    /// Time zone of `cron`, such as `Europe/Vienna`; [`ZONE_DEFAULT`] when absent.
    pub zone: Option<String>,
    /// A single time, such as `2026-11-20T09:00:00Z`.
    #[serde(default, deserialize_with = "time_text")]
    pub at: Option<String>,
    /// Text of the event.
    #[serde(default)]
    pub body: String,
    /// How urgent the event is; unspecified when absent.
    pub salience: Option<Salience>,
    /// Whether the event starts an idle agent; true when absent.
    #[serde(default = "wake")]
    pub wake: bool,
}

impl ScheduleConfig {
    /// Validates the table and gives it a name.
    pub fn schedule(self, name: &str) -> Result<Schedule, ScheduleError> {
        let name = SourceName::parse(name)
            .map_err(|error| ScheduleError::Name { name: name.to_owned(), error })?;
        let when = match self.when() {
            Ok(when) => when,
            Err(error) => return Err(ScheduleError::When { name, error }),
        };
        let Self { agent, body, salience, wake, .. } = self;
        Ok(Schedule { name, agent, when, body, salience, wake })
    }

    fn when(&self) -> Result<When, WhenError> {
        let when = match (&self.every, &self.cron, &self.at) {
            (None, None, None) => return Err(WhenError::Nothing),
            (Some(_), Some(_), _) => return Err(several("every", "cron")),
            (Some(_), _, Some(_)) => return Err(several("every", "at")),
            (None, Some(_), Some(_)) => return Err(several("cron", "at")),
            (Some(every), None, None) => {
                let every = Every::parse(every)?;
                let from = self.from.as_deref().map(|from| time("from", from)).transpose()?;
                When::Every(from.map_or(every, |from| every.from(from)))
            }
            (None, Some(cron), None) => {
                When::Cron(Cron::parse(cron, self.zone.as_deref().unwrap_or(ZONE_DEFAULT))?)
            }
            (None, None, Some(at)) => When::At(time("at", at)?),
        };
        if self.from.is_some() && self.every.is_none() {
            return Err(WhenError::Stray { field: "from", with: "every" });
        }
        if self.zone.is_some() && self.cron.is_none() {
            return Err(WhenError::Stray { field: "zone", with: "cron" });
        }
        Ok(when)
    }
}

fn several(first: &'static str, second: &'static str) -> WhenError {
    WhenError::Several { first, second }
}

fn time(field: &'static str, text: &str) -> Result<DateTime<Utc>, WhenError> {
    let text = bounded(field, text)?;
    match DateTime::parse_from_rfc3339(text) {
        Ok(time) => Ok(time.to_utc()),
        Err(_) => Err(WhenError::Time { field, found: text.to_owned() }),
    }
}

fn wake() -> bool {
    true
}

/// An unquoted time is a TOML datetime, not a string: the error says to add quotes.
fn time_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    struct Quoted(String);
    struct QuotedVisitor;

    impl Visitor<'_> for QuotedVisitor {
        type Value = Quoted;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a time in quotes, such as \"2026-11-20T09:00:00Z\"")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Quoted, E> {
            Ok(Quoted(text.to_owned()))
        }
    }

    impl<'de> Deserialize<'de> for Quoted {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_str(QuotedVisitor)
        }
    }

    let quoted = Option::<Quoted>::deserialize(deserializer)?;
    Ok(quoted.map(|Quoted(text)| text))
}
