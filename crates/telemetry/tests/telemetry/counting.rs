//! Counters and durations.

use antiphon_core::*;
use antiphon_telemetry::Metrics;
use serde_json::json;

use crate::journal_builder::*;
use crate::samples::{lines, lines_of, samples, value};

const SONNET: &str = "anthropic/claude-sonnet-4-5";

fn prices() -> PriceTable {
    let price = |usd: f64| UsdPerMillion::try_from(usd).unwrap();
    let sonnet = Price {
        input: price(3.0),
        output: price(15.0),
        cache_read: Some(price(0.3)),
        cache_write: None,
    };
    [(ModelRef::parse(SONNET).unwrap(), sonnet)].into_iter().collect()
}

fn counted(journal: &JournalBuilder) -> Metrics {
    let metrics = Metrics::with_prices(prices());
    journal.each(|event| metrics.observe(event));
    metrics
}

/// One task with one turn and one call.
fn one_task() -> JournalBuilder {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).append("t1", user_message("a secret question", None));
    journal.at_ms(100).append("t1", status(TaskStatus::Running)).think("t1");
    let cached = Usage { cache_read_tokens: Some(1000), ..usage(100, 10) };
    journal.at_ms(2100).answer("t1", SONNET, cached);
    journal.state_changed("t1", &[AgentState::ToolCall]).append("t1", started("c1", "read"));
    journal.at_ms(2600).append("t1", result("c1", "read", Went::Well));
    journal.state_changed("t1", &[AgentState::Reflecting, AgentState::Idle]);
    journal.at_ms(3000).append("t1", status(TaskStatus::Completed));
    journal
}

#[test]
fn all_events_of_a_task_are_counted() {
    let expected = r#"
antiphon_cost_usd_total{model="anthropic/claude-sonnet-4-5"} 0.00075
antiphon_journal_observed_position 12
antiphon_message_processing_duration_seconds_count{agent="planner"} 1
antiphon_message_processing_duration_seconds_sum{agent="planner"} 2.5
antiphon_messages_processed_total{agent="planner"} 1
antiphon_task_duration_seconds_count{status="completed"} 1
antiphon_task_duration_seconds_sum{status="completed"} 3
antiphon_tasks_created_total{agent="planner"} 1
antiphon_tasks_ended_total{agent="planner",status="completed"} 1
antiphon_tokens_total{model="anthropic/claude-sonnet-4-5",kind="cache_read"} 1000
antiphon_tokens_total{model="anthropic/claude-sonnet-4-5",kind="input"} 100
antiphon_tokens_total{model="anthropic/claude-sonnet-4-5",kind="output"} 10
antiphon_tool_call_duration_seconds_count{tool="read"} 1
antiphon_tool_call_duration_seconds_sum{tool="read"} 0.5
antiphon_tool_calls_total{tool="read",outcome="ok"} 1
antiphon_turns_total{model="anthropic/claude-sonnet-4-5"} 1
gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="claude-sonnet-4-5",error_type=""} 1
gen_ai_client_operation_duration_seconds_sum{gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="claude-sonnet-4-5",error_type=""} 2
gen_ai_client_token_usage_count{gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="claude-sonnet-4-5",gen_ai_token_type="input"} 1
gen_ai_client_token_usage_count{gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="claude-sonnet-4-5",gen_ai_token_type="output"} 1
gen_ai_client_token_usage_sum{gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="claude-sonnet-4-5",gen_ai_token_type="input"} 1100
gen_ai_client_token_usage_sum{gen_ai_operation_name="chat",gen_ai_provider_name="anthropic",gen_ai_request_model="claude-sonnet-4-5",gen_ai_token_type="output"} 10
"#;
    assert_eq!(lines(&counted(&one_task())), expected.trim().lines().collect::<Vec<_>>());
}

#[test]
fn a_repeated_event_is_counted_once() {
    let journal = one_task();
    let metrics = counted(&journal);
    let before = metrics.render();
    journal.each(|event| metrics.observe(event));
    metrics.observe(&journal.events[4]);
    assert_eq!(metrics.render(), before);
    assert_eq!(metrics.position(), Position(12));
}

