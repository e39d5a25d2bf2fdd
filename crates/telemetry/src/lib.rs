//! Metrics and traces, made by following the journal.
//!
//! Nothing is measured inside the loop of a task: [`Telemetry::follow`] reads the events that are in
//! the journal anyway, [`Metrics`] counts them, [`Traces`] makes spans of them, and an [`Exporter`]
//! sends those to a collector. It may be late, it may be started again, it may be missing: the work
//! does not notice. Nothing that was said, to a model or by one, leaves through here, and no secret.
//!
//! | what goes wrong                         | what happens                                          |
//! |-----------------------------------------|-------------------------------------------------------|
//! | the same event comes twice              | it is counted once                                    |
//! | a task was not seen from its creation   | its events are counted, without durations and spans   |
//! | more tasks are open than [`TASKS_OPEN_MAX`] | the same, and `antiphon_tasks_not_followed_total` says so |
//! | models make up names                    | a label has [`LABEL_VALUES_MAX`] values, the rest is `other` |
//! | the journal cannot be read              | it is tried again, with growing pauses                |
//! | the collector is slow or gone           | the oldest spans are dropped and counted              |
//! | the process is started again            | traces and spans have the names they had              |
//!
//! # Starting again
//!
//! Counters begin at zero with each process, as Prometheus expects. Spans need the beginning of what
//! they tell of: keep [`Traces::needed_from`] and the position that [`Telemetry::follow`] got to, and
//! begin next time behind the first, with [`Traces::told_up_to`] the second. Without them begin
//! wherever you like: what is told twice has the same names, and a collector keeps one of it.

mod book;
mod call;
mod chat;
mod collector;
mod convention;
mod exporter;
mod families;
mod follow;
mod ledger;
mod making;
mod metrics;
mod names;
mod otlp;
mod span;
mod trace_parent;
mod traces;
mod waiting;

pub use book::TASKS_OPEN_MAX;
pub use collector::{ExporterError, HEADERS_MAX};
pub use exporter::{ExportCounts, Exporter, ExporterConfig};
pub use follow::{EventSource, READ_PAUSE_MAX, READ_PAUSE_MIN, SourceError, Telemetry};
pub use metrics::{Breaker, METRICS_CONTENT_TYPE, Metrics};
pub use names::{LABEL_BYTES_MAX, LABEL_VALUES_MAX, OTHER, SERIES_MAX, UNKNOWN};
pub use span::{ATTRIBUTE_BYTES_MAX, AttributeValue, FinishedSpan, SpanKind, SpanStatus};
pub use trace_parent::{Sampled, SpanId, TraceId, TraceParent, TraceParentError};
pub use traces::{CHILDREN_EXPECTED_MAX, PARENTS_EARLY_MAX, Traces};
