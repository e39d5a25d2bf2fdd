//! Sample events with every field, and values that stores tend to change.

mod arrival;
mod dispatch;

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use antiphon_core::port::{BootTime, Rule};
use antiphon_core::{
    AgentId, AgentState, Answer, ApprovalDecided, ApprovalId, ApprovalRequested, AssistantBlock,
    AssistantMessage, BudgetRaised, CallableAgents, CanonicalHeader, Choice, ChoiceQuestion,
    Compacted, Decision, Effect, EventBody, HistoryRef, ImageBlock, ImportedTimes, InputBlock,
    ModelOptions, ModelRef, OpaqueBlock, OutputRejected, PeerCancel, Provenance, Purpose, Question,
    RawJson, Role, RunnerConfig, Sampling, Seq, SessionId, Signature, StateChanged, StatusChanged,
    StopReason, TaskAccess, TaskCreated, TaskLimits, TaskRestored, TaskStatus, Temperature,
    ThinkingBlock, TodoChanged, TodoItem, TodoStatus, Tool, ToolArguments, ToolCallBlock,
    ToolCallId, ToolChoice, ToolRefused, ToolResultMessage, ToolStarted, Usage, UsageRecorded,
    UserMessage, WaitingFor,
};
use chrono::DateTime;
use serde_json::{Value, json};
use uuid::Uuid;

use super::test_journal::{noon, said, task};
use crate::suite::{During, Finding};

/// Text that careless stores truncate, escape twice, normalize or refuse.
const ODD_TEXT: &str = "line\r\n\ttab \u{0}nul \"quotes\" 'single' \\ ; -- %s ${x} é e\u{301} \
                        \u{1F600} \u{202E}rtl \u{FFFF} ";

/// Arguments whose bytes carry more than their value: `1.0`, an integer of 30 digits, escapes, a
/// repeated key, white space.
pub(super) const ODD_ARGUMENTS: &str = r#"{ "z":1.0, "a":1e2 ,"n":123456789012345678901234567890,
 "u":"\u00e9\ud83d\ude00\/", "a":-0, "deep":[[[[{}]]]], "":null }"#;

/// Bodies of all types. The first is the creation of a task; none ends it.
pub(super) fn specimens() -> Result<Vec<EventBody>, Finding> {
    let mut bodies = of_the_work()?;
    bodies.extend(dispatch::between_tasks()?);
    bodies.extend(of_approvals()?);
    bodies.extend(arrival::of_the_inbox()?);
    Ok(bodies)
}

fn odd_answer() -> Answer {
    Answer { choices: vec![ODD_TEXT.to_owned()], text: Some(ODD_TEXT.to_owned()) }
}

/// Approval events of a running task.
fn of_approvals() -> Result<Vec<EventBody>, Finding> {
    let approval_id = ApprovalId::parse("approval-é.1").during("an approval id")?;
    Ok(vec![
        EventBody::from(ApprovalRequested {
            approval_id: approval_id.clone(),
            tool_call_id: call_id()?,
            tool_name: "bash".to_owned(),
            arguments: RawJson::parse(ODD_ARGUMENTS).during("JSON")?,
            reason: ODD_TEXT.to_owned(),
            rule: Rule(ODD_TEXT.to_owned()),
            expires_at: DateTime::from_timestamp(1_771_416_000, 123_456_789),
            boot_until: Some(odd_boot_time()),
            question: Some(Question::Choice(ChoiceQuestion {
                text: ODD_TEXT.to_owned(),
                choices: vec![Choice {
                    label: ODD_TEXT.to_owned(),
                    description: Some(ODD_TEXT.to_owned()),
                }],
                multiple: true,
                free_text: false,
                default: Some(odd_answer()),
            })),
        }),
        EventBody::from(ApprovalDecided {
            approval_id,
            decision: Decision::AllowTask,
            by: ODD_TEXT.to_owned(),
            comment: Some(ODD_TEXT.to_owned()),
            answer: Some(odd_answer()),
        }),
    ])
}