#[test]
fn calls_are_counted_by_outcome() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).append("t1", status(TaskStatus::Running));
    journal.append("t1", started("c1", "read")).append("t1", started("c2", "read"));
    journal.append("t1", refused("c3", "bash")).append("t1", result("c3", "bash", Went::Wrong));
    journal.at_ms(250).append("t1", result("c2", "read", Went::Wrong));
    journal.at_ms(500).append("t1", result("c1", "read", Went::Well));
    // A model may reuse an id, and a call that runs again after a crash started earlier.
    journal
        .at_ms(600)
        .append("t1", started("c1", "bash"))
        .at_ms(700)
        .append("t1", started("c1", "bash"));
    journal.at_ms(1600).append("t1", status(TaskStatus::Canceled));
    let metrics = counted(&journal);
    assert_eq!(
        lines_of(&metrics, "antiphon_tool_calls_total"),
        [
            r#"antiphon_tool_calls_total{tool="bash",outcome="refused"} 1"#,
            r#"antiphon_tool_calls_total{tool="bash",outcome="unfinished"} 1"#,
            r#"antiphon_tool_calls_total{tool="read",outcome="error"} 1"#,
            r#"antiphon_tool_calls_total{tool="read",outcome="ok"} 1"#,
        ]
    );
    assert_eq!(
        lines_of(&metrics, "antiphon_tool_call_duration_seconds_sum"),
        [
            r#"antiphon_tool_call_duration_seconds_sum{tool="bash"} 1"#,
            r#"antiphon_tool_call_duration_seconds_sum{tool="read"} 0.75"#,
        ]
    );
    // A refused call did not run.
    assert_eq!(
        lines_of(&metrics, "antiphon_tool_call_duration_seconds_count"),
        [
            r#"antiphon_tool_call_duration_seconds_count{tool="bash"} 1"#,
            r#"antiphon_tool_call_duration_seconds_count{tool="read"} 2"#,
        ]
    );
}

#[test]
fn approvals_wait_until_they_are_decided_or_void() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner"));
    for id in ["q1", "q2", "q3", "q4"] {
        journal.append("t1", question(id, "bash"));
    }
    let metrics = counted(&journal);
    assert_eq!(value(&metrics, "antiphon_approvals_waiting"), "4");
    journal.at_ms(5000).append("t1", decided("q1", Decision::AllowAlways));
    journal.at_ms(6000).append("t1", decided("q2", Decision::Deny));
    journal.at_ms(7000).append("t1", decided("q3", Decision::Expire));
    journal.at_ms(8000).append("t1", status(TaskStatus::Canceled));
    journal.each(|event| metrics.observe(event));
    let of_approvals = lines(&metrics).into_iter().filter(|line| line.contains("_approval"));
    assert_eq!(
        of_approvals.collect::<Vec<_>>(),
        [
            r#"antiphon_approval_wait_seconds_count{status="allowed"} 1"#,
            r#"antiphon_approval_wait_seconds_count{status="denied"} 1"#,
            r#"antiphon_approval_wait_seconds_count{status="expired"} 1"#,
            r#"antiphon_approval_wait_seconds_count{status="void"} 1"#,
            r#"antiphon_approval_wait_seconds_sum{status="allowed"} 5"#,
            r#"antiphon_approval_wait_seconds_sum{status="denied"} 6"#,
            r#"antiphon_approval_wait_seconds_sum{status="expired"} 7"#,
            r#"antiphon_approval_wait_seconds_sum{status="void"} 8"#,
            r#"antiphon_approvals_decided_total{status="allowed"} 1"#,
            r#"antiphon_approvals_decided_total{status="denied"} 1"#,
            r#"antiphon_approvals_decided_total{status="expired"} 1"#,
            r#"antiphon_approvals_decided_total{status="void"} 1"#,
            r#"antiphon_approvals_requested_total{tool="bash"} 4"#,
        ]
    );
}

#[test]
fn messages_wait_until_they_are_taken_replaced_or_answered() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner"));
    journal.append("t1", queued(1, PeerInputClass::ActionableMessage));
    journal.append("t1", queued(2, PeerInputClass::PlainEvent));
    let newer =
        MessageQueued { replaces: Some(interaction(2)), ..queued(3, PeerInputClass::PlainEvent) };
    journal.append("t1", newer).append("t1", queued(4, PeerInputClass::ActionableRequest));
    journal.at_ms(500).append("t1", user_message("a secret message", Some(interaction(1))));
    journal
        .append("t1", reply(4, ResponseStatus::Accepted))
        .append("t1", reply(4, ResponseStatus::Failed));
    let metrics = counted(&journal);
    let of_inboxes = lines(&metrics)
        .into_iter()
        .filter(|line| line.contains("_interaction") || line.contains("_replies"));
    assert_eq!(
        of_inboxes.collect::<Vec<_>>(),
        [
            r#"antiphon_interaction_wait_seconds_count{class="actionable_message"} 1"#,
            r#"antiphon_interaction_wait_seconds_sum{class="actionable_message"} 0.5"#,
            r#"antiphon_interactions_queued_total{class="actionable_message"} 1"#,
            r#"antiphon_interactions_queued_total{class="actionable_request"} 1"#,
            r#"antiphon_interactions_queued_total{class="plain_event"} 2"#,
            r#"antiphon_interactions_taken_total{class="actionable_message"} 1"#,
            "antiphon_interactions_waiting 1",
            r#"antiphon_replies_total{status="accepted"} 1"#,
            r#"antiphon_replies_total{status="failed"} 1"#,
        ]
    );
}

