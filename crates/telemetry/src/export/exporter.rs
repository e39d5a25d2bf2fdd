//! Sends spans to a collector, by OTLP over HTTP.
//!
//! [`Exporter::push`] never waits: spans go into a bounded queue, and when it is full the oldest
//! are dropped and counted. [`Exporter::run`] sends them in batches. A batch that the collector
//! cannot accept now is sent again with growing pauses, then dropped and counted. A failure here
//! affects nothing else.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use opentelemetry_proto::tonic::resource::v1::Resource;
use secrecy::SecretString;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::convention;
use crate::export::collector::{Collector, ExporterError, Refusal};
use crate::export::otlp;
use crate::trace::span::FinishedSpan;

/// Settings of an exporter.
#[derive(Debug, Clone)]
pub struct ExporterConfig {
    /// Address of the collector, such as `http://127.0.0.1:4318`. `/v1/traces` is appended.
    pub endpoint: String,
    /// Extra headers of every request. The values are not printed.
    pub headers: Vec<(String, SecretString)>,
    /// `service.name`.
    pub service_name: String,
    /// `service.instance.id`; omitted when absent.
    pub instance_id: Option<String>,
    /// Most spans in the queue. Above the limit, the oldest are dropped.
    pub queue_spans_max: usize,
    /// Most spans in one request.
    pub batch_spans_max: usize,
    /// How long spans wait until a batch is full.
    pub linger: Duration,
    /// Timeout of one request.
    pub timeout: Duration,
    /// How often a batch is sent again.
    pub retries_max: usize,
    /// Pause before the first retry. Each further pause is twice as long.
    pub first_pause: Duration,
    /// Longest pause, also if the collector asks for a longer one.
    pub pause_max: Duration,
    /// How long the final flush may take at shutdown.
    pub flush_wait: Duration,
}

impl ExporterConfig {
    /// Default settings for a collector at this address.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            headers: Vec::new(),
            service_name: "antiphon".to_owned(),
            instance_id: None,
            queue_spans_max: 8192,
            batch_spans_max: 512,
            linger: Duration::from_secs(2),
            timeout: Duration::from_secs(10),
            retries_max: 5,
            first_pause: Duration::from_millis(500),
            pause_max: Duration::from_secs(30),
            flush_wait: Duration::from_secs(5),
        }
    }
}

/// Number of spans by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExportCounts {
    /// Accepted by the collector.
    pub exported: u64,
    /// Dropped because the queue was full or the shutdown timed out.
    pub dropped: u64,
    /// Refused by the collector.
    pub failed: u64,
}

