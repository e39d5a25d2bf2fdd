//! Schedules: a source of events for agents' inboxes, at times that the user chose.
//!
//! A [`Schedule`] says when ([`When`]), to whom and what. A [`Scheduler`] waits for its ticks and hands
//! each to a port, [`Deliver`], under a key that names the schedule and the time. The port takes a key
//! once, so a tick reaches an inbox once, whatever crashes or is started again in between.
//!
//! | what goes wrong                         | what happens                                          |
//! |-----------------------------------------|-------------------------------------------------------|
//! | a schedule that makes no sense          | [`ScheduleError`] with its name and what to write, and none is run |
//! | nobody ran it when a tick was due       | the last such tick is delivered at the next start, if it is not older than [`Missed::age_max`]; an `at` however old it is |
//! | the machine slept, the clock jumped on  | the same, within [`LOOK_EVERY`]                       |
//! | the clock jumped back                   | ticks that come again have the keys they had, and are not delivered twice |
//! | a tick is refused                       | it is logged and left out                             |
//! | the inbox cannot be reached             | it is tried again, with growing pauses, until the next tick is due |
//! | it does not answer                      | the same, after [`DELIVER_WAIT_MAX`]                  |
//!
//! # Since when a schedule counts
//!
//! A schedule that was written today has no ticks of yesterday. That cannot be seen from the schedule,
//! so it is kept: [`Seen`] is a small value that says since when each schedule has been what it is. The
//! caller reads it, lets it [`note`](Seen::note) what there is now, writes it down again, and only then
//! runs. Only ticks behind that time count. It is no second truth: without it schedules count as new,
//! ticks that were missed are left out, and still none is delivered twice.

mod config;
mod cron;
mod deliver;
mod every;
mod schedule;
mod scheduler;
mod schedules;
mod seen;
mod step;
mod tick;
mod when;
mod when_error;

pub use config::ScheduleConfig;
pub use cron::{Cron, ZONE_DEFAULT};
pub use deliver::{Deliver, DeliverError, Delivered};
pub use every::{EVERY_MAX, EVERY_MIN, Every};
pub use schedule::{BODY_BYTES_MAX, Schedule};
pub use scheduler::{DELIVER_WAIT_MAX, LOOK_EVERY, RETRY_PAUSE_MAX, RETRY_PAUSE_MIN, Scheduler};
pub use schedules::{SCHEDULES_MAX, ScheduleError, Schedules};
pub use seen::{Noted, Seen};
pub use step::{MISSED_AGE_DEFAULT, Missed};
pub use tick::Tick;
pub use when::When;
pub use when_error::{WHEN_BYTES_MAX, WhenError};
