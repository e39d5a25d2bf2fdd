//! Metrics and traces, made by following the journal.
//!
//! Nothing is measured inside of a task's loop: [`Telemetry::follow`] reads the events of the journal,
//! [`Metrics`] counts them, [`Traces`] makes spans of them, and an [`Exporter`] sends the spans to a
//! collector. It may be late, restarted or absent without any effect on tasks. No conversation text and
//! no secret leaves through here.
//!
//! | failure                                 | result                                                |
//! |-----------------------------------------|-------------------------------------------------------|
//! | the same event comes twice              | it is counted once                                    |
//! | the creation of a task was not seen     | its events are counted, without durations and spans   |
//! | more tasks are open than [`TASKS_OPEN_MAX`] | the same, and `antiphon_tasks_not_followed_total` counts them |
//! | models invent names                     | a label has [`LABEL_VALUES_MAX`] values, the rest is `other` |
//! | the journal cannot be read              | it is read again, with growing pauses                 |
//! | the collector is slow or gone           | the oldest spans are dropped and counted              |
//! | the process is restarted                | traces and spans keep their ids                       |
//!
//! # Restarting
//!
//! Counters start at zero with each process, as Prometheus expects. Spans need the start of their
//! activities: store [`Traces::needed_from`] and the position that [`Telemetry::follow`] returned. After
//! a restart, follow from the first, with [`Traces::exported_up_to`] the second. Without them, start
//! anywhere: a span that is exported twice has the same id, and a collector keeps one.

mod convention;
mod export;
mod follow;
mod metrics;
mod tasks;
mod trace;

pub use export::collector::{ExporterError, HEADERS_MAX};
pub use export::exporter::{ExportCounts, Exporter, ExporterConfig};
pub use follow::{EventSource, READ_PAUSE_MAX, READ_PAUSE_MIN, SourceError, Telemetry};
pub use metrics::labels::{LABEL_BYTES_MAX, LABEL_VALUES_MAX, OTHER, SERIES_MAX, UNKNOWN};
pub use metrics::{BreakerState, METRICS_CONTENT_TYPE, Metrics};
pub use tasks::TASKS_OPEN_MAX;
pub use trace::span::{ATTRIBUTE_BYTES_MAX, AttributeValue, FinishedSpan, SpanKind, SpanStatus};
pub use trace::trace_parent::{Sampled, SpanId, TraceId, TraceParent, TraceParentError};
pub use trace::{CHILDREN_EXPECTED_MAX, PARENTS_EARLY_MAX, Traces};
