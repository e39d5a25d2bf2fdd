//! A journal that the program itself wrote.

use antiphon_core::Event;
use antiphon_telemetry::{Metrics, Traces};

use crate::samples::lines_of;

/// Five tasks: one with tools, one that failed, one at its limit, one canceled, one that continues
/// a conversation.
fn journal() -> Vec<Event> {
    let text = include_str!("../../../core/tests/fixtures/journal-v1.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_real_journal_is_counted() {
    let metrics = Metrics::new();
    for event in journal() {
        metrics.observe(&event);
    }
    let counted: Vec<String> = [
        "antiphon_messages_processed_total",
        "antiphon_tasks_created_total",
        "antiphon_tasks_ended_total",
        "antiphon_tool_calls_total",
        "antiphon_turns_total",
    ]
    .into_iter()
    .flat_map(|name| lines_of(&metrics, name))
    .collect();
    assert_eq!(
        counted,
        [
            r#"antiphon_messages_processed_total{agent="default"} 5"#,
            r#"antiphon_tasks_created_total{agent="default"} 5"#,
            r#"antiphon_tasks_ended_total{agent="default",status="canceled"} 1"#,
            r#"antiphon_tasks_ended_total{agent="default",status="completed"} 2"#,
            r#"antiphon_tasks_ended_total{agent="default",status="failed"} 2"#,
            r#"antiphon_tool_calls_total{tool="read",outcome="error"} 4"#,
            r#"antiphon_turns_total{model="scripted/hello"} 1"#,
            r#"antiphon_turns_total{model="scripted/reader"} 3"#,
        ]
    );
}

#[test]
fn a_real_journal_makes_these_spans() {
    let traces = Traces::new();
    let spans: Vec<_> = journal().iter().flat_map(|event| traces.observe(event)).collect();
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    let task = "invoke_agent default";
    assert_eq!(
        names,
        [
            "chat reader",
            "execute_tool read",
            "execute_tool read",
            "chat reader",
            task,
            "chat e",
            task,
            "chat reader",
            "execute_tool read",
            "execute_tool read",
            task,
            "chat slow",
            task,
            "chat hello",
            task,
        ]
    );
    assert!(spans.iter().all(|span| span.began <= span.ended));
}
