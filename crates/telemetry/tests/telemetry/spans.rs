//! The spans of one task.

use antiphon_core::*;
use antiphon_telemetry::{AttributeValue, FinishedSpan, SpanKind, SpanStatus, Traces};
use serde_json::json;

use crate::story::*;

const SONNET: &str = "anthropic/claude-sonnet-4-5";

/// Every span of a story, in the order they ended.
pub(crate) fn told(story: &Story) -> Vec<FinishedSpan> {
    let traces = Traces::new();
    story.events.iter().flat_map(|event| traces.observe(event)).collect()
}

/// `NAME BEGAN..ENDED`, in milliseconds behind noon, and what went wrong.
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

fn a_turn(story: &mut Story) {
    let limits = TaskLimits { answer_tokens_max: 500.try_into().ok(), ..TaskLimits::default() };
    story.tell("t1", TaskCreated { limits, ..created("planner") });
    story.at_ms(100).tell("t1", status(TaskStatus::Running)).think("t1");
    let cached =
        Usage { cache_read_tokens: Some(1000), cache_write_tokens: Some(20), ..usage(100, 10) };
    story.at_ms(2100).answer("t1", SONNET, cached).walk("t1", &[AgentState::ToolCall]);
}

#[test]
fn an_answer_is_a_span_in_the_words_of_the_conventions() {
    let mut story = Story::new();
    a_turn(&mut story);
    story.at_ms(3000).tell("t1", status(TaskStatus::Completed));
    let [chat, task] = told(&story).try_into().unwrap();
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
    let mut story = Story::new();
    a_turn(&mut story);
    story.tell("t1", started("c1", "read"));
    story.at_ms(2600).tell("t1", result("c1", "read", Went::Wrong));
    story.at_ms(3000).tell("t1", status(TaskStatus::Completed));
    let [chat, call, task] = told(&story).try_into().unwrap();
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
fn nothing_that_was_said_is_in_a_span() {
    let mut story = Story::new();
    story.tell(
        "t1",
        TaskCreated { system_prompt: "a secret scene".to_owned(), ..created("planner") },
    );
    story.tell("t1", asked("a secret question", None)).think("t1");
    story.tell("t1", said(StopReason::Error, SONNET, usage(1, 1)));
    story.tell("t1", question("q1", "bash")).tell("t1", refused("c1", "bash"));
    story.tell("t1", result("c1", "bash", Went::Wrong)).tell("t1", started("c2", "bash"));
    story.tell("t1", failed(json!({"code": "a secret: it is no code", "error": "a secret error"})));
    let spans = told(&story);
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
fn an_answer_that_broke_off_says_how() {
    let mut story = Story::new();
    story.tell("t1", created("planner")).think("t1");
    story.at_ms(700).tell("t1", said(StopReason::Error, SONNET, usage(0, 0)));
    story.tell("t1", paid(SONNET, usage(9, 3)));
    story.at_ms(900).tell("t1", failed(json!({"code": "overloaded", "error": "come back"})));
    let spans = told(&story);
    assert_eq!(
        outline(&spans),
        ["chat claude-sonnet-4-5 0..700 overloaded", "invoke_agent planner 0..900 overloaded"]
    );
    let tokens = ("gen_ai.usage.input_tokens", AttributeValue::Int(9));
    assert!(spans[0].attributes.contains(&tokens));
}

#[test]
fn an_answer_that_never_came_ends_with_its_task() {
    let mut story = Story::new();
    story.tell("t1", created("planner")).think("t1");
    story.at_ms(900).tell("t1", status(TaskStatus::Canceled));
    assert_eq!(
        outline(&told(&story)),
        ["chat claude-sonnet-4-5 0..900 canceled", "invoke_agent planner 0..900"]
    );
}

#[test]
fn a_lap_that_is_taken_up_in_its_middle_asks_nobody() {
    let mut story = Story::new();
    story.tell("t1", created("planner")).tell("t1", status(TaskStatus::Running));
    story.walk("t1", &[AgentState::Thinking, AgentState::ToolCall]);
    story.tell("t1", started("c1", "read")).at_ms(10).tell("t1", result("c1", "read", Went::Well));
    story.walk("t1", &[AgentState::Reflecting, AgentState::Idle]);
    assert_eq!(outline(&told(&story)), ["execute_tool read 0..10"]);
}

#[test]
fn a_model_that_was_cut_off_and_asked_again_has_two_spans() {
    let mut story = Story::new();
    story.tell("t1", created("planner")).think("t1").at_ms(50).think("t1");
    story.at_ms(70).answer("t1", SONNET, usage(1, 1));
    let spans = told(&story);
    assert_eq!(
        outline(&spans),
        ["chat claude-sonnet-4-5 0..50 interrupted", "chat claude-sonnet-4-5 50..70"]
    );
    assert_ne!(spans[0].span_id, spans[1].span_id);
}

#[test]
fn a_summary_has_a_span_of_its_own_and_the_answer_begins_behind_it() {
    let mut story = Story::new();
    story.tell("t1", created("planner")).think("t1");
    let purpose = Some(Purpose::Compaction);
    story.at_ms(40).tell("t1", UsageRecorded { purpose, ..paid(SONNET, usage(5, 5)) });
    story.tell("t1", Compacted { summary: String::new(), kept_from: 1 });
    story.at_ms(60).answer("t1", SONNET, usage(1, 1));
    let spans = told(&story);
    assert_eq!(outline(&spans), ["chat claude-sonnet-4-5 0..40", "chat claude-sonnet-4-5 40..60"]);
    assert_eq!(text(&spans[0], "antiphon.purpose"), Some("compaction"));
    assert_eq!(text(&spans[1], "antiphon.purpose"), None);
    assert_ne!(spans[0].span_id, spans[1].span_id);
}

#[test]
fn whoever_takes_over_is_named_from_then_on() {
    let mut story = Story::new();
    story.tell("t1", created("planner")).tell("t1", status(TaskStatus::Running));
    story.tell(
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
    story.tell("t1", result("c1", "call_agent", Went::Well)).think("t1");
    story.answer("t1", "gemini/flash", usage(1, 1)).tell("t1", status(TaskStatus::Completed));
    let [call, chat, task] = told(&story).try_into().unwrap();
    assert_eq!(
        [&call.name, &chat.name, &task.name],
        ["execute_tool call_agent", "chat flash", "invoke_agent planner"]
    );
    assert_eq!(text(&chat, "gen_ai.agent.name"), Some("coder"));
    assert_eq!(text(&chat, "gen_ai.provider.name"), Some("gcp.gemini"));
}

#[test]
fn a_model_that_uses_an_id_again_makes_another_call() {
    let mut story = Story::new();
    story.tell("t1", created("planner")).tell("t1", status(TaskStatus::Running));
    for _ in 0..2 {
        story.tell("t1", started("c1", "read")).tell("t1", result("c1", "read", Went::Well));
    }
    let [first, second] = told(&story).try_into().unwrap();
    assert_ne!(first.span_id, second.span_id);
}

#[test]
fn a_long_name_is_cut() {
    let mut story = Story::new();
    story.tell("t1", created(&"ü".repeat(1000))).tell("t1", status(TaskStatus::Completed));
    let [task] = told(&story).try_into().unwrap();
    assert!(task.name.len() <= antiphon_telemetry::ATTRIBUTE_BYTES_MAX);
    let agent = text(&task, "gen_ai.agent.name").unwrap();
    assert_eq!(agent, "ü".repeat(antiphon_telemetry::ATTRIBUTE_BYTES_MAX / 2));
}

#[test]
fn calls_that_their_task_did_not_wait_for_end_with_it_in_their_order() {
    let mut story = Story::new();
    story.tell("t1", created("planner"));
    for number in 0..8 {
        story.at_ms(number).tell("t1", started(&format!("c{number}"), "read"));
    }
    story.at_ms(9).tell("t1", status(TaskStatus::Canceled));
    let mut expected: Vec<_> =
        (0..8).map(|number| format!("execute_tool read {number}..9 unfinished")).collect();
    expected.push("invoke_agent planner 0..9".to_owned());
    assert_eq!(outline(&told(&story)), expected);
}

#[test]
fn a_call_that_was_cut_off_and_then_refused_was_refused() {
    let mut story = Story::new();
    story.tell("t1", created("planner")).tell("t1", status(TaskStatus::Running));
    story.tell("t1", started("c1", "bash")).at_ms(5).tell("t1", refused("c1", "bash"));
    story.tell("t1", result("c1", "bash", Went::Wrong));
    assert_eq!(outline(&told(&story)), ["execute_tool bash 0..5 refused"]);
}
