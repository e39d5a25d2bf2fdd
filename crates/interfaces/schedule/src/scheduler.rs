//! Waits for ticks and hands them over, each schedule for itself: one that cannot be delivered holds up
//! no other.
//!
//! Time is the wall clock's. It is looked at again and again, because a timer neither notices that the
//! machine slept nor that somebody set the clock.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::Clock;
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::deliver::{Deliver, DeliverError, Delivered};
use crate::schedule::Schedule;
use crate::schedules::Schedules;
use crate::seen::Seen;
use crate::step::{Missed, Step, decide};
use crate::tick::Tick;

/// How long the wall clock is not looked at, at most.
pub const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How long an inbox may take to answer.
pub const DELIVER_WAIT_MAX: Duration = Duration::from_secs(60);

/// The pause behind the first attempt that failed. Each that follows is twice as long.
pub const RETRY_PAUSE_MIN: Duration = Duration::from_secs(1);

/// The longest pause.
pub const RETRY_PAUSE_MAX: Duration = LOOK_EVERY;

/// Runs schedules.
pub struct Scheduler {
    /// Which.
    pub schedules: Schedules,
    /// Since when they count. One that was not noted counts from now.
    pub seen: Seen,
    /// What becomes of missed ticks.
    pub missed: Missed,
    /// The clock on the wall. It may jump.
    pub clock: Arc<dyn Clock>,
    /// Where ticks go.
    pub deliver: Arc<dyn Deliver>,
}

impl Scheduler {
    /// Runs until `stop` is canceled, or until no schedule has a tick left. Nothing is spawned. A
    /// delivery that is under way is dropped then: its tick is one that was missed, and is delivered
    /// again by the next run.
    pub async fn run(self, stop: CancellationToken) {
        let start = self.clock.now();
        let all = join_all(self.schedules.iter().map(|schedule| {
            let watch = Watch {
                schedule: Arc::clone(schedule),
                world: &self,
                after: self.seen.since(schedule).unwrap_or(start),
                failing: None,
            };
            watch.run()
        }));
        stop.run_until_cancelled(all).await;
    }
}

/// One schedule at work.
struct Watch<'a> {
    schedule: Arc<Schedule>,
    world: &'a Scheduler,
    /// Everything up to here is over.
    after: DateTime<Utc>,
    failing: Option<Failing>,
}

/// A tick that could not be delivered yet.
struct Failing {
    at: DateTime<Utc>,
    pauses: ExponentialBackoff,
}

impl Watch<'_> {
    async fn run(mut self) {
        loop {
            let now = self.world.clock.now();
            // A clock that was set back tells times again: the ticks in them have keys that were taken.
            self.after = self.after.min(now);
            match decide(&self.schedule.when, self.after, now, self.world.missed) {
                Step::Deliver(at) => self.attempt(at).await,
                Step::Leave(at) => {
                    // Perhaps it was delivered in its time: nobody is warned.
                    tracing::debug!(schedule.name = %self.schedule.name, tick.at = %at, "is too old");
                    self.over(at);
                }
                Step::Wait(next) => sleep(until(next, now).min(LOOK_EVERY)).await,
                Step::End => {
                    tracing::info!(schedule.name = %self.schedule.name, "has no ticks any more");
                    return;
                }
            }
        }
    }

    async fn attempt(&mut self, at: DateTime<Utc>) {
        if let Some(failing) = self.failing.take_if(|failing| failing.at != at) {
            self.log_left_out(failing.at, "the next one is due");
        }
        let tick = Tick::new(Arc::clone(&self.schedule), at);
        let delivery = timeout(DELIVER_WAIT_MAX, self.world.deliver.deliver(tick));
        let answer = delivery.await.unwrap_or_else(|_| {
            let reason = format!("no answer within {} s", DELIVER_WAIT_MAX.as_secs());
            Err(DeliverError::Unavailable { reason })
        });
        match answer {
            Ok(delivered) => {
                self.log_delivered(at, delivered);
                self.over(at);
            }
            Err(DeliverError::Refused { reason }) => {
                self.log_left_out(at, &reason);
                self.over(at);
            }
            Err(DeliverError::Unavailable { reason }) => self.pause(at, &reason).await,
        }
    }

    fn over(&mut self, at: DateTime<Utc>) {
        self.after = at;
        self.failing = None;
    }

    /// Until it is worth another attempt, or the next tick is due.
    async fn pause(&mut self, at: DateTime<Utc>, reason: &str) {
        let name = &self.schedule.name;
        if self.failing.is_none() {
            tracing::warn!(schedule.name = %name, tick.at = %at, reason, "is tried again");
        } else {
            tracing::debug!(schedule.name = %name, tick.at = %at, reason, "is tried again");
        }
        let failing = self.failing.get_or_insert_with(|| Failing { at, pauses: pauses() });
        let pause = failing.pauses.next().unwrap_or(RETRY_PAUSE_MAX);
        let now = self.world.clock.now();
        let next = self.schedule.when.next_after(now);
        sleep(next.map_or(pause, |next| until(next, now).min(pause))).await;
    }

    fn log_delivered(&self, at: DateTime<Utc>, delivered: Delivered) {
        let Schedule { name, agent, .. } = &*self.schedule;
        match delivered {
            Delivered::New => {
                tracing::info!(schedule.name = %name, agent.name = %agent, tick.at = %at, "delivered");
            }
            Delivered::Before => {
                tracing::debug!(schedule.name = %name, tick.at = %at, "had been delivered before");
            }
        }
    }

    fn log_left_out(&self, at: DateTime<Utc>, reason: &str) {
        let Schedule { name, agent, .. } = &*self.schedule;
        tracing::warn!(schedule.name = %name, agent.name = %agent, tick.at = %at, reason, "is left out");
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
