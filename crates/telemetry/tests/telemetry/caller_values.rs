//! Values that callers set.

use std::time::Duration;

use antiphon_core::{Cost, Position, TaskStatus};
use antiphon_telemetry::{
    BreakerState, ExportCounts, LABEL_VALUES_MAX, METRICS_CONTENT_TYPE, Metrics,
};

use crate::samples::{lines, lines_of, value};

#[test]
fn every_value_that_is_set_is_rendered() {
    let metrics = Metrics::new();
    metrics.active_agents(3);
    metrics.queue_size("tasks", 7);
    metrics.breaker("anthropic", BreakerState::Open);
    metrics.breaker("openai", BreakerState::HalfOpen);
    metrics.breaker("gemini", BreakerState::Closed);
    metrics.journal_head(Position(99));
    let half = Cost { nano_usd: 500_000_000 };
    metrics.budget("team", half, Some(half + half));
    metrics.exported(ExportCounts { exported: 5, dropped: 2, failed: 1 });
    assert_eq!(
        lines(&metrics),
        [
            "antiphon_active_agents 3",
            r#"antiphon_budget_limit_usd{budget="team"} 1"#,
            r#"antiphon_budget_spent_usd{budget="team"} 0.5"#,
            r#"antiphon_circuit_breaker_state{provider="anthropic"} 2"#,
            r#"antiphon_circuit_breaker_state{provider="openai"} 1"#,
            "antiphon_journal_head_position 99",
            r#"antiphon_queue_size{queue="tasks"} 7"#,
            "antiphon_spans_dropped_total 2",
            "antiphon_spans_exported_total 5",
            "antiphon_spans_failed_total 1",
        ]
    );
}

#[test]
fn requests_are_counted_by_method_route_and_status() {
    let metrics = Metrics::new();
    metrics.http("GET", "/v1/tasks/{id}", 200, Duration::from_millis(250));
    metrics.http("GET", "/v1/tasks/{id}", 404, Duration::from_millis(250));
    metrics.http("BREW", "/v1/tasks/{id}", 999, Duration::ZERO);
    assert_eq!(
        lines(&metrics),
        [
            r#"antiphon_http_request_duration_seconds_count{method="GET",route="/v1/tasks/{id}"} 2"#,
            r#"antiphon_http_request_duration_seconds_count{method="other",route="/v1/tasks/{id}"} 1"#,
            r#"antiphon_http_request_duration_seconds_sum{method="GET",route="/v1/tasks/{id}"} 0.5"#,
            r#"antiphon_http_requests_total{method="GET",route="/v1/tasks/{id}",status="200"} 1"#,
            r#"antiphon_http_requests_total{method="GET",route="/v1/tasks/{id}",status="404"} 1"#,
            r#"antiphon_http_requests_total{method="other",route="/v1/tasks/{id}",status="0"} 1"#,
        ]
    );
}

#[test]
fn removed_queues_are_not_rendered() {
    let metrics = Metrics::new();
    metrics.queue_sizes([("inbox ada", 2), ("inbox bob", 1)]);
    metrics.queue_sizes([("inbox bob", 4)]);
    assert_eq!(
        lines_of(&metrics, "antiphon_queue_size"),
        [r#"antiphon_queue_size{queue="inbox bob"} 4"#]
    );
}

#[test]
fn queues_above_the_limit_are_summed_up() {
    let metrics = Metrics::new();
    let names: Vec<String> = (0..LABEL_VALUES_MAX + 3).map(|n| format!("inbox {n}")).collect();
    metrics.queue_sizes(names.iter().map(|name| (name.as_str(), 2)));
    assert_eq!(value(&metrics, r#"antiphon_queue_size{queue="other"}"#), "6");
    // Removed names make room.
    metrics.queue_sizes([("inbox new", 1)]);
    assert_eq!(value(&metrics, r#"antiphon_queue_size{queue="inbox new"}"#), "1");
}

#[test]
fn the_caller_sets_the_number_of_unfinished_tasks() {
    let metrics = Metrics::new();
    metrics.tasks_unfinished(TaskStatus::Running, 3);
    metrics.tasks_unfinished(TaskStatus::Running, 2);
    let shown = r#"antiphon_tasks_unfinished{status="running"}"#;
    assert_eq!(value(&metrics, shown), "2");
}

#[test]
fn a_budget_that_lost_its_limit_renders_none() {
    let metrics = Metrics::new();
    let dollar = Cost { nano_usd: 1_000_000_000 };
    metrics.budget("team", dollar, Some(dollar));
    metrics.budget("team", dollar, None);
    assert_eq!(lines_of(&metrics, "antiphon_budget_limit_usd"), Vec::<String>::new());
    assert_eq!(value(&metrics, r#"antiphon_budget_spent_usd{budget="team"}"#), "1");
}

#[test]
fn a_late_count_never_decreases_a_counter() {
    let metrics = Metrics::new();
    metrics.exported(ExportCounts { exported: 5, ..ExportCounts::default() });
    metrics.exported(ExportCounts { exported: 3, ..ExportCounts::default() });
    assert_eq!(value(&metrics, "antiphon_spans_exported_total"), "5");
}

#[test]
fn clones_count_together() {
    let metrics = Metrics::new();
    metrics.clone().active_agents(2);
    assert_eq!(value(&metrics, "antiphon_active_agents"), "2");
}

#[test]
fn the_text_matches_its_media_type() {
    assert!(METRICS_CONTENT_TYPE.starts_with("application/openmetrics-text;"));
    assert!(Metrics::new().render().ends_with("# EOF\n"));
}
