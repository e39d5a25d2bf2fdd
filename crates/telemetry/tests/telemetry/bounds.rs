//! Metrics are bounded, for any events and any names.

use std::time::Duration;

use allocation_counter::measure;
use antiphon_core::*;
use antiphon_telemetry::{LABEL_BYTES_MAX, LABEL_VALUES_MAX, Metrics, SERIES_MAX, TASKS_OPEN_MAX};

use crate::journal_builder::*;
use crate::samples::{lines_of, samples, value};

#[test]
fn names_above_the_limit_become_other() {
    let metrics = Metrics::new();
    let mut journal = JournalBuilder::new();
    let made_up = LABEL_VALUES_MAX + 50;
    journal.append("t1", created("planner")).append("t1", status(TaskStatus::Running));
    for number in 0..made_up {
        journal.append("t1", result(&format!("c{number}"), &format!("tool_{number}"), Went::Wrong));
        journal.append("t1", paid(&format!("local/model_{number}"), usage(1, 1)));
    }
    journal.each(|event| metrics.observe(event));
    let tools = lines_of(&metrics, "antiphon_tool_calls_total");
    assert_eq!(tools.len(), LABEL_VALUES_MAX + 1);
    let other = r#"antiphon_tool_calls_total{tool="other",outcome="error"}"#;
    assert_eq!(value(&metrics, other), "50");
    assert_eq!(lines_of(&metrics, "antiphon_turns_total").len(), LABEL_VALUES_MAX + 1);
    // Known names are still counted.
    let mut more = JournalBuilder::new();
    more.events.clone_from(&journal.events);
    more.append("t1", result("again", "tool_0", Went::Wrong));
    metrics.observe(more.events.last().unwrap());
    let first = r#"antiphon_tool_calls_total{tool="tool_0",outcome="error"}"#;
    assert_eq!(value(&metrics, first), "2");
}

#[test]
fn an_open_task_at_rest_costs_a_few_hundred_bytes() {
    const TASKS: usize = 1000;
    let metrics = Metrics::new();
    let mut journal = JournalBuilder::new();
    let names: Vec<String> =
        (0..TASKS).map(|number| format!("0199a3b0-0000-7000-8000-{number:012}")).collect();
    for name in &names {
        journal.append(name, created("clerk")).think(name);
        journal.answer(name, "anthropic/claude-sonnet-4-5", usage(1, 1));
        journal
            .state_changed(name, &[AgentState::ToolCall, AgentState::Reflecting, AgentState::Idle]);
    }
    // What is counted for each name is there already.
    let mut first = JournalBuilder::new();
    first.append("first", created("clerk")).think("first");
    first.answer("first", "anthropic/claude-sonnet-4-5", usage(1, 1));
    first.each(|event| metrics.observe(event));
    let after = first.events.len() as u64;
    for event in &mut journal.events {
        event.position = Position(event.position.0 + after);
    }
    let kept = measure(|| journal.each(|event| metrics.observe(event))).bytes_current;
    assert_eq!(value(&metrics, "antiphon_tasks_open"), (TASKS + 1).to_string());
    let each = usize::try_from(kept).unwrap() / TASKS;
    assert!(each <= 700, "{each} bytes");
}

#[test]
fn a_name_is_truncated_and_cannot_break_the_format() {
    let metrics = Metrics::new();
    let mut journal = JournalBuilder::new();
    let evil = format!("a\"}} 1\n# EOF\n\\{}", "ü".repeat(LABEL_BYTES_MAX));
    journal.append("t1", created(&evil)).append("t2", created("  "));
    journal.each(|event| metrics.observe(event));
    let lines = lines_of(&metrics, "antiphon_tasks_created_total");
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with(r#"antiphon_tasks_created_total{agent="a\"} 1\n# EOF\n\\üü"#));
    assert!(lines[0].len() < 2 * LABEL_BYTES_MAX);
    assert_eq!(lines[1], r#"antiphon_tasks_created_total{agent="unknown"} 1"#);
}

#[test]
fn the_number_of_series_of_requests_is_bounded() {
    let metrics = Metrics::new();
    for route in 0..LABEL_VALUES_MAX + 20 {
        for status in 200..220 {
            metrics.http("GET", &format!("/v1/made/up/{route}"), status, Duration::ZERO);
        }
    }
    let series = lines_of(&metrics, "antiphon_http_requests_total");
    assert!(series.len() <= SERIES_MAX + 20, "{}", series.len());
    let counts = samples(&metrics).values.into_iter();
    let all = counts.filter(|(name, _)| name.starts_with("antiphon_http_requests_total"));
    let all: f64 = all.map(|(_, count)| count).sum();
    assert_eq!(all.to_string(), (20 * (LABEL_VALUES_MAX + 20)).to_string());
}

#[test]
fn a_task_that_ended_is_forgotten() {
    let metrics = Metrics::new();
    let mut journal = JournalBuilder::new();
    for number in 0..100 {
        let task = format!("t{number}");
        journal.append(&task, created("planner")).append(&task, status(TaskStatus::Completed));
    }
    journal.each(|event| metrics.observe(event));
    assert_eq!(value(&metrics, "antiphon_tasks_open"), "0");
    assert_eq!(value(&metrics, "antiphon_tasks_not_followed_total"), "0");
}

#[test]
fn tasks_above_the_limit_are_still_counted() {
    let metrics = Metrics::new();
    let mut journal = JournalBuilder::new();
    for number in 0..TASKS_OPEN_MAX + 3 {
        journal.append(&format!("t{number}"), created("planner"));
    }
    let last = format!("t{}", TASKS_OPEN_MAX + 2);
    journal.append(&last, status(TaskStatus::Completed));
    journal.each(|event| metrics.observe(event));
    let created = r#"antiphon_tasks_created_total{agent="planner"}"#;
    assert_eq!(value(&metrics, created), (TASKS_OPEN_MAX + 3).to_string());
    assert_eq!(value(&metrics, "antiphon_tasks_open"), TASKS_OPEN_MAX.to_string());
    assert_eq!(value(&metrics, "antiphon_tasks_not_followed_total"), "3");
    let ended = r#"antiphon_tasks_ended_total{agent="unknown",status="completed"}"#;
    assert_eq!(value(&metrics, ended), "1");
}
