//! The schedules that are run together. One that cannot be used is told by name, and none is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use antiphon_core::{NameError, SourceName};

use crate::config::ScheduleConfig;
use crate::schedule::{BODY_BYTES_MAX, Schedule};
use crate::when_error::WhenError;

/// Most schedules that are run together.
pub const SCHEDULES_MAX: usize = 256;

/// Schedules, each with a name of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schedules(Vec<Arc<Schedule>>);

/// What is wrong with schedules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// Take some out.
    #[error("there are {found} schedules: {SCHEDULES_MAX} are the most")]
    TooMany {
        /// How many there are.
        found: usize,
    },
    /// Rename it.
    #[error("[schedules.{name:?}]: {error}")]
    Name {
        /// What is there.
        name: String,
        /// Why it is no name.
        error: NameError,
    },
    /// Rename one of them.
    #[error("two schedules are called `{name}`")]
    Twice {
        /// Their name.
        name: SourceName,
    },
    /// Say less, or let the text name a file.
    #[error("[schedules.{name}]: `body` has {bytes} bytes, {BODY_BYTES_MAX} are the most")]
    Body {
        /// Whose.
        name: SourceName,
        /// How long it is.
        bytes: usize,
    },
    /// Change its time.
    #[error("[schedules.{name}]: {error}")]
    When {
        /// Whose.
        name: SourceName,
        /// What is wrong with it.
        error: WhenError,
    },
}

impl Schedules {
    /// Takes at most [`SCHEDULES_MAX`], no two of the same name.
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

    /// Reads the tables `[schedules.NAME]` of a configuration.
    pub fn from_config(tables: BTreeMap<String, ScheduleConfig>) -> Result<Self, ScheduleError> {
        if tables.len() > SCHEDULES_MAX {
            return Err(ScheduleError::TooMany { found: tables.len() });
        }
        let read = |(name, table): (String, ScheduleConfig)| table.schedule(&name);
        Self::new(tables.into_iter().map(read).collect::<Result<_, _>>()?)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Schedule>> {
        self.0.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
