//! Follows the journal and lets metrics and traces see every event once, in order.

use std::time::Duration;

use antiphon_core::{Event, Position};
use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::exporter::Exporter;
use crate::metrics::Metrics;
use crate::traces::Traces;

/// The pause behind the first read that failed. Each that follows is twice as long.
pub const READ_PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause.
pub const READ_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Where events come from, one after the other.
#[async_trait]
pub trait EventSource: Send {
    /// The next event in the order of positions; waits for it if need be. One that was dropped or that
    /// failed has taken nothing: the same event comes next time.
    async fn next(&mut self) -> Result<Event, SourceError>;
}

/// There is no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// And there will be none: stop.
    #[error("there are no more events")]
    Ended,
    /// Not now: try again.
    #[error("the journal cannot be read: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
}

/// Those who see events.
#[derive(Debug, Clone)]
pub struct Telemetry {
    /// Counts.
    pub metrics: Metrics,
    /// Makes spans.
    pub traces: Traces,
    /// Sends them. Without it there is nobody to tell, and no spans are made.
    pub exporter: Option<Exporter>,
}

impl Telemetry {
    /// Lets everybody see one event.
    pub fn observe(&self, event: &Event) {
        self.metrics.observe(event);
        if let Some(exporter) = &self.exporter {
            exporter.push(self.traces.observe(event));
        }
    }

    /// The metrics, with what became of the spans, as
    /// [`METRICS_CONTENT_TYPE`](crate::METRICS_CONTENT_TYPE).
    pub fn render(&self) -> String {
        if let Some(exporter) = &self.exporter {
            self.metrics.exported(exporter.counts());
        }
        self.metrics.render()
    }

    /// Follows events behind `after` until `stop` is canceled or there are no more. A source that
    /// fails is asked again, with growing pauses. Says how far it got. Nothing is spawned.
    pub async fn follow(
        &self,
        mut source: impl EventSource,
        after: Position,
        stop: CancellationToken,
    ) -> Position {
        let mut last = after;
        stop.run_until_cancelled(async {
            let mut failing: Option<ExponentialBackoff> = None;
            loop {
                match source.next().await {
                    Ok(event) => {
                        failing = None;
                        if event.position > last {
                            last = event.position;
                            self.observe(&event);
                        }
                    }
                    Err(SourceError::Ended) => return,
                    Err(SourceError::Unavailable { reason }) => {
                        if failing.is_none() {
                            tracing::warn!(reason, journal.position = %last, "is read again");
                        }
                        let pauses = failing.get_or_insert_with(pauses);
                        sleep(pauses.next().unwrap_or(READ_PAUSE_MAX)).await;
                    }
                }
            }
        })
        .await;
        last
    }
}

fn pauses() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(READ_PAUSE_MIN)
        .with_max_delay(READ_PAUSE_MAX)
        .without_max_times()
        .build()
}
