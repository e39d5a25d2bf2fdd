//! A test world on tokio's paused time: a wall clock that can be set, and an inbox that accepts a
//! key once and fails when the test asks for it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon_core::port::Clock;
use antiphon_project::schedules::Schedules;
use antiphon_schedule::{
    Deliver, DeliverError, DeliveryStatus, MissedPolicy, ScheduleHistory, Scheduler, Tick,
};
use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// A wall clock that tests can set.
pub(crate) struct WallClock {
    start: Instant,
    shown: Mutex<DateTime<Utc>>,
}

impl WallClock {
    /// The clock is set, or the machine slept.
    pub(crate) fn jump(&self, by: TimeDelta) {
        *self.shown.lock().unwrap() += by;
    }
}

impl Clock for WallClock {
    fn now(&self) -> DateTime<Utc> {
        *self.shown.lock().unwrap() + self.start.elapsed()
    }
}

/// What the inbox does with a tick instead of accepting it.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Fails(DeliverError),
    Silent,
}

#[derive(Default)]
struct Inbox {
    keys: BTreeSet<String>,
    replies: VecDeque<Reply>,
    attempts: Vec<String>,
}

/// The clock, the inbox and the history. It outlives several schedulers, as a journal does.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) clock: Arc<WallClock>,
    inbox: Arc<Mutex<Inbox>>,
    pub(crate) history: ScheduleHistory,
    pub(crate) missed: MissedPolicy,
}

impl World {
    /// A world at `now` without any attempt.
    pub(crate) fn at(now: &str) -> Self {
        let clock = WallClock { start: Instant::now(), shown: Mutex::new(super::time(now)) };
        Self {
            clock: Arc::new(clock),
            inbox: Arc::default(),
            history: ScheduleHistory::default(),
            missed: MissedPolicy::default(),
        }
    }

    /// The next attempts get these responses, one each.
    pub(crate) fn replies(&self, replies: impl IntoIterator<Item = Reply>) {
        self.inbox.lock().unwrap().replies.extend(replies);
    }

    pub(crate) fn scheduler(&mut self, schedules: &Schedules) -> Scheduler {
        // As a caller does; storing it makes no difference here.
        let _change = self.history.update(schedules, self.clock.now());
        Scheduler {
            schedules: schedules.clone(),
            history: self.history.clone(),
            missed: self.missed,
            clock: self.clock.clone(),
            deliver: Arc::new(self.clone()),
        }
    }

    /// Runs schedules for this long, like a process that is then killed.
    pub(crate) async fn run(&mut self, schedules: &Schedules, lasting: Duration) {
        let run = self.scheduler(schedules).run(CancellationToken::new());
        let _killed = timeout(lasting, run).await;
    }

    /// Attempts since the last call: `TIME KEY ANSWER`.
    pub(crate) fn attempts(&self) -> Vec<String> {
        std::mem::take(&mut self.inbox.lock().unwrap().attempts)
    }

    fn answer(&self, tick: &Tick) -> Option<Result<DeliveryStatus, DeliverError>> {
        let mut inbox = self.inbox.lock().unwrap();
        let answer = match inbox.replies.pop_front() {
            Some(Reply::Silent) => None,
            Some(Reply::Fails(error)) => Some(Err(error)),
            None if inbox.keys.insert(tick.key.clone()) => Some(Ok(DeliveryStatus::New)),
            None => Some(Ok(DeliveryStatus::Duplicate)),
        };
        let word = match &answer {
            None => "silence".to_owned(),
            Some(Ok(DeliveryStatus::New)) => "new".to_owned(),
            Some(Ok(DeliveryStatus::Duplicate)) => "before".to_owned(),
            Some(Err(error)) => error.to_string(),
        };
        let now = self.clock.now().to_rfc3339_opts(SecondsFormat::Secs, true);
        inbox.attempts.push(format!("{now} {} {word}", tick.key));
        answer
    }
}

#[async_trait]
impl Deliver for World {
    async fn deliver(&self, tick: Tick) -> Result<DeliveryStatus, DeliverError> {
        match self.answer(&tick) {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

pub(crate) fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

pub(crate) fn hours(hours: u64) -> Duration {
    minutes(60 * hours)
}