fn of_the_work() -> Result<Vec<EventBody>, Finding> {
    Ok(vec![
        created()?,
        EventBody::from(TaskRestored { file: ODD_TEXT.to_owned() }),
        EventBody::from(StatusChanged {
            status: TaskStatus::Running,
            detail: Some(odd_value()),
            waiting_for: Some(WaitingFor::Resume),
        }),
        EventBody::from(StateChanged {
            agent_id: AgentId(Uuid::from_u128(7)),
            from: AgentState::ToolCall,
            through: vec![AgentState::Reflecting, AgentState::Idle],
            to: AgentState::Thinking,
        }),
        said(user()?),
        said(assistant()?),
        EventBody::from(ToolStarted {
            tool_call_id: call_id()?,
            tool_name: "bash".to_owned(),
            effect: Effect::SideEffect,
            note: Some(json!({ "before": ODD_TEXT })),
        }),
        said(tool_result()?),
        EventBody::from(ToolRefused {
            tool_call_id: call_id()?,
            tool_name: "bash".to_owned(),
            reason: ODD_TEXT.to_owned(),
        }),
        EventBody::from(OutputRejected { reason: ODD_TEXT.to_owned() }),
        EventBody::from(TodoChanged {
            items: vec![TodoItem { text: ODD_TEXT.to_owned(), status: TodoStatus::InProgress }],
        }),
        EventBody::from(Compacted { summary: ODD_TEXT.to_owned(), kept_from: u64::MAX }),
        EventBody::from(UsageRecorded {
            model: "scripted/hello".to_owned(),
            usage: Usage {
                input_tokens: u64::MAX,
                output_tokens: 0,
                cache_read_tokens: Some(0),
                cache_write_tokens: None,
            },
            purpose: Some(Purpose::Compaction),
        }),
        EventBody::from(BudgetRaised {
            nano_usd: u64::MAX,
            payer: Some(ODD_TEXT.to_owned()),
            by: ODD_TEXT.to_owned(),
            comment: Some(ODD_TEXT.to_owned()),
        }),
    ])
}

fn created() -> Result<EventBody, Finding> {
    Ok(EventBody::from(TaskCreated {
        agent: ODD_TEXT.to_owned(),
        session_id: SessionId::parse("session-é.1").during("a session id")?,
        parent: Some(task(99)),
        root: Some(task(98)),
        depth: u32::MAX,
        history: Some(HistoryRef { task_id: task(97), seq: Seq(u64::MAX) }),
        model: Some(ModelRef::parse("scripted/hello").during("a model")?),
        fallbacks: vec![ModelRef::parse("local/org/model.gguf").during("a model")?],
        system_prompt: ODD_TEXT.to_owned(),
        tools: Some(vec![ODD_TEXT.to_owned(), String::new()]),
        parallel_tools: vec![ODD_TEXT.to_owned(), String::new()],
        external_tools: vec![Arc::new(Tool {
            name: ODD_TEXT.to_owned(),
            description: String::new(),
            parameters: RawJson::parse(ODD_ARGUMENTS).during("JSON")?,
        })],
        keeps_client_tools: true,
        agents: CallableAgents::Only(vec![ODD_TEXT.to_owned(), String::new()]),
        runner: Some(RunnerConfig::new(ODD_TEXT).with_config(odd_value())),
        resident: true,
        limits: TaskLimits {
            turns_max: Some(NonZeroU32::MAX),
            answer_tokens_max: None,
            tool_calls_max: Some(NonZeroU32::MIN),
            tokens_max: Some(NonZeroU64::MIN),
            cost_nano_usd_max: Some(NonZeroU64::MAX),
            wall_clock_s_max: None,
            depth_max: Some(NonZeroU32::MIN),
            fan_out_max: Some(NonZeroU32::MAX),
            tasks_max: Some(NonZeroU32::MAX),
        },
        output_schema: Some(RawJson::parse(ODD_ARGUMENTS).during("JSON")?),
        model_options: ModelOptions {
            temperature: Some(Temperature::new(2.0).during("a temperature")?),
            tool_choice: ToolChoice::Named(ODD_TEXT.to_owned()),
            thinking_tokens: Some(NonZeroU32::MAX),
            sampling: Sampling { stop: vec![ODD_TEXT.to_owned()], ..Sampling::default() },
        },
        payer: Some(ODD_TEXT.to_owned()),
        route: Some(RawJson::parse(ODD_ARGUMENTS).during("JSON")?),
        provenance: Provenance::WriteKey(ODD_TEXT.to_owned()),
        unstored: true,
        canonical: vec![CanonicalHeader {
            id: Uuid::from_u128(7).into(),
            role: Role::System,
            timestamp: noon(),
            metadata: [(ODD_TEXT.to_owned(), ODD_TEXT.to_owned())].into(),
        }],
        imported: Some(ImportedTimes { created_at: DateTime::UNIX_EPOCH, updated_at: noon() }),
        boot_time: Some(odd_boot_time()),
        followed: true,
        cancels: Some(PeerCancel { task_id: task(96), remote_task_id: Some(task(95)) }),
        access: TaskAccess::ReadOnly,
    }))
}

