//! The spans of one task.

use antiphon_core::*;
use antiphon_telemetry::{AttributeValue, FinishedSpan, SpanKind, SpanStatus, Traces};
use serde_json::json;

use crate::journal_builder::*;

const SONNET: &str = "anthropic/claude-sonnet-4-5";

/// All spans of a journal, in the order they ended.
pub(crate) fn exported(journal: &JournalBuilder) -> Vec<FinishedSpan> {
    let traces = Traces::new();
    journal.events.iter().flat_map(|event| traces.observe(event)).collect()
}

/// `NAME START..END`, in milliseconds after noon, and the error.
fn outline(spans: &[FinishedSpan]) -> Vec<String> {
    let ms = |at: chrono::DateTime<chrono::Utc>| (at - noon()).num_milliseconds();
    let line = |span: &FinishedSpan| {
        let error = text(span, "error.type").map(|word| format!(" {word}")).unwrap_or_default();
        assert_eq!(span.status == SpanStatus::Error, !error.is_empty());
        format!("{} {}..{}{error}", span.name, ms(span.began), ms(span.ended))
    };
    spans.iter().map(line).collect()
}

fn text<'a>(span: &'a FinishedSpan, name: &str) -> Option<&'a str> {
    let found = span.attributes.iter().find(|(key, _)| *key == name)?;
    match &found.1 {
        AttributeValue::Text(text) => Some(text),
        AttributeValue::Texts(_) | AttributeValue::Int(_) => None,
    }
}

fn a_turn(journal: &mut JournalBuilder) {
    let limits = TaskLimits { answer_tokens_max: 500.try_into().ok(), ..TaskLimits::default() };
    journal.append("t1", TaskCreated { limits, ..created("planner") });
    journal.at_ms(100).append("t1", status(TaskStatus::Running)).think("t1");
    let cached =
        Usage { cache_read_tokens: Some(1000), cache_write_tokens: Some(20), ..usage(100, 10) };
    journal.at_ms(2100).answer("t1", SONNET, cached).state_changed("t1", &[AgentState::ToolCall]);
}

#[test]
fn a_model_call_is_a_span_named_by_the_conventions() {
    let mut journal = JournalBuilder::new();
    a_turn(&mut journal);
    journal.at_ms(3000).append("t1", status(TaskStatus::Completed));
    let [chat, task] = exported(&journal).try_into().unwrap();
    let text = |text: &str| AttributeValue::Text(text.to_owned());
    assert_eq!(
        chat,
        FinishedSpan {
            trace_id: task.trace_id,
            span_id: chat.span_id,
            parent: Some(task.span_id),
            name: "chat claude-sonnet-4-5".to_owned(),
            kind: SpanKind::Client,
            began: after_ms(100),
            ended: after_ms(2100),
            attributes: vec![
                ("gen_ai.operation.name", text("chat")),
                ("gen_ai.conversation.id", text("s1")),
                ("antiphon.task.id", text("t1")),
                ("gen_ai.agent.name", text("planner")),
                ("gen_ai.provider.name", text("anthropic")),
                ("gen_ai.request.model", text("claude-sonnet-4-5")),
                ("gen_ai.request.max_tokens", AttributeValue::Int(500)),
                ("gen_ai.response.model", text("claude-sonnet-4-5")),
                ("gen_ai.response.finish_reasons", AttributeValue::Texts(vec!["stop".to_owned()])),
                ("gen_ai.usage.input_tokens", AttributeValue::Int(1120)),
                ("gen_ai.usage.output_tokens", AttributeValue::Int(10)),
                ("gen_ai.usage.cache_read.input_tokens", AttributeValue::Int(1000)),
                ("gen_ai.usage.cache_creation.input_tokens", AttributeValue::Int(20)),
            ],
            status: SpanStatus::Unset,
        }
    );
}

