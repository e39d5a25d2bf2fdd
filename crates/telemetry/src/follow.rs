//! Follows the journal: metrics and traces see every event once, in order.

use std::time::Duration;

use antiphon_core::{Event, Position};
use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::export::exporter::Exporter;
use crate::metrics::Metrics;
use crate::trace::Traces;

/// Pause after the first failed read. Each further pause is twice as long.
pub const READ_PAUSE_MIN: Duration = Duration::from_millis(100);

/// Longest pause.
pub const READ_PAUSE_MAX: Duration = Duration::from_secs(30);

/// A source of events in the order of their positions.
#[async_trait]
pub trait EventSource: Send {
    /// Waits for the next event. After an error, or when the future was dropped, the next call
    /// returns the same event.
    async fn next(&mut self) -> Result<Event, SourceError>;
}

/// Why there is no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The source has ended.
    #[error("there are no more events")]
    Ended,
    /// The journal cannot be read now: try again.
    #[error("the journal cannot be read: {reason}")]
    Unavailable {
        /// What the journal reports.
        reason: String,
    },
}

/// The consumers of events.
#[derive(Debug, Clone)]
pub struct Telemetry {
    /// Counts events.
    pub metrics: Metrics,
    /// Makes spans of events.
    pub traces: Traces,
    /// Sends the spans. Without an exporter, no spans are made.
    pub exporter: Option<Exporter>,
}

impl Telemetry {
    /// Passes one event to metrics and traces.
    pub fn observe(&self, event: &Event) {
        self.metrics.observe(event);
        if let Some(exporter) = &self.exporter {
            exporter.push(self.traces.observe(event));
        }
    }

    /// The metrics with the exporter's counts, as
    /// [`METRICS_CONTENT_TYPE`](crate::METRICS_CONTENT_TYPE).
    pub fn render(&self) -> String {
        if let Some(exporter) = &self.exporter {
            self.metrics.exported(exporter.counts());
        }
        self.metrics.render()
    }

    /// Follows events after `after` until `stop` is canceled or the source ends. Reads again with
    /// growing pauses after a failure. Returns the last position. Spawns nothing.
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
                            tracing::warn!(reason, journal.position = %last, "reading the journal failed, will retry");
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
