//! Waits for ticks and delivers them. Schedules are independent: a failed delivery delays no other.
//!
//! Uses the wall clock and checks it regularly, because a timer notices neither that the machine
//! slept nor that the clock was set.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::Clock;
use antiphon_project::schedules::{Schedule, Schedules};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::action::{Action, MissedPolicy, decide};
use crate::deliver::{Deliver, DeliverError, DeliveryStatus};
use crate::history::ScheduleHistory;
use crate::tick::Tick;

/// Longest time between two checks of the wall clock.
pub const CLOCK_CHECK_EVERY: Duration = Duration::from_secs(30);

/// How long a delivery may take.
pub const DELIVER_WAIT_MAX: Duration = Duration::from_secs(60);

/// Pause after the first failed attempt. Each further pause is twice as long.
pub const RETRY_PAUSE_MIN: Duration = Duration::from_secs(1);

/// Longest pause between two attempts.
pub const RETRY_PAUSE_MAX: Duration = CLOCK_CHECK_EVERY;

/// Runs schedules.
pub struct Scheduler {
    /// The schedules to run.
    pub schedules: Schedules,
    /// When each schedule took effect. One without an entry takes effect now.
    pub history: ScheduleHistory,
    /// Which missed ticks are delivered.
    pub missed: MissedPolicy,
    /// The wall clock. It may jump.
    pub clock: Arc<dyn Clock>,
    /// Receives the ticks.
    pub deliver: Arc<dyn Deliver>,
}

impl Scheduler {
    /// Runs until `stop` is canceled or no schedule has a tick left. Spawns nothing. A delivery
    /// that is interrupted by `stop` counts as missed, and the next run delivers its tick again.
    pub async fn run(self, stop: CancellationToken) {
        let start = self.clock.now();
        let all = join_all(self.schedules.iter().map(|schedule| {
            let running = RunningSchedule {
                schedule: Arc::clone(schedule),
                scheduler: &self,
                after: self.history.since(schedule).unwrap_or(start),
                failed: None,
            };
            running.run()
        }));
        stop.run_until_cancelled(all).await;
    }
}

/// A running schedule.
struct RunningSchedule<'a> {
    schedule: Arc<Schedule>,
    scheduler: &'a Scheduler,
    /// All ticks up to this time are done.
    after: DateTime<Utc>,
    failed: Option<FailedTick>,
}

/// A tick whose delivery failed so far.
struct FailedTick {
    at: DateTime<Utc>,
    pauses: ExponentialBackoff,
}

impl RunningSchedule<'_> {
    async fn run(mut self) {
        loop {
            let now = self.scheduler.clock.now();
            // After the clock was set back, the same ticks come again with the same keys: the port
            // refuses them.
            self.after = self.after.min(now);
            match decide(&self.schedule.when, self.after, now, self.scheduler.missed) {
                Action::Deliver(at) => self.attempt(at).await,
                Action::Skip(at) => {
                    // It may have been delivered in time: no warning.
                    tracing::debug!(schedule.name = %self.schedule.name, tick.at = %at, "skipped: too old");
                    self.mark_done(at);
                }
                Action::Wait(next) => sleep(until(next, now).min(CLOCK_CHECK_EVERY)).await,
                Action::End => {
                    tracing::info!(schedule.name = %self.schedule.name, "no ticks left");
                    return;
                }
            }
        }
    }

    async fn attempt(&mut self, at: DateTime<Utc>) {
        if let Some(failed) = self.failed.take_if(|failed| failed.at != at) {
            self.log_skipped(failed.at, "the next one is due");
        }
        let tick = Tick::new(Arc::clone(&self.schedule), at);
        let delivery = timeout(DELIVER_WAIT_MAX, self.scheduler.deliver.deliver(tick));
        let answer = delivery.await.unwrap_or_else(|_| {
            let reason = format!("no answer within {} s", DELIVER_WAIT_MAX.as_secs());
            Err(DeliverError::Unavailable { reason })
        });
        match answer {
            Ok(delivered) => {
                self.log_delivered(at, delivered);
                self.mark_done(at);
            }
            Err(DeliverError::Refused { reason }) => {
                self.log_skipped(at, &reason);
                self.mark_done(at);
            }
            Err(DeliverError::Unavailable { reason }) => self.pause(at, &reason).await,
        }
    }

    fn mark_done(&mut self, at: DateTime<Utc>) {
        self.after = at;
        self.failed = None;
    }

    /// Waits for the next attempt or the next tick, whichever comes first.
    async fn pause(&mut self, at: DateTime<Utc>, reason: &str) {
        let name = &self.schedule.name;
        if self.failed.is_none() {
            tracing::warn!(schedule.name = %name, tick.at = %at, reason, "delivery failed, will retry");
        } else {
            tracing::debug!(schedule.name = %name, tick.at = %at, reason, "delivery failed, will retry");
        }
        let failed = self.failed.get_or_insert_with(|| FailedTick { at, pauses: pauses() });
        let pause = failed.pauses.next().unwrap_or(RETRY_PAUSE_MAX);
        let now = self.scheduler.clock.now();
        let next = self.schedule.when.next_after(now);
        sleep(next.map_or(pause, |next| until(next, now).min(pause))).await;
    }

    fn log_delivered(&self, at: DateTime<Utc>, delivered: DeliveryStatus) {
        let Schedule { name, agent, .. } = &*self.schedule;
        match delivered {
            DeliveryStatus::New => {
                tracing::info!(schedule.name = %name, agent.name = %agent, tick.at = %at, "delivered");
            }
            DeliveryStatus::Duplicate => {
                tracing::debug!(schedule.name = %name, tick.at = %at, "was delivered before");
            }
        }
    }

    fn log_skipped(&self, at: DateTime<Utc>, reason: &str) {
        let Schedule { name, agent, .. } = &*self.schedule;
        tracing::warn!(schedule.name = %name, agent.name = %agent, tick.at = %at, reason, "skipped");
    }
}

fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(RETRY_PAUSE_MIN)
        .with_max_delay(RETRY_PAUSE_MAX)
        .with_factor(2.0)
        .without_max_times()
        .build()
}

fn until(next: DateTime<Utc>, now: DateTime<Utc>) -> Duration {
    next.signed_duration_since(now).to_std().unwrap_or_default()
}
