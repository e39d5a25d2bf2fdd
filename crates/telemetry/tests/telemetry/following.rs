//! Following a journal from a position, through failures, to the end.

use std::collections::VecDeque;
use std::time::Duration;

use antiphon_core::{Event, Position, TaskStatus};
use antiphon_telemetry::{
    EventSource, Exporter, Metrics, READ_PAUSE_MAX, READ_PAUSE_MIN, SourceError, Telemetry, Traces,
};
use async_trait::async_trait;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::exporting::{Running, config, names};
use crate::journal_builder::*;
use crate::receiver::Receiver;
use crate::samples::{lines_of, value};

/// Events and failures in this order, then a final behavior.
struct Scripted {
    steps: VecDeque<Result<Event, SourceError>>,
    then: Then,
}

enum Then {
    End,
    Wait,
}

#[async_trait]
impl EventSource for Scripted {
    async fn next(&mut self) -> Result<Event, SourceError> {
        match (self.steps.pop_front(), &self.then) {
            (Some(step), _) => step,
            (None, Then::End) => Err(SourceError::Ended),
            (None, Then::Wait) => std::future::pending().await,
        }
    }
}

fn journal() -> JournalBuilder {
    let mut journal = JournalBuilder::new();
    for task in ["t1", "t2", "t3"] {
        journal.append(task, created("planner")).append(task, status(TaskStatus::Completed));
    }
    journal
}

fn source(journal: &JournalBuilder) -> Scripted {
    Scripted { steps: journal.events.iter().cloned().map(Ok).collect(), then: Then::End }
}

fn telemetry(exporter: Option<Exporter>) -> Telemetry {
    Telemetry { metrics: Metrics::new(), traces: Traces::new(), exporter }
}

const CREATED: &str = r#"antiphon_tasks_created_total{agent="planner"}"#;

#[tokio::test]
async fn every_event_of_the_journal_is_counted_and_exported() {
    let mut receiver = Receiver::start([]).await;
    let running = Running::start(config(&receiver.endpoint));
    let telemetry = telemetry(Some(running.exporter.clone()));
    let last = telemetry.follow(source(&journal()), Position(0), CancellationToken::new()).await;
    assert_eq!(last, Position(6));
    assert_eq!(value(&telemetry.metrics, CREATED), "3");
    assert_eq!(running.stop().await.exported, 3);
    let mut spans = Vec::new();
    while spans.len() < 3 {
        spans.extend(receiver.next().await.spans());
    }
    assert_eq!(names(&spans), ["invoke_agent planner"; 3]);
    assert!(telemetry.render().contains("\nantiphon_spans_exported_total 3\n"));
}

#[tokio::test]
async fn events_before_the_position_are_skipped() {
    let telemetry = telemetry(None);
    let last = telemetry.follow(source(&journal()), Position(3), CancellationToken::new()).await;
    assert_eq!(last, Position(6));
    assert_eq!(value(&telemetry.metrics, CREATED), "1");
    assert_eq!(
        lines_of(&telemetry.metrics, "antiphon_tasks_ended_total"),
        [
            r#"antiphon_tasks_ended_total{agent="planner",status="completed"} 1"#,
            r#"antiphon_tasks_ended_total{agent="unknown",status="completed"} 1"#,
        ]
    );
}

#[tokio::test]
async fn a_source_that_starts_over_changes_nothing() {
    let (telemetry, mut source) = (telemetry(None), source(&journal()));
    source.steps.extend(journal().events.into_iter().map(Ok));
    let last = telemetry.follow(source, Position(0), CancellationToken::new()).await;
    assert_eq!((last, value(&telemetry.metrics, CREATED)), (Position(6), "3".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_failed_read_is_repeated_with_growing_pauses() {
    let gone = || Err(SourceError::Unavailable { reason: "the disk is gone".to_owned() });
    let (telemetry, mut source) = (telemetry(None), source(&journal()));
    for _ in 0..3 {
        source.steps.insert(2, gone());
    }
    source.steps.insert(7, gone());
    let began = Instant::now();
    let last = telemetry.follow(source, Position(0), CancellationToken::new()).await;
    assert_eq!((last, value(&telemetry.metrics, CREATED)), (Position(6), "3".to_owned()));
    // One, two and four pauses; the first pause again for the last.
    let waited = began.elapsed();
    assert!(waited >= 8 * READ_PAUSE_MIN && waited < 9 * READ_PAUSE_MIN, "{waited:?}");
    assert!(READ_PAUSE_MIN < READ_PAUSE_MAX);
}

#[tokio::test(start_paused = true)]
async fn it_stops_when_canceled_and_returns_its_position() {
    let (telemetry, stop) = (telemetry(None), CancellationToken::new());
    let source = Scripted { then: Then::Wait, ..source(&journal()) };
    let cancel = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
    };
    let (last, ()) = tokio::join!(telemetry.follow(source, Position(0), stop.clone()), cancel);
    assert_eq!(last, Position(6));
}