#[test]
fn a_task_is_a_span_around_its_calls() {
    let mut journal = JournalBuilder::new();
    a_turn(&mut journal);
    journal.append("t1", started("c1", "read"));
    journal.at_ms(2600).append("t1", result("c1", "read", Went::Wrong));
    journal.at_ms(3000).append("t1", status(TaskStatus::Completed));
    let [chat, call, task] = exported(&journal).try_into().unwrap();
    let text = |text: &str| AttributeValue::Text(text.to_owned());
    assert_eq!(
        call,
        FinishedSpan {
            trace_id: task.trace_id,
            span_id: call.span_id,
            parent: Some(task.span_id),
            name: "execute_tool read".to_owned(),
            kind: SpanKind::Internal,
            began: after_ms(2100),
            ended: after_ms(2600),
            attributes: vec![
                ("gen_ai.operation.name", text("execute_tool")),
                ("gen_ai.conversation.id", text("s1")),
                ("antiphon.task.id", text("t1")),
                ("gen_ai.agent.name", text("planner")),
                ("gen_ai.tool.name", text("read")),
                ("gen_ai.tool.call.id", text("c1")),
                ("gen_ai.tool.type", text("function")),
                ("error.type", text("tool_error")),
            ],
            status: SpanStatus::Error,
        }
    );
    assert_eq!(
        task,
        FinishedSpan {
            trace_id: chat.trace_id,
            span_id: task.span_id,
            parent: None,
            name: "invoke_agent planner".to_owned(),
            kind: SpanKind::Internal,
            began: after_ms(0),
            ended: after_ms(3000),
            attributes: vec![
                ("gen_ai.operation.name", text("invoke_agent")),
                ("gen_ai.conversation.id", text("s1")),
                ("antiphon.task.id", text("t1")),
                ("gen_ai.agent.name", text("planner")),
                ("gen_ai.provider.name", text("anthropic")),
                ("gen_ai.request.model", text("claude-sonnet-4-5")),
                ("gen_ai.usage.input_tokens", AttributeValue::Int(1120)),
                ("gen_ai.usage.output_tokens", AttributeValue::Int(10)),
                ("gen_ai.usage.cache_read.input_tokens", AttributeValue::Int(1000)),
                ("gen_ai.usage.cache_creation.input_tokens", AttributeValue::Int(20)),
                ("antiphon.task.status", text("completed")),
                ("antiphon.task.turns", AttributeValue::Int(1)),
            ],
            status: SpanStatus::Unset,
        }
    );
}

#[test]
fn no_span_contains_the_conversation() {
    let mut journal = JournalBuilder::new();
    journal.append(
        "t1",
        TaskCreated { system_prompt: "a secret scene".to_owned(), ..created("planner") },
    );
    journal.append("t1", user_message("a secret question", None)).think("t1");
    journal.append("t1", assistant_message(StopReason::Error, SONNET, usage(1, 1)));
    journal.append("t1", question("q1", "bash")).append("t1", refused("c1", "bash"));
    journal.append("t1", result("c1", "bash", Went::Wrong)).append("t1", started("c2", "bash"));
    journal.append(
        "t1",
        failed(json!({"code": "a secret: it is no code", "error": "a secret error"})),
    );
    let spans = exported(&journal);
    assert_eq!(
        outline(&spans),
        [
            "execute_tool bash 0..0 refused",
            "chat claude-sonnet-4-5 0..0 failed",
            "execute_tool bash 0..0 unfinished",
            "invoke_agent planner 0..0 failed",
        ]
    );
    assert!(!format!("{spans:?}").contains("secret"));
}

#[test]
fn an_interrupted_answer_has_an_error() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).think("t1");
    journal.at_ms(700).append("t1", assistant_message(StopReason::Error, SONNET, usage(0, 0)));
    journal.append("t1", paid(SONNET, usage(9, 3)));
    journal.at_ms(900).append("t1", failed(json!({"code": "overloaded", "error": "come back"})));
    let spans = exported(&journal);
    assert_eq!(
        outline(&spans),
        ["chat claude-sonnet-4-5 0..700 overloaded", "invoke_agent planner 0..900 overloaded"]
    );
    let tokens = ("gen_ai.usage.input_tokens", AttributeValue::Int(9));
    assert!(spans[0].attributes.contains(&tokens));
}

#[test]
fn an_answer_that_never_came_ends_with_its_task() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).think("t1");
    journal.at_ms(900).append("t1", status(TaskStatus::Canceled));
    assert_eq!(
        outline(&exported(&journal)),
        ["chat claude-sonnet-4-5 0..900 canceled", "invoke_agent planner 0..900"]
    );
}

#[test]
fn a_step_that_is_resumed_in_the_middle_calls_no_model() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).append("t1", status(TaskStatus::Running));
    journal.state_changed("t1", &[AgentState::Thinking, AgentState::ToolCall]);
    journal
        .append("t1", started("c1", "read"))
        .at_ms(10)
        .append("t1", result("c1", "read", Went::Well));
    journal.state_changed("t1", &[AgentState::Reflecting, AgentState::Idle]);
    assert_eq!(outline(&exported(&journal)), ["execute_tool read 0..10"]);
}

