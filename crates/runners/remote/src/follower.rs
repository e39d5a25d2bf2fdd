//! Follows a remote task and appends its events to the local one.
//!
//! The local journal holds all progress: after an interruption the next follower continues after the last
//! `relayed` event.

use std::sync::Arc;
use std::time::Duration;

use antiphon_client::{ClientError, RetryPolicy};
use antiphon_core::port::{
    Append, Clock, Expected, JournalError, RunnerError, SystemClock, TaskJournal, TaskUpdates,
};
use antiphon_core::{Cancel, Event, EventBody, Relayed, Seq, TaskId, TaskSummary, visible};
use antiphon_followed_task::{ControlCommand, LocalTask, add_mark};
use backon::ExponentialBackoff;
use tokio::time::MissedTickBehavior;

use crate::peer::{Peer, PeerFailure};
use crate::relay::{is_creation, local_event, waits_for_resume};
use crate::task_request::{PeerConfig, RunLimits, create_task};

/// How often the follower looks at the tasks below a remote task.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// How long the peer may take to list them.
const LOOK_WAIT: Duration = Duration::from_secs(5);

/// Tasks below one remote task that are listed here, at most. Further ones are listed at the peer only.
const CHILDREN_MAX: usize = 1000;

/// Characters of a title or a preview of a peer, at most.
const LINE_CHARS_MAX: usize = 200;

/// Follows a remote task.
pub(crate) struct Follower<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) config: PeerConfig,
    pub(crate) retry: RetryPolicy,
    /// Pauses that are left until the next append.
    pub(crate) waits: ExponentialBackoff,
    pub(crate) local: LocalTask,
    pub(crate) limits: RunLimits,
    pub(crate) journal: Arc<dyn TaskJournal>,
    pub(crate) cancel: Cancel,
    /// The cancel is forwarded.
    pub(crate) canceled: bool,
    pub(crate) interrupt: Cancel,
    /// The interrupt is forwarded: the follower ends when the remote task waits for a resume.
    pub(crate) interrupted: bool,
    pub(crate) has_children: ChildrenAtPeer,
    /// Tells of commands that arrived here.
    pub(crate) updates: Box<dyn TaskUpdates>,
}

/// Whether the remote task has dispatched tasks at the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildrenAtPeer {
    /// It may have done so before this follower.
    Unknown,
    None,
    Some,
}

/// Why following stops.
enum Stop {
    /// The task has ended, is paused here, or was interrupted.
    Done,
    /// The peer did not do what it was asked.
    Peer(PeerFailure),
    /// The local journal failed, or the task cannot be sent.
    Local(RunnerError),
}

impl From<PeerFailure> for Stop {
    fn from(failure: PeerFailure) -> Self {
        Self::Peer(failure)
    }
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        Self::Peer(error.into())
    }
}

impl From<RunnerError> for Stop {
    fn from(error: RunnerError) -> Self {
        Self::Local(error)
    }
}

impl From<JournalError> for Stop {
    fn from(error: JournalError) -> Self {
        Self::Local(error.into())
    }
}

/// How far the follower has read the remote task.
struct Progress {
    task_id: TaskId,
    seq: Seq,
    /// Its work has begun: further events are not part of its creation.
    at_work: bool,
}

