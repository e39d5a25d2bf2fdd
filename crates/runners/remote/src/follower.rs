//! Follows a task there and writes down here what happens.
//!
//! Everything it knows of how far it got is in our journal: cut off anywhere, the next one goes on
//! behind the last `relayed`.

use std::sync::Arc;

use antiphon_core::port::{
    Append, Clock, Expected, JournalError, RunnerError, SystemClock, TaskJournal,
};
use antiphon_core::{Cancel, Event, EventBody, Relayed, Seq, TaskId};
use backon::ExponentialBackoff;

use crate::answer::Failure;
use crate::loopback::Persistence;
use crate::orders::Order;
use crate::ours::Ours;
use crate::peer::Peer;
use crate::relay::{is_beginning, relayed};
use crate::request::{Config, Room, TaskRequest};

/// Follows a task there.
pub(crate) struct Follower<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) config: Config,
    pub(crate) persistence: Persistence,
    /// What is left of our patience.
    pub(crate) waits: ExponentialBackoff,
    pub(crate) ours: Ours,
    pub(crate) room: Room,
    pub(crate) journal: Arc<dyn TaskJournal>,
    pub(crate) cancel: Cancel,
    /// The peer has been told.
    pub(crate) canceled: bool,
}

/// Why following stops.
enum Stop {
    /// The task has ended, or waits for somebody here.
    Left,
    /// The peer did not do as asked.
    Failed(Failure),
    /// We cannot go on.
    Broken(RunnerError),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<RunnerError> for Stop {
    fn from(error: RunnerError) -> Self {
        Self::Broken(error)
    }
}

impl From<JournalError> for Stop {
    fn from(error: JournalError) -> Self {
        Self::Broken(error.into())
    }
}

/// How far a task there has been heard.
struct Heard {
    task_id: TaskId,
    seq: Seq,
    /// Its work has begun: what comes is no longer what we sent.
    at_work: bool,
}

impl Follower<'_> {
    pub(crate) async fn run(mut self) -> Result<(), RunnerError> {
        loop {
            let Err(stop) = self.attempt().await;
            let reason = match stop {
                Stop::Left => return Ok(()),
                Stop::Broken(error) => return Err(error),
                Stop::Failed(Failure::Refused(reason) | Failure::Conflict(reason)) => {
                    let reason = format!("the peer `{}`: {reason}", self.peer.name);
                    return Err(RunnerError::Refused { reason });
                }
                Stop::Failed(Failure::Lost(reason)) => reason,
            };
            let reason = format!("the peer `{}`: {reason}", self.peer.name);
            let Some(wait) = self.waits.next() else {
                return Err(RunnerError::Unavailable { reason });
            };
            tracing::debug!(task.id = %self.ours.task_id, reason, "asks the peer again");
            tokio::time::sleep(wait).await;
        }
    }

    /// Follows as long as the connection lasts.
    async fn attempt(&mut self) -> Result<std::convert::Infallible, Stop> {
        if self.ours.ended && self.ours.relayed.is_none() {
            return Err(Stop::Left);
        }
        let task_id = self.begin().await?;
        self.pass_on(&task_id).await?;
        let relayed = self.ours.relayed.as_ref();
        let seq = relayed.map_or(Seq(0), |relayed| relayed.seq);
        let mut heard = Heard { task_id, seq, at_work: relayed.is_some() };
        let mut events = self.peer.events(&heard.task_id, heard.seq).await?;
        loop {
            tokio::select! {
                () = &mut self.cancel, if !self.canceled => {
                    self.peer.cancel(&heard.task_id).await?;
                    self.canceled = true;
                }
                next = events.next() => {
                    let next = next?;
                    if next.is_empty() {
                        return Err(Failure::Lost("it hung up".to_owned()).into());
                    }
                    self.take(next, &mut heard).await?;
                }
            }
        }
    }

    /// The task there: the one we know of, or the one that is begun now, once.
    async fn begin(&mut self) -> Result<TaskId, Stop> {
        if let Some(relayed) = &self.ours.relayed {
            return Ok(relayed.task_id.clone());
        }
        let said = self.ours.said(&*self.journal).await?;
        let task = TaskRequest::new(&self.config, &self.ours.created, self.room, &said);
        let task = task.map_err(|reason| RunnerError::Refused { reason })?;
        Ok(self.peer.begin(&self.ours.task_id, &task).await?)
    }

    /// Tells the peer what was said here. A task that ended here ends there; one that rests here
    /// is left until somebody lets it go on.
    async fn pass_on(&mut self, task_id: &TaskId) -> Result<(), Stop> {
        if self.ours.ended {
            self.peer.cancel(task_id).await?;
            return Err(Stop::Left);
        }
        let mut rests = false;
        for order in &self.ours.orders {
            self.peer.order(task_id, *order).await?;
            rests = *order == Order::Pause;
        }
        if rests && !self.canceled && !is_ready(&mut self.cancel) {
            return Err(Stop::Left);
        }
        self.ours.orders.clear();
        Ok(())
    }

    /// Writes down what was heard.
    async fn take(&mut self, events: Vec<Event>, heard: &mut Heard) -> Result<(), Stop> {
        let mut bodies = Vec::new();
        for event in events {
            if event.task_id != heard.task_id {
                return Err(Failure::Refused("it tells of another task".to_owned()).into());
            }
            if event.seq <= heard.seq {
                continue;
            }
            if event.seq.0 != heard.seq.0 + 1 {
                return Err(Failure::Lost("it left something out".to_owned()).into());
            }
            heard.seq = event.seq;
            heard.at_work |= !is_beginning(&event.body);
            if heard.at_work {
                bodies.extend(relayed(event.body, &self.peer.name, &heard.task_id));
            }
        }
        self.write(bodies, heard).await?;
        if self.ours.ended { Err(Stop::Left) } else { Ok(()) }
    }

    /// Appends what happened, and how far that is. When another writer was first, what they said
    /// is passed on first.
    async fn write(&mut self, mut events: Vec<EventBody>, heard: &Heard) -> Result<(), Stop> {
        if events.is_empty() {
            return Ok(());
        }
        let mark = Relayed { task_id: heard.task_id.clone(), seq: heard.seq };
        // Nothing follows an end: what is written with it goes before it.
        let ends = events.last().is_some_and(EventBody::ends_task);
        events.insert(events.len() - usize::from(ends), mark.into());
        loop {
            let append = Append {
                task_id: self.ours.task_id.clone(),
                expected: Expected::At(self.ours.seq),
                at: SystemClock.now(),
                events: events.clone(),
                key: None,
            };
            match self.journal.append(append).await {
                Ok(appended) => {
                    self.ours.wrote(&events, &appended);
                    self.waits = self.persistence.waits();
                    return Ok(());
                }
                Err(JournalError::Stale { .. } | JournalError::Ended { .. }) => {
                    self.meet(&heard.task_id).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads what others wrote here. Somebody who follows the same task got further: we start over.
    async fn meet(&mut self, task_id: &TaskId) -> Result<(), Stop> {
        let before = self.ours.relayed.clone();
        self.ours.catch_up(&*self.journal).await?;
        if self.ours.relayed != before {
            return Err(Failure::Lost("somebody else follows the same task".to_owned()).into());
        }
        self.pass_on(task_id).await
    }
}

/// Whether it has fired.
fn is_ready(cancel: &mut Cancel) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    std::pin::Pin::new(cancel).poll(&mut context).is_ready()
}