/// Numbers at their limits, and text.
fn odd_boot_time() -> BootTime {
    BootTime { boot_id: Uuid::max(), elapsed_ms: u64::MAX }
}

fn odd_value() -> Value {
    json!({
        "z": [1.0, 0.1, 1e300, -0.0, u64::MAX, i64::MIN],
        "a": {"": null, "text": ODD_TEXT},
    })
}

fn user() -> Result<UserMessage, Finding> {
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    Ok(UserMessage {
        content: vec![
            InputBlock::text(ODD_TEXT),
            InputBlock::text(""),
            InputBlock::Image(ImageBlock::new("image/png", every_byte).during("an image")?),
        ],
        timestamp: noon(),
    })
}

fn assistant() -> Result<AssistantMessage, Finding> {
    let call = |id: ToolCallId, arguments| {
        AssistantBlock::ToolCall(ToolCallBlock {
            id,
            name: "bash".to_owned(),
            arguments,
            signature: Some(Signature("c2ln".to_owned())),
        })
    };
    let other_id = ToolCallId::parse("call_2").during("a call id")?;
    Ok(AssistantMessage {
        content: vec![
            AssistantBlock::Thinking(ThinkingBlock {
                thinking: String::new(),
                signature: Some(Signature("EqQB+/==".to_owned())),
            }),
            AssistantBlock::text(ODD_TEXT),
            AssistantBlock::Opaque(OpaqueBlock {
                kind: "redacted_thinking".to_owned(),
                value: RawJson::parse(ODD_ARGUMENTS).during("JSON")?,
            }),
            call(call_id()?, ToolArguments::Object(RawJson::parse(ODD_ARGUMENTS).during("JSON")?)),
            call(other_id, ToolArguments::Malformed("{\"cut\": \"of".to_owned())),
        ],
        stop_reason: StopReason::ToolUse,
        raw_stop_reason: "tool_use".to_owned(),
        usage: Usage::default(),
        model: Some(ModelRef::parse("local/org/model.gguf").during("a model")?),
        timestamp: noon(),
    })
}

fn tool_result() -> Result<ToolResultMessage, Finding> {
    Ok(ToolResultMessage {
        tool_call_id: call_id()?,
        tool_name: "bash".to_owned(),
        content: vec![InputBlock::text(ODD_TEXT)],
        is_error: true,
        timestamp: noon(),
    })
}

fn call_id() -> Result<ToolCallId, Finding> {
    ToolCallId::parse("toolu_01-é").during("a call id")
}