#[test]
fn interactions_between_agents_are_counted() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).append("t1", request("c1", 1));
    journal.append("t1", dispatched("c2", &["t2", "t3"]));
    journal.append("t1", OutputRejected { reason: "a secret reason".to_owned() });
    journal.append("t1", Compacted { summary: "a secret summary".to_owned(), kept_from: 2 });
    let metrics = counted(&journal);
    assert_eq!(
        lines(&metrics),
        [
            "antiphon_compactions_total 1",
            "antiphon_dispatched_tasks_total 2",
            r#"antiphon_dispatches_total{context="independent",join="all"} 1"#,
            "antiphon_journal_observed_position 5",
            "antiphon_output_rejections_total 1",
            "antiphon_requests_sent_total 1",
            r#"antiphon_tasks_created_total{agent="planner"} 1"#,
            "antiphon_tasks_open 1",
        ]
    );
}

#[test]
fn a_model_without_a_price_is_reported() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).append("t1", paid("local/tiny", usage(5, 5)));
    journal.append("t1", paid(&format!("{SONNET}-20250929"), usage(1_000_000, 0)));
    let metrics = counted(&journal);
    assert_eq!(
        lines_of(&metrics, "antiphon_unpriced_answers_total"),
        [r#"antiphon_unpriced_answers_total{model="local/tiny"} 1"#]
    );
    assert_eq!(
        lines_of(&metrics, "antiphon_cost_usd_total"),
        [r#"antiphon_cost_usd_total{model="anthropic/claude-sonnet-4-5-20250929"} 3"#]
    );
}

#[test]
fn a_summary_costs_but_is_not_a_turn() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner"));
    let purpose = Some(Purpose::Compaction);
    journal.append("t1", UsageRecorded { purpose, ..paid(SONNET, usage(10, 10)) });
    let metrics = counted(&journal);
    assert_eq!(lines_of(&metrics, "antiphon_turns_total"), Vec::<String>::new());
    assert_eq!(lines_of(&metrics, "antiphon_tokens_total").len(), 2);
}

#[test]
fn messages_of_an_earlier_conversation_are_not_counted() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).append("t1", result("c1", "read", Went::Well));
    journal.append("t1", assistant_message(StopReason::EndTurn, SONNET, usage(1, 1)));
    let metrics = counted(&journal);
    assert_eq!(lines_of(&metrics, "antiphon_tool_calls_total"), Vec::<String>::new());
    let chats = "gen_ai_client_operation_duration_seconds_count";
    assert_eq!(lines_of(&metrics, chats), Vec::<String>::new());
}

#[test]
fn a_task_whose_creation_was_not_seen_is_counted_without_durations() {
    let journal = one_task();
    let metrics = Metrics::new();
    journal.events[6..].iter().for_each(|event| metrics.observe(event));
    assert_eq!(
        lines(&metrics),
        [
            "antiphon_journal_observed_position 12",
            r#"antiphon_tasks_ended_total{agent="unknown",status="completed"} 1"#,
            r#"antiphon_tool_calls_total{tool="read",outcome="ok"} 1"#,
        ]
    );
}

#[test]
fn a_clock_that_was_set_back_makes_no_duration_negative() {
    let mut journal = JournalBuilder::new();
    journal.at_ms(5000).append("t1", created("planner"));
    journal.at_ms(1000).append("t1", failed(json!({"code": "limit_reached"})));
    let metrics = counted(&journal);
    assert_eq!(value(&metrics, r#"antiphon_task_duration_seconds_sum{status="failed"}"#), "0");
    assert_eq!(value(&metrics, r#"antiphon_task_duration_seconds_count{status="failed"}"#), "1");
}

#[test]
fn every_metric_is_ours_or_the_conventions() {
    let types = samples(&counted(&one_task())).types;
    let known = |name: &str| name.starts_with("antiphon_") || name.starts_with("gen_ai_client_");
    assert_eq!(types.keys().find(|name| !known(name)), None);
    assert_eq!(types["antiphon_turns"], "counter");
    assert_eq!(types["antiphon_tasks_open"], "gauge");
    assert_eq!(types["gen_ai_client_operation_duration_seconds"], "histogram");
}

#[test]
fn a_model_above_the_limit_of_names_still_has_its_price() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner"));
    for number in 0..=antiphon_telemetry::LABEL_VALUES_MAX {
        journal.append("t1", paid(&format!("local/made_up_{number}"), usage(1, 1)));
    }
    journal.append("t1", paid(SONNET, usage(1_000_000, 0)));
    let metrics = counted(&journal);
    assert_eq!(value(&metrics, r#"antiphon_cost_usd_total{model="other"}"#), "3");
    assert_eq!(value(&metrics, r#"antiphon_unpriced_answers_total{model="other"}"#), "1");
}