impl Follower<'_> {
    pub(crate) async fn run(mut self) -> Result<(), RunnerError> {
        loop {
            let Err(stop) = self.attempt().await;
            let reason = match stop {
                Stop::Done => return Ok(()),
                Stop::Local(error) => return Err(error),
                Stop::Peer(PeerFailure::Refused(reason)) => {
                    let reason = format!("the peer `{}`: {reason}", self.peer.name);
                    return Err(RunnerError::Refused { reason });
                }
                Stop::Peer(PeerFailure::Unreachable(reason)) => reason,
            };
            let reason = format!("the peer `{}`: {reason}", self.peer.name);
            let Some(wait) = self.waits.next() else {
                return Err(RunnerError::Unavailable { reason });
            };
            tracing::debug!(task.id = %self.local.task_id, reason, "tries the peer again");
            // A new cancellation is worth a try at once.
            let was_canceled = is_ready(&mut self.cancel);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = &mut self.cancel, if !was_canceled => {}
            }
        }
    }

    /// Follows as long as the connection lasts.
    async fn attempt(&mut self) -> Result<std::convert::Infallible, Stop> {
        if self.local.ended && self.local.relayed.is_none() {
            return Err(Stop::Done);
        }
        let task_id = self.create().await?;
        self.forward(&task_id).await?;
        if self.local.relayed.is_none() && self.has_children == ChildrenAtPeer::Unknown {
            self.has_children = ChildrenAtPeer::None;
        }
        let relayed = self.local.relayed.as_ref();
        let seq = relayed.map_or(Seq(0), |relayed| relayed.seq);
        let mut progress = Progress { task_id, seq, at_work: relayed.is_some() };
        self.end_wait(&progress).await?;
        let mut events = self.peer.events(&progress.task_id, progress.seq);
        let mut look = tokio::time::interval(LOOK_AFTER);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = look.tick(), if self.has_children != ChildrenAtPeer::None && progress.at_work => {
                    let tasks = self.changed_children(&progress.task_id).await;
                    self.append(Vec::new(), tasks, &progress).await?;
                }
                () = &mut self.cancel, if !self.canceled => {
                    self.peer.cancel(&progress.task_id).await?;
                    self.canceled = true;
                }
                () = &mut self.interrupt, if !self.interrupted => {
                    self.peer.control(&progress.task_id, ControlCommand::Interrupt).await?;
                    self.interrupted = true;
                    self.end_if_at_rest()?;
                }
                () = self.updates.next() => self.catch_up(&progress.task_id).await?,
                batch = events.next_batch() => {
                    let batch = batch?;
                    if batch.is_empty() {
                        let reason = "the task has ended there, and here it has not";
                        return Err(PeerFailure::Refused(reason.to_owned()).into());
                    }
                    self.relay(batch, &mut progress).await?;
                }
            }
        }
    }

    /// Id of the remote task. Creates it, once, if the local journal does not name it.
    async fn create(&mut self) -> Result<TaskId, Stop> {
        if let Some(relayed) = &self.local.relayed {
            return Ok(relayed.task_id.clone());
        }
        let messages = self.local.history(&*self.journal).await?;
        let task = create_task(&self.config, &self.local.created, self.limits, &messages);
        let task = task.map_err(|reason| RunnerError::Refused { reason })?;
        Ok(self.peer.create(&self.local.task_id, &task).await?)
    }

    /// Ends the wait for the peer, which may have no new event. A task that the peer has just created has one.
    async fn end_wait(&mut self, progress: &Progress) -> Result<(), Stop> {
        if !progress.at_work || !self.local.waits_for_peer() {
            return Ok(());
        }
        self.peer.look(&progress.task_id).await?;
        let before = self.local.status_before_wait.clone();
        self.append(vec![before.into()], Vec::new(), progress).await
    }

    /// Forwards the commands that arrived here. A task that ended here is canceled there. The follower of
    /// a task that is paused here ends.
    async fn forward(&mut self, task_id: &TaskId) -> Result<(), Stop> {
        if self.local.ended {
            self.peer.cancel(task_id).await?;
            return Err(Stop::Done);
        }
        let mut paused = false;
        for command in &self.local.commands {
            self.peer.control(task_id, *command).await?;
            paused = matches!(command, ControlCommand::Pause | ControlCommand::Interrupt);
        }
        if paused && !self.canceled && !is_ready(&mut self.cancel) {
            return Err(Stop::Done);
        }
        self.local.commands.clear();
        Ok(())
    }

    /// Appends remote events to the local task.
    async fn relay(&mut self, events: Vec<Event>, progress: &mut Progress) -> Result<(), Stop> {
        let mut bodies = Vec::new();
        if events.iter().any(|event| matches!(event.body, EventBody::Dispatched(_))) {
            self.has_children = ChildrenAtPeer::Some;
        }
        for event in events {
            if event.task_id != progress.task_id {
                return Err(
                    PeerFailure::Refused("it sent an event of another task".to_owned()).into()
                );
            }
            if event.seq <= progress.seq {
                continue;
            }
            if event.seq.0 != progress.seq.0 + 1 {
                return Err(PeerFailure::Unreachable("it skipped an event".to_owned()).into());
            }
            progress.seq = event.seq;
            progress.at_work |= !is_creation(&event.body);
            if progress.at_work {
                // The interrupt came from here: a resume here ends this wait.
                let is_own_wait = self.interrupted && waits_for_resume(&event.body);
                bodies.extend(if is_own_wait {
                    Some(event.body)
                } else {
                    local_event(event.body, &self.peer.name, &progress.task_id)
                });
            }
        }
        // The tree here ends as it did there.
        let ends = bodies.last().is_some_and(EventBody::ends_task);
        let tasks = match self.has_children {
            ChildrenAtPeer::Some | ChildrenAtPeer::Unknown if ends => {
                self.changed_children(&progress.task_id).await
            }
            ChildrenAtPeer::Some | ChildrenAtPeer::Unknown | ChildrenAtPeer::None => Vec::new(),
        };
        self.append(bodies, tasks, progress).await?;
        self.end_if_at_rest()
    }

    /// Ends following when the task has ended, or was interrupted and waits for a person.
    fn end_if_at_rest(&self) -> Result<(), Stop> {
        let rests = self.interrupted && self.local.waits_for_resume();
        if self.local.ended || rests { Err(Stop::Done) } else { Ok(()) }
    }

    /// Tasks below the remote task that are new or have changed. None when the peer does not answer: the next look
    /// finds them.
    async fn changed_children(&mut self, task_id: &TaskId) -> Vec<TaskSummary> {
        let below = tokio::time::timeout(LOOK_WAIT, self.peer.below(task_id)).await;
        let Ok(Ok(below)) = below else { return Vec::new() };
        if self.has_children == ChildrenAtPeer::Unknown && below.is_empty() {
            self.has_children = ChildrenAtPeer::None;
        }
        let listed = below.into_iter().take(CHILDREN_MAX).map(shown);
        listed.filter(|task| self.local.peer_tasks.get(&task.task_id) != Some(task)).collect()
    }

    /// Appends events with the mark of the last remote one. When another writer was faster, its commands
    /// are forwarded first.
    async fn append(
        &mut self,
        mut events: Vec<EventBody>,
        tasks: Vec<TaskSummary>,
        progress: &Progress,
    ) -> Result<(), Stop> {
        if events.is_empty() && tasks.is_empty() {
            return Ok(());
        }
        let mark = Relayed { task_id: progress.task_id.clone(), seq: progress.seq, tasks };
        add_mark(&mut events, Some(mark));
        loop {
            let append = Append {
                task_id: self.local.task_id.clone(),
                expected: Expected::At(self.local.seq),
                at: SystemClock.now(),
                events: events.clone(),
                key: None,
            };
            match self.journal.append(append).await {
                Ok(appended) => {
                    self.local.appended(&events, &appended);
                    self.waits = self.retry.waits();
                    return Ok(());
                }
                Err(JournalError::Stale { .. } | JournalError::Ended { .. }) => {
                    self.catch_up(&progress.task_id).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads what other writers appended here. If another follower of the same task got further, this one
    /// starts over.
    async fn catch_up(&mut self, task_id: &TaskId) -> Result<(), Stop> {
        let before = self.local.relayed.clone();
        self.local.catch_up(&*self.journal).await?;
        if self.local.relayed != before {
            return Err(PeerFailure::Unreachable(
                "another follower of the same task is ahead".to_owned(),
            )
            .into());
        }
        self.forward(task_id).await
    }
}

/// A task as it is listed here: a peer's text is not longer than ours, and has no control characters.
fn shown(task: TaskSummary) -> TaskSummary {
    let line = |text: &str| visible(text).chars().take(LINE_CHARS_MAX).collect::<String>();
    TaskSummary {
        agent: line(&task.agent),
        title: line(&task.title),
        preview: task.preview.as_deref().map(line),
        ..task
    }
}

/// Whether the task is canceled.
fn is_ready(cancel: &mut Cancel) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    std::pin::Pin::new(cancel).poll(&mut context).is_ready()
}
