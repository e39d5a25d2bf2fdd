//! A world whose time is tokio's, which tests pause: a clock that can be set, and an inbox that takes a
//! key once and says no when it is told to.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon_core::port::Clock;
use antiphon_schedule::{
    Deliver, DeliverError, Delivered, Missed, Scheduler, Schedules, Seen, Tick,
};
use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// A clock on the wall.
pub(crate) struct Wall {
    start: Instant,
    shown: Mutex<DateTime<Utc>>,
}

impl Wall {
    /// Somebody sets the clock, or the machine was asleep.
    pub(crate) fn jump(&self, by: TimeDelta) {
        *self.shown.lock().unwrap() += by;
    }
}

impl Clock for Wall {
    fn now(&self) -> DateTime<Utc> {
        *self.shown.lock().unwrap() + self.start.elapsed()
    }
}

/// What an inbox does with a tick, instead of taking it.
#[derive(Debug, Clone)]
pub(crate) enum Mood {
    Fails(DeliverError),
    Silent,
}

#[derive(Default)]
struct Inbox {
    keys: BTreeSet<String>,
    moods: VecDeque<Mood>,
    attempts: Vec<String>,
}

/// Everything around a scheduler. It outlives several of them, as a journal does.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) wall: Arc<Wall>,
    inbox: Arc<Mutex<Inbox>>,
    pub(crate) seen: Seen,
    pub(crate) missed: Missed,
}

impl World {
    /// It is `now`, and nothing has happened.
    pub(crate) fn at(now: &str) -> Self {
        let wall = Wall { start: Instant::now(), shown: Mutex::new(super::time(now)) };
        Self {
            wall: Arc::new(wall),
            inbox: Arc::default(),
            seen: Seen::default(),
            missed: Missed::default(),
        }
    }

    /// The next attempts meet these moods, one each.
    pub(crate) fn moods(&self, moods: impl IntoIterator<Item = Mood>) {
        self.inbox.lock().unwrap().moods.extend(moods);
    }

    pub(crate) fn scheduler(&mut self, schedules: &Schedules) -> Scheduler {
        // As a caller does: whether it is written anywhere makes no difference here.
        let _noted = self.seen.note(schedules, self.wall.now());
        Scheduler {
            schedules: schedules.clone(),
            seen: self.seen.clone(),
            missed: self.missed,
            clock: self.wall.clone(),
            deliver: Arc::new(self.clone()),
        }
    }

    /// Runs schedules for as long as this, as a process that is killed then.
    pub(crate) async fn run(&mut self, schedules: &Schedules, lasting: Duration) {
        let run = self.scheduler(schedules).run(CancellationToken::new());
        let _killed = timeout(lasting, run).await;
    }

    /// What was attempted since the last time somebody asked: `TIME KEY ANSWER`.
    pub(crate) fn attempts(&self) -> Vec<String> {
        std::mem::take(&mut self.inbox.lock().unwrap().attempts)
    }

    fn answer(&self, tick: &Tick) -> Option<Result<Delivered, DeliverError>> {
        let mut inbox = self.inbox.lock().unwrap();
        let answer = match inbox.moods.pop_front() {
            Some(Mood::Silent) => None,
            Some(Mood::Fails(error)) => Some(Err(error)),
            None if inbox.keys.insert(tick.key.clone()) => Some(Ok(Delivered::New)),
            None => Some(Ok(Delivered::Before)),
        };
        let word = match &answer {
            None => "silence".to_owned(),
            Some(Ok(Delivered::New)) => "new".to_owned(),
            Some(Ok(Delivered::Before)) => "before".to_owned(),
            Some(Err(error)) => error.to_string(),
        };
        let now = self.wall.now().to_rfc3339_opts(SecondsFormat::Secs, true);
        inbox.attempts.push(format!("{now} {} {word}", tick.key));
        answer
    }
}

#[async_trait]
impl Deliver for World {
    async fn deliver(&self, tick: Tick) -> Result<Delivered, DeliverError> {
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
