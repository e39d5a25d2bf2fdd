//! Builds spans: names, attributes, status.

use antiphon_core::{ModelRef, StopReason, TaskId, TaskStatus, ToolCallId, Usage};
use chrono::{DateTime, Utc};

use crate::convention as named;
use crate::tasks::model_call::ModelCallEnded;
use crate::tasks::tool_calls::{CallOutcome, ToolCallEnded};
use crate::tasks::{TaskEnded, TaskFacts};
use crate::trace::TraceContext;
use crate::trace::span::{AttributeValue, FinishedSpan, SpanKind, SpanStatus, cut};
use crate::trace::trace_parent::SpanId;

/// The span id of a task.
pub(crate) fn task_span(task_id: &TaskId) -> SpanId {
    SpanId::derive(named::INVOKE_AGENT, &[task_id.as_str()])
}

/// The span id of a tool call. It includes the event, because a model may reuse a call id.
pub(crate) fn call_span(task_id: &TaskId, call: &ToolCallId, seq: u64) -> SpanId {
    SpanId::derive(named::EXECUTE_TOOL, &[task_id.as_str(), call.as_str(), &seq.to_string()])
}

/// The span of a task that ended.
pub(crate) fn task(
    task: &TaskFacts,
    context: &TraceContext,
    ended: TaskEnded,
    at: DateTime<Utc>,
) -> FinishedSpan {
    let mut attributes = Attributes::of(named::INVOKE_AGENT, task);
    attributes.text(named::AGENT_NAME, &task.agent);
    attributes.request_model(task.model.as_ref());
    attributes.usage(ended.usage);
    attributes.text(named::TASK_STATUS, ended.status.as_str());
    attributes.add(named::TASK_TURNS, ended.turns);
    let status = match ended.status {
        TaskStatus::Failed => attributes.error(ended.error.as_deref().unwrap_or("failed")),
        TaskStatus::Pending
        | TaskStatus::Running
        | TaskStatus::InputRequired
        | TaskStatus::Completed
        | TaskStatus::Canceled => SpanStatus::Unset,
    };
    FinishedSpan {
        trace_id: context.trace_id,
        span_id: task_span(&task.task_id),
        parent: context.parent,
        name: titled(named::INVOKE_AGENT, task.first_agent.as_ref().unwrap_or(&task.agent)),
        kind: SpanKind::Internal,
        began: task.began,
        ended: at,
        attributes: attributes.0,
        status,
    }
}

/// The span of a model call.
pub(crate) fn chat(task: &TaskFacts, context: &TraceContext, chat: ModelCallEnded) -> FinishedSpan {
    let requested = chat.requested.as_ref().or(chat.answered.as_ref());
    let mut attributes = Attributes::of(named::CHAT, task);
    attributes.text(named::AGENT_NAME, &task.agent);
    attributes.request_model(requested);
    if let Some(max) = task.answer_tokens_max {
        attributes.add(named::REQUEST_MAX_TOKENS, u64::from(max));
    }
    if let Some(answered) = &chat.answered {
        attributes.text(named::RESPONSE_MODEL, answered.model());
    }
    if let Some(stop) = chat.stop {
        let reasons = AttributeValue::Texts(vec![finish_reason(stop).to_owned()]);
        attributes.add(named::RESPONSE_FINISH_REASONS, reasons);
    }
    if let Some(usage) = chat.usage {
        attributes.usage(usage);
    }
    if chat.compaction {
        attributes.text(named::PURPOSE, named::PURPOSE_COMPACTION);
    }
    let status = match &chat.error {
        Some(word) => attributes.error(word),
        None => SpanStatus::Unset,
    };
    let seq = chat.seq.to_string();
    FinishedSpan {
        trace_id: context.trace_id,
        span_id: SpanId::derive(named::CHAT, &[task.task_id.as_str(), &seq]),
        parent: Some(task_span(&task.task_id)),
        name: titled(named::CHAT, requested.map_or("", ModelRef::model)),
        kind: SpanKind::Client,
        began: chat.began,
        ended: chat.ended,
        attributes: attributes.0,
        status,
    }
}

/// The span of a tool call; `None` if its start was not seen.
pub(crate) fn call(
    task: &TaskFacts,
    context: &TraceContext,
    call: ToolCallEnded,
) -> Option<FinishedSpan> {
    let (began, seq) = call.began?;
    let mut attributes = Attributes::of(named::EXECUTE_TOOL, task);
    attributes.text(named::AGENT_NAME, &task.agent);
    attributes.text(named::TOOL_NAME, &call.tool);
    attributes.text(named::TOOL_CALL_ID, call.id.as_str());
    attributes.text(named::TOOL_TYPE, named::TOOL_TYPE_FUNCTION);
    let status = match call.outcome {
        CallOutcome::Ok => SpanStatus::Unset,
        CallOutcome::Error => attributes.error("tool_error"),
        CallOutcome::Refused | CallOutcome::Unfinished => attributes.error(call.outcome.as_str()),
    };
    Some(FinishedSpan {
        trace_id: context.trace_id,
        span_id: call_span(&task.task_id, &call.id, seq),
        parent: Some(task_span(&task.task_id)),
        name: titled(named::EXECUTE_TOOL, &call.tool),
        kind: SpanKind::Internal,
        began,
        ended: call.ended,
        attributes: attributes.0,
        status,
    })
}

/// `OPERATION NAME`.
fn titled(operation: &str, name: &str) -> String {
    cut(format!("{operation} {name}").trim_end()).to_owned()
}

fn finish_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn => "stop",
        StopReason::Length => "length",
        StopReason::ToolUse => "tool_call",
        StopReason::Error | StopReason::Aborted => "error",
        StopReason::Unknown => "unknown",
    }
}

struct Attributes(Vec<(&'static str, AttributeValue)>);

impl Attributes {
    fn of(operation: &'static str, task: &TaskFacts) -> Self {
        let mut attributes = Self(Vec::with_capacity(16));
        attributes.text(named::OPERATION_NAME, operation);
        attributes.text(named::CONVERSATION_ID, &task.session_id);
        attributes.text(named::TASK_ID, task.task_id.as_str());
        attributes
    }

    fn add(&mut self, name: &'static str, value: impl Into<AttributeValue>) {
        self.0.push((name, value.into()));
    }

    fn text(&mut self, name: &'static str, text: &str) {
        self.add(name, text);
    }

    fn request_model(&mut self, model: Option<&ModelRef>) {
        let Some(model) = model else { return };
        self.text(named::PROVIDER_NAME, named::provider_name(model.provider()));
        self.text(named::REQUEST_MODEL, model.model());
    }

    fn usage(&mut self, usage: Usage) {
        self.add(named::USAGE_INPUT_TOKENS, named::input_tokens(usage));
        self.add(named::USAGE_OUTPUT_TOKENS, usage.output_tokens);
        if let Some(tokens) = usage.cache_read_tokens {
            self.add(named::USAGE_CACHE_READ, tokens);
        }
        if let Some(tokens) = usage.cache_write_tokens {
            self.add(named::USAGE_CACHE_CREATION, tokens);
        }
    }

    fn error(&mut self, word: &str) -> SpanStatus {
        self.text(named::ERROR_TYPE, word);
        SpanStatus::Error
    }
}
