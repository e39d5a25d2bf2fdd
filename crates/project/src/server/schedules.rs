//! Schedules of the user: when which agent gets which text. `antiphon-schedule` runs them.
//!
//! A [`Schedule`] has a time ([`When`]), an agent and a text. An invalid one is a [`ScheduleError`] with its name and
//! what to write; none is run then.

mod config;
mod cron;
mod every;
mod schedule;
mod schedule_set;
mod when;
mod when_error;

pub use config::ScheduleConfig;
pub use cron::{Cron, ZONE_DEFAULT};
pub use every::{EVERY_MAX, EVERY_MIN, Every};
pub use schedule::{BODY_BYTES_MAX, Schedule};
pub use schedule_set::{SCHEDULES_MAX, ScheduleError, Schedules};
pub use when::When;
pub use when_error::{WHEN_BYTES_MAX, WhenError};
