//! Schedules: send events to agents' inboxes at configured times.
//!
//! A [`Schedule`](antiphon_project::schedules::Schedule) has a time, an agent and a text. A [`Scheduler`] waits for its ticks
//! and passes each to the port [`Deliver`] with a key made of the schedule's name and the tick's
//! time. The port accepts a key once, so a tick reaches an inbox once, across crashes and restarts.
//!
//! | failure                                 | result                                                |
//! |-----------------------------------------|-------------------------------------------------------|
//! | no scheduler ran when a tick was due    | the next start delivers the last such tick, if it is not older than [`MissedPolicy::age_max`]; an `at` of any age |
//! | the machine slept, the clock jumped forward | the same, within [`CLOCK_CHECK_EVERY`]            |
//! | the clock jumped back                   | repeated ticks have the same keys and are not delivered twice |
//! | a tick is refused                       | it is logged and skipped                              |
//! | the inbox is unavailable                | the tick is tried again with growing pauses until the next one is due |
//! | a delivery gets no answer               | the same, after [`DELIVER_WAIT_MAX`]                  |
//!
//! # When a schedule takes effect
//!
//! A schedule that is created today has no ticks of yesterday. The schedule itself does not contain
//! that time, so it is stored: [`ScheduleHistory`] records since when each schedule has its current
//! time. The caller reads it, [updates](ScheduleHistory::update) it, writes it back, and only then
//! runs the schedules. Only later ticks are delivered. The history is not essential: without it,
//! schedules count as new, missed ticks are skipped, and still none is delivered twice.

mod action;
mod deliver;
mod history;
mod history_file;
mod inbox_delivery;
mod scheduler;
mod tick;

pub use action::{MISSED_AGE_DEFAULT, MissedPolicy};
pub use deliver::{Deliver, DeliverError, DeliveryStatus};
pub use history::{HistoryChange, ScheduleHistory};
pub use history_file::updated_history;
pub use inbox_delivery::InboxDelivery;
pub use scheduler::{
    CLOCK_CHECK_EVERY, DELIVER_WAIT_MAX, RETRY_PAUSE_MAX, RETRY_PAUSE_MIN, Scheduler,
};
pub use tick::Tick;
