//! Counts and traces what a server does, by following its journal. It begins where the journal ends at
//! the start, sees everything that is written until the orchestrator rests, and then lets the last spans
//! be sent. Nothing waits for it but the end of the program, and that not for long.

use std::time::Duration;

use antiphon_core::{Event, Position};
use antiphon_runtime::{Follower, Orchestrator};
use antiphon_telemetry::{EventSource, SourceError, Telemetry};
use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

/// How long the last events may take to be seen.
const CATCH_UP_WAIT: Duration = Duration::from_secs(2);

/// Somebody who counts and traces.
pub(super) struct Watching {
    orchestrator: Orchestrator,
    /// How far the journal goes, once it goes no further.
    last: watch::Sender<Option<Position>>,
    follow_stop: CancellationToken,
    following: JoinSet<()>,
    export_stop: CancellationToken,
    exporting: JoinSet<()>,
}

impl Watching {
    /// Begins behind what is in the journal now.
    pub(super) async fn begin(
        orchestrator: &Orchestrator,
        telemetry: &Telemetry,
    ) -> Result<Self, Failure> {
        let after = orchestrator.head().await?;
        let (last, told) = watch::channel(None);
        let watching = Self {
            orchestrator: orchestrator.clone(),
            last,
            follow_stop: CancellationToken::new(),
            following: JoinSet::new(),
            export_stop: CancellationToken::new(),
            exporting: JoinSet::new(),
        };
        Ok(watching.spawn(telemetry, after, told))
    }

    fn spawn(
        mut self,
        telemetry: &Telemetry,
        after: Position,
        last: watch::Receiver<Option<Position>>,
    ) -> Self {
        let pages = Pages { follower: self.orchestrator.follow(None, after), last };
        let (all, stop) = (telemetry.clone(), self.follow_stop.clone());
        self.following.spawn(async move {
            all.follow(pages, after, stop).await;
        });
        if let Some(exporter) = telemetry.exporter.clone() {
            let stop = self.export_stop.clone();
            self.exporting.spawn(async move {
                exporter.run(stop).await;
            });
        }
        self
    }

    /// Sees what was written last, then sends what is left. Call it when the orchestrator rests.
    pub(super) async fn end(mut self) {
        match self.orchestrator.head().await {
            Ok(head) => drop(self.last.send_replace(Some(head))),
            Err(error) => {
                tracing::warn!(%error, "the last events are not counted");
                self.follow_stop.cancel();
            }
        }
        let seen = async { while self.following.join_next().await.is_some() {} };
        if tokio::time::timeout(CATCH_UP_WAIT, seen).await.is_err() {
            tracing::warn!("there was no time to count the last events");
            self.follow_stop.cancel();
            while self.following.join_next().await.is_some() {}
        }
        self.export_stop.cancel();
        while self.exporting.join_next().await.is_some() {}
    }
}

/// The journal, page by page, until it goes no further.
struct Pages {
    follower: Follower,
    last: watch::Receiver<Option<Position>>,
}

#[async_trait]
impl EventSource for Pages {
    async fn next(&mut self) -> Result<Event, SourceError> {
        loop {
            let seen = self.follower.position();
            if self.last.borrow_and_update().is_some_and(|last| seen >= last) {
                return Err(SourceError::Ended);
            }
            tokio::select! {
                event = self.follower.next() => {
                    let unavailable =
                        |error: antiphon_core::port::JournalError| SourceError::Unavailable {
                            reason: error.to_string(),
                        };
                    return event.map_err(unavailable);
                }
                told = self.last.changed() => {
                    if told.is_err() {
                        return Err(SourceError::Ended);
                    }
                }
            }
        }
    }
}
