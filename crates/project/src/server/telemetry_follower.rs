//! Metrics and traces of a server, from its journal. Follows the journal from its end at the start until the
//! orchestrator has stopped, then exports the last spans. Only the end of the process waits for it, for a
//! limited time.

use std::num::NonZeroUsize;
use std::time::Duration;

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{Event, Position};
use antiphon_runtime::{Follower, Orchestrator};
use antiphon_telemetry::{EventSource, SourceError, TASKS_OPEN_MAX, Telemetry};
use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::error::ProjectError;

/// Unfinished tasks whose agents are known after a restart, at most.
const UNFINISHED_MAX: NonZeroUsize = NonZeroUsize::new(TASKS_OPEN_MAX).unwrap();

/// How long events are gathered before they are counted, so that a busy journal wakes the follower once for many.
const GATHERED_FOR: Duration = Duration::from_millis(2);

/// How long reading the last events may take.
const CATCH_UP_WAIT: Duration = Duration::from_secs(2);

/// Follows the journal for metrics and traces. The caller ends it with [`TelemetryFollower::shutdown`].
pub struct TelemetryFollower {
    orchestrator: Orchestrator,
    /// The last position of the journal, once nothing more is appended.
    last: watch::Sender<Option<Position>>,
    follow_stop: CancellationToken,
    follower: JoinSet<()>,
    export_stop: CancellationToken,
    exporter: JoinSet<()>,
}

impl TelemetryFollower {
    /// Starts behind the current end of the journal. Tasks that are unfinished then keep the names of their agents.
    pub async fn start(
        orchestrator: &Orchestrator,
        telemetry: &Telemetry,
    ) -> Result<Self, ProjectError> {
        let after = orchestrator.head().await?;
        let query = TaskQuery { which: TaskSelector::Unfinished, limit: UNFINISHED_MAX };
        for task in orchestrator.tasks(query).await? {
            telemetry.metrics.resume(&task);
        }
        let (last, last_receiver) = watch::channel(None);
        let telemetry_follower = Self {
            orchestrator: orchestrator.clone(),
            last,
            follow_stop: CancellationToken::new(),
            follower: JoinSet::new(),
            export_stop: CancellationToken::new(),
            exporter: JoinSet::new(),
        };
        Ok(telemetry_follower.spawn(telemetry, after, last_receiver))
    }

    fn spawn(
        mut self,
        telemetry: &Telemetry,
        after: Position,
        last: watch::Receiver<Option<Position>>,
    ) -> Self {
        let events = JournalEvents::new(&self.orchestrator, after, last);
        let (all, stop) = (telemetry.clone(), self.follow_stop.clone());
        self.follower.spawn(async move {
            all.follow(events, after, stop).await;
        });
        if let Some(exporter) = telemetry.exporter.clone() {
            let stop = self.export_stop.clone();
            self.exporter.spawn(async move {
                exporter.run(stop).await;
            });
        }
        self
    }

    /// Reads the last events, then exports the remaining spans. Call it after the orchestrator has stopped.
    pub async fn shutdown(mut self) {
        match self.orchestrator.head().await {
            Ok(head) => drop(self.last.send_replace(Some(head))),
            Err(error) => {
                tracing::warn!(%error, "the last events are not counted");
                self.follow_stop.cancel();
            }
        }
        let seen = async { while self.follower.join_next().await.is_some() {} };
        if tokio::time::timeout(CATCH_UP_WAIT, seen).await.is_err() {
            tracing::warn!("the last events were not counted in time");
            self.follow_stop.cancel();
            while self.follower.join_next().await.is_some() {}
        }
        self.export_stop.cancel();
        while self.exporter.join_next().await.is_some() {}
    }
}

/// The events of the journal up to its last position.
pub(crate) struct JournalEvents {
    follower: Follower,
    last: watch::Receiver<Option<Position>>,
    /// Whether it has returned an event since it gathered some.
    has_counted: bool,
}

impl JournalEvents {
    /// The events behind `after`, up to `last` once that is known.
    pub(crate) fn new(
        orchestrator: &Orchestrator,
        after: Position,
        last: watch::Receiver<Option<Position>>,
    ) -> Self {
        Self { follower: orchestrator.follow(None, after), last, has_counted: false }
    }
}

#[async_trait]
impl EventSource for JournalEvents {
    async fn next(&mut self) -> Result<Event, SourceError> {
        loop {
            let seen = self.follower.position();
            let last = *self.last.borrow_and_update();
            if last.is_some_and(|last| seen >= last) {
                return Err(SourceError::Ended);
            }
            if last.is_none() && self.has_counted && !self.follower.has_more() {
                tokio::select! {
                    () = tokio::time::sleep(GATHERED_FOR) => {}
                    _ = self.last.changed() => {}
                }
                self.has_counted = false;
                continue;
            }
            tokio::select! {
                event = self.follower.next() => {
                    let unavailable =
                        |error: antiphon_core::port::JournalError| SourceError::Unavailable {
                            reason: error.to_string(),
                        };
                    self.has_counted = true;
                    return event.map_err(unavailable);
                }
                changed = self.last.changed() => {
                    if changed.is_err() {
                        return Err(SourceError::Ended);
                    }
                }
            }
        }
    }
}