#[test]
fn an_interrupted_and_repeated_model_call_has_two_spans() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).think("t1").at_ms(50).think("t1");
    journal.at_ms(70).answer("t1", SONNET, usage(1, 1));
    let spans = exported(&journal);
    assert_eq!(
        outline(&spans),
        ["chat claude-sonnet-4-5 0..50 interrupted", "chat claude-sonnet-4-5 50..70"]
    );
    assert_ne!(spans[0].span_id, spans[1].span_id);
}

#[test]
fn a_summary_has_its_own_span_and_the_answer_starts_after_it() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).think("t1");
    let purpose = Some(Purpose::Compaction);
    journal.at_ms(40).append("t1", UsageRecorded { purpose, ..paid(SONNET, usage(5, 5)) });
    journal.append("t1", Compacted { summary: String::new(), kept_from: 1 });
    journal.at_ms(60).answer("t1", SONNET, usage(1, 1));
    let spans = exported(&journal);
    assert_eq!(outline(&spans), ["chat claude-sonnet-4-5 0..40", "chat claude-sonnet-4-5 40..60"]);
    assert_eq!(text(&spans[0], "antiphon.purpose"), Some("compaction"));
    assert_eq!(text(&spans[1], "antiphon.purpose"), None);
    assert_ne!(spans[0].span_id, spans[1].span_id);
}

#[test]
fn an_agent_that_takes_over_is_named_from_then_on() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).append("t1", status(TaskStatus::Running));
    journal.append(
        "t1",
        HandedOver {
            tool_call_id: call_id("c1"),
            agent: "coder".to_owned(),
            model: ModelRef::parse("gemini/flash").ok(),
            fallbacks: vec![],
            system_prompt: String::new(),
            tools: None,
            agents: CallableAgents::Any,
        },
    );
    journal.append("t1", result("c1", "call_agent", Went::Well)).think("t1");
    journal.answer("t1", "gemini/flash", usage(1, 1)).append("t1", status(TaskStatus::Completed));
    let [call, chat, task] = exported(&journal).try_into().unwrap();
    assert_eq!(
        [&call.name, &chat.name, &task.name],
        ["execute_tool call_agent", "chat flash", "invoke_agent planner"]
    );
    assert_eq!(text(&chat, "gen_ai.agent.name"), Some("coder"));
    assert_eq!(text(&chat, "gen_ai.provider.name"), Some("gcp.gemini"));
}

#[test]
fn a_reused_call_id_makes_another_call() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).append("t1", status(TaskStatus::Running));
    for _ in 0..2 {
        journal.append("t1", started("c1", "read")).append("t1", result("c1", "read", Went::Well));
    }
    let [first, second] = exported(&journal).try_into().unwrap();
    assert_ne!(first.span_id, second.span_id);
}

#[test]
fn a_long_name_is_cut() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created(&"ü".repeat(1000))).append("t1", status(TaskStatus::Completed));
    let [task] = exported(&journal).try_into().unwrap();
    assert!(task.name.len() <= antiphon_telemetry::ATTRIBUTE_BYTES_MAX);
    let agent = text(&task, "gen_ai.agent.name").unwrap();
    assert_eq!(agent, "ü".repeat(antiphon_telemetry::ATTRIBUTE_BYTES_MAX / 2));
}

#[test]
fn running_calls_end_with_their_task_in_order() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner"));
    for number in 0..8 {
        journal.at_ms(number).append("t1", started(&format!("c{number}"), "read"));
    }
    journal.at_ms(9).append("t1", status(TaskStatus::Canceled));
    let mut expected: Vec<_> =
        (0..8).map(|number| format!("execute_tool read {number}..9 unfinished")).collect();
    expected.push("invoke_agent planner 0..9".to_owned());
    assert_eq!(outline(&exported(&journal)), expected);
}

#[test]
fn an_interrupted_call_that_is_refused_later_counts_as_refused() {
    let mut journal = JournalBuilder::new();
    journal.append("t1", created("planner")).append("t1", status(TaskStatus::Running));
    journal.append("t1", started("c1", "bash")).at_ms(5).append("t1", refused("c1", "bash"));
    journal.append("t1", result("c1", "bash", Went::Wrong));
    assert_eq!(outline(&exported(&journal)), ["execute_tool bash 0..5 refused"]);
}