/// Sends spans. Cheap to clone; clones share one queue. One clone must [`run`](Self::run).
#[derive(Debug, Clone)]
pub struct Exporter {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: ExporterConfig,
    collector: Collector,
    resource: Resource,
    queue: Mutex<VecDeque<FinishedSpan>>,
    /// A span was queued, or a batch is full.
    arrived: Notify,
    exported: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl Exporter {
    /// Validates the settings. Sends nothing yet.
    pub fn new(config: ExporterConfig) -> Result<Self, ExporterError> {
        let collector = Collector::new(&config.endpoint, &config.headers, config.timeout)?;
        let instance = config.instance_id.clone();
        let about = [
            Some((convention::SERVICE_NAME, config.service_name.clone())),
            Some((convention::SERVICE_VERSION, env!("CARGO_PKG_VERSION").to_owned())),
            instance.map(|id| (convention::SERVICE_INSTANCE_ID, id)),
        ];
        let inner = Inner {
            resource: otlp::resource(about.into_iter().flatten()),
            config,
            collector,
            queue: Mutex::default(),
            arrived: Notify::new(),
            exported: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Queues spans. Never waits.
    pub fn push(&self, spans: Vec<FinishedSpan>) {
        if spans.is_empty() {
            return;
        }
        let mut queue = self.queue();
        queue.extend(spans);
        let over = queue.len().saturating_sub(self.inner.config.queue_spans_max);
        drop(queue.drain(..over));
        drop(queue);
        self.inner.dropped.fetch_add(over as u64, Ordering::Relaxed);
        self.inner.arrived.notify_one();
    }

    /// Number of spans so far, by result.
    pub fn counts(&self) -> ExportCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Inner { exported, dropped, failed, .. } = &*self.inner;
        ExportCounts { exported: read(exported), dropped: read(dropped), failed: read(failed) }
    }

    /// Sends spans until `stop` is canceled, then flushes the queue within
    /// [`flush_wait`](ExporterConfig::flush_wait). Spawns nothing. Run it once.
    pub async fn run(&self, stop: CancellationToken) -> ExportCounts {
        let mut batch = Vec::new();
        stop.run_until_cancelled(self.send_on(&mut batch)).await;
        // A batch whose request was interrupted goes first. It may have arrived: the spans are the
        // same.
        let flush = async {
            loop {
                self.fill(&mut batch);
                if batch.is_empty() {
                    break;
                }
                self.deliver(&mut batch).await;
            }
        };
        let late = timeout(self.inner.config.flush_wait, flush).await.is_err();
        if late {
            let left = batch.len() + std::mem::take(&mut *self.queue()).len();
            self.inner.dropped.fetch_add(left as u64, Ordering::Relaxed);
            tracing::warn!(spans = left, "the last spans were not sent before the deadline");
        }
        self.counts()
    }

    async fn send_on(&self, batch: &mut Vec<FinishedSpan>) {
        loop {
            self.wait_for_batch().await;
            self.fill(batch);
            self.deliver(batch).await;
        }
    }

    /// Waits for a first span, then until a batch is full or `linger` has passed.
    async fn wait_for_batch(&self) {
        while self.queue().is_empty() {
            self.inner.arrived.notified().await;
        }
        let enough = async {
            while self.queue().len() < self.inner.config.batch_spans_max {
                self.inner.arrived.notified().await;
            }
        };
        // After the timeout, a smaller batch is sent.
        let _ = timeout(self.inner.config.linger, enough).await;
    }

    fn fill(&self, batch: &mut Vec<FinishedSpan>) {
        let mut queue = self.queue();
        let room = self.inner.config.batch_spans_max.max(1).saturating_sub(batch.len());
        let some = room.min(queue.len());
        batch.extend(queue.drain(..some));
    }

    /// Sends a batch until it is accepted or given up. Empties it only then.
    async fn deliver(&self, batch: &mut Vec<FinishedSpan>) {
        let Inner { collector, resource, config, .. } = &*self.inner;
        let spans = batch.len() as u64;
        let body = otlp::body(resource, batch);
        let mut pauses = pauses(config);
        let reason = loop {
            match collector.send(body.clone()).await {
                Ok(rejected) => {
                    let rejected = rejected.min(spans);
                    self.inner.exported.fetch_add(spans - rejected, Ordering::Relaxed);
                    self.inner.failed.fetch_add(rejected, Ordering::Relaxed);
                    batch.clear();
                    return;
                }
                Err(Refusal::Never { reason }) => break reason,
                Err(Refusal::Later { reason, wait }) => {
                    let Some(pause) = pauses.next() else { break reason };
                    tracing::debug!(reason, "sending spans failed, will retry");
                    sleep(pause.max(wait.unwrap_or_default()).min(config.pause_max)).await;
                }
            }
        };
        tracing::warn!(spans, reason, "the collector refused spans");
        self.inner.failed.fetch_add(spans, Ordering::Relaxed);
        batch.clear();
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<FinishedSpan>> {
        self.inner.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pauses(config: &ExporterConfig) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_jitter()
        .with_min_delay(config.first_pause)
        .with_max_delay(config.pause_max)
        .with_max_times(config.retries_max)
        .build()
}
