//! Spans arrive at a collector, complete.

use std::time::Duration;

use antiphon_core::{Event, TaskStatus};
use antiphon_telemetry::{ExportCounts, Exporter, ExporterConfig, FinishedSpan, Traces};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use secrecy::SecretString;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::journal_builder::*;
use crate::receiver::Receiver;

/// This many spans, each of its own task.
pub(crate) fn spans(number: usize) -> Vec<FinishedSpan> {
    let mut journal = JournalBuilder::new();
    for number in 0..number {
        let task = format!("t{number}");
        journal.append(&task, created(&format!("agent{number}")));
        journal.append(&task, status(TaskStatus::Completed));
    }
    let traces = Traces::new();
    journal.events.iter().flat_map(|event: &Event| traces.observe(event)).collect()
}

/// Short waits, for tests.
pub(crate) fn config(endpoint: &str) -> ExporterConfig {
    ExporterConfig {
        linger: Duration::from_millis(1),
        first_pause: Duration::from_millis(1),
        pause_max: Duration::from_millis(5),
        flush_wait: Duration::from_secs(5),
        ..ExporterConfig::new(endpoint)
    }
}

/// A running exporter.
pub(crate) struct Running {
    pub(crate) exporter: Exporter,
    stop: CancellationToken,
    tasks: JoinSet<ExportCounts>,
}

impl Running {
    pub(crate) fn start(config: ExporterConfig) -> Self {
        let (exporter, stop) = (Exporter::new(config).unwrap(), CancellationToken::new());
        let mut tasks = JoinSet::new();
        let (mine, until) = (exporter.clone(), stop.clone());
        tasks.spawn(async move { mine.run(until).await });
        Self { exporter, stop, tasks }
    }

    pub(crate) async fn stop(mut self) -> ExportCounts {
        self.stop.cancel();
        self.tasks.join_next().await.unwrap().unwrap()
    }
}

pub(crate) fn names(spans: &[opentelemetry_proto::tonic::trace::v1::Span]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    let Value::StringValue(text) = found.value.clone()?.value? else { return None };
    Some(text)
}

#[tokio::test]
async fn a_span_arrives_with_all_its_fields() {
    let mut receiver = Receiver::start([]).await;
    let config = ExporterConfig {
        headers: vec![("x-api-key".to_owned(), SecretString::from("hush"))],
        instance_id: Some("node-1".to_owned()),
        ..config(&receiver.endpoint)
    };
    let running = Running::start(config);
    let sent = spans(1);
    running.exporter.push(sent.clone());
    let came = receiver.next().await;
    assert_eq!(came.path, "/v1/traces");
    assert_eq!(came.headers["content-type"], "application/x-protobuf");
    assert_eq!(came.headers["x-api-key"], "hush");
    let resource = came.request.resource_spans[0].resource.clone().unwrap();
    assert_eq!(text(&resource.attributes, "service.name").as_deref(), Some("antiphon"));
    assert_eq!(text(&resource.attributes, "service.instance.id").as_deref(), Some("node-1"));
    let [span] = came.spans().try_into().unwrap();
    assert_eq!(span.trace_id, sent[0].trace_id.as_bytes());
    assert_eq!(span.span_id, sent[0].span_id.as_bytes());
    assert_eq!(span.parent_span_id, Vec::<u8>::new());
    assert_eq!(span.name, "invoke_agent agent0");
    assert_eq!(span.kind, 1);
    assert_eq!(span.start_time_unix_nano, 1_771_416_000_000_000_000);
    assert_eq!(span.end_time_unix_nano, span.start_time_unix_nano);
    assert_eq!(span.status.clone().unwrap().code, 0);
    assert_eq!(text(&span.attributes, "gen_ai.agent.name").as_deref(), Some("agent0"));
    assert_eq!(span.attributes.len(), sent[0].attributes.len());
    let counts = running.stop().await;
    assert_eq!(counts, ExportCounts { exported: 1, dropped: 0, failed: 0 });
}

#[tokio::test]
async fn spans_are_sent_in_batches_in_order() {
    let mut receiver = Receiver::start([]).await;
    let config = ExporterConfig { batch_spans_max: 2, ..config(&receiver.endpoint) };
    let running = Running::start(config);
    running.exporter.push(spans(5));
    let mut arrived = Vec::new();
    for _ in 0..3 {
        arrived.push(receiver.next().await.spans());
    }
    assert_eq!(arrived.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1]);
    let arrived = arrived.concat();
    let expected: Vec<_> = (0..5).map(|number| format!("invoke_agent agent{number}")).collect();
    assert_eq!(names(&arrived), expected);
}

#[tokio::test]
async fn a_full_batch_is_sent_at_once() {
    let mut receiver = Receiver::start([]).await;
    let hour = Duration::from_secs(3600);
    let config = ExporterConfig { batch_spans_max: 3, linger: hour, ..config(&receiver.endpoint) };
    let running = Running::start(config);
    running.exporter.push(spans(2));
    running.exporter.push(spans(1));
    assert_eq!(receiver.next().await.spans().len(), 3);
    assert_eq!(running.stop().await.exported, 3);
}

#[tokio::test]
async fn queued_spans_are_sent_at_shutdown() {
    let mut receiver = Receiver::start([]).await;
    let hour = Duration::from_secs(3600);
    let config = ExporterConfig { batch_spans_max: 4, linger: hour, ..config(&receiver.endpoint) };
    let running = Running::start(config);
    running.exporter.push(spans(3));
    assert_eq!(running.stop().await, ExportCounts { exported: 3, dropped: 0, failed: 0 });
    assert_eq!(receiver.next().await.spans().len(), 3);
    assert_eq!(receiver.rest(), 0);
}

#[tokio::test]
async fn an_address_may_contain_the_path_or_not() {
    for (given, expected) in [
        ("", "/v1/traces"),
        ("/", "/v1/traces"),
        ("/v1/traces", "/v1/traces"),
        ("/otlp/", "/otlp/v1/traces"),
    ] {
        let mut receiver = Receiver::start([]).await;
        let running = Running::start(config(&format!("{}{given}", receiver.endpoint)));
        running.exporter.push(spans(1));
        assert_eq!(receiver.next().await.path, expected, "{given}");
    }
}

#[tokio::test]
async fn a_span_never_ends_before_it_starts() {
    let mut receiver = Receiver::start([]).await;
    let running = Running::start(config(&receiver.endpoint));
    let backwards = FinishedSpan { began: after_ms(500), ended: after_ms(0), ..spans(1).remove(0) };
    running.exporter.push(vec![backwards]);
    let [span] = receiver.next().await.spans().try_into().unwrap();
    assert_eq!(span.end_time_unix_nano, span.start_time_unix_nano);
}
