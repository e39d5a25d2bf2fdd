//! A validated set of schedules. One invalid schedule makes the whole set an error.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use antiphon_core::{NameError, SourceName};

use super::config::ScheduleConfig;
use super::schedule::{BODY_BYTES_MAX, Schedule};
use super::when_error::WhenError;

/// Most schedules in a set.
pub const SCHEDULES_MAX: usize = 256;

/// Schedules with unique names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schedules(Vec<Arc<Schedule>>);

/// Why a set of schedules is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// More than [`SCHEDULES_MAX`] schedules.
    #[error("there are {found} schedules: {SCHEDULES_MAX} are the most")]
    TooMany {
        /// Number of schedules in the configuration.
        found: usize,
    },
    /// The name of a schedule is not valid.
    #[error("[schedules.{name:?}]: {error}")]
    Name {
        /// The refused name.
        name: String,
        /// Which rule it breaks.
        error: NameError,
    },
    /// Two schedules have the same name.
    #[error("two schedules are called `{name}`")]
    Twice {
        /// Their name.
        name: SourceName,
    },
    /// The text of a schedule is too long.
    #[error("[schedules.{name}]: `body` has {bytes} bytes, {BODY_BYTES_MAX} are the most")]
    Body {
        /// Name of the schedule.
        name: SourceName,
        /// Length of its text.
        bytes: usize,
    },
    /// The time of a schedule is not valid.
    #[error("[schedules.{name}]: {error}")]
    When {
        /// Name of the schedule.
        name: SourceName,
        /// What is wrong with its time.
        error: WhenError,
    },
}

impl Schedules {
    /// Accepts at most [`SCHEDULES_MAX`] schedules with unique names.
    pub fn new(schedules: Vec<Schedule>) -> Result<Self, ScheduleError> {
        if schedules.len() > SCHEDULES_MAX {
            return Err(ScheduleError::TooMany { found: schedules.len() });
        }
        let mut names = BTreeSet::new();
        for Schedule { name, body, .. } in &schedules {
            if !names.insert(name) {
                return Err(ScheduleError::Twice { name: name.clone() });
            }
            if body.len() > BODY_BYTES_MAX {
                return Err(ScheduleError::Body { name: name.clone(), bytes: body.len() });
            }
        }
        Ok(Self(schedules.into_iter().map(Arc::new).collect()))
    }

    /// Validates the tables `[schedules.NAME]` of a configuration.
    pub fn from_config(tables: BTreeMap<String, ScheduleConfig>) -> Result<Self, ScheduleError> {
        if tables.len() > SCHEDULES_MAX {
            return Err(ScheduleError::TooMany { found: tables.len() });
        }
        let read = |(name, table): (String, ScheduleConfig)| table.schedule(&name);
        Self::new(tables.into_iter().map(read).collect::<Result<_, _>>()?)
    }

    /// All schedules, in the given order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Schedule>> {
        self.0.iter()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
