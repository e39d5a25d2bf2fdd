//! Events for the checks.

use antiphon_core::port::Rule;
use antiphon_core::{
    AgentId, AgentState, ApprovalDecided, ApprovalId, ApprovalRequested, AssistantBlock,
    AssistantMessage, CallableAgents, Decision, Effect, EventBody, HandedOver, HandlingMode,
    InteractionId, MessageAppended, MessageQueued, ModelRef, RawJson, Replied, ResponseStatus,
    Sender, SessionId, StateChanged, StopReason, TaskCreated, ToolCallId, ToolStarted, Usage,
    UsageRecorded, UserMessage,
};
use serde_json::Value;
use uuid::Uuid;

use super::test_journal::{noon, said};
use crate::suite::{During, Finding};

/// The creation of a task in a session with this name.
pub(super) fn created_in(session: &str) -> Result<EventBody, Finding> {
    let session_id = SessionId::parse(session).during("a session id")?;
    Ok(TaskCreated::new("scribe", session_id).into())
}

/// A message of the user.
pub(super) fn asked(text: &str) -> EventBody {
    said(UserMessage::text(text, noon()))
}

/// An answer of the model.
pub(super) fn answered(text: &str) -> EventBody {
    said(AssistantMessage {
        content: vec![AssistantBlock::text(text)],
        stop_reason: StopReason::EndTurn,
        raw_stop_reason: "end_turn".to_owned(),
        usage: Usage::default(),
        model: None,
        timestamp: noon(),
    })
}

/// The start of the `n`th call.
pub(super) fn started(n: u64) -> Result<EventBody, Finding> {
    Ok(EventBody::from(ToolStarted {
        tool_call_id: call_id(n)?,
        tool_name: "look".to_owned(),
        effect: Effect::ReadOnly,
        note: None,
    }))
}

/// A step with tokens of `model`.
pub(super) fn paid(model: &str, usage: Usage) -> EventBody {
    EventBody::from(UsageRecorded { model: model.to_owned(), usage, purpose: None })
}

/// Another agent takes over the task.
pub(super) fn handed_over(agent: &str, model: Option<ModelRef>) -> Result<EventBody, Finding> {
    Ok(EventBody::from(HandedOver {
        tool_call_id: call_id(1)?,
        agent: agent.to_owned(),
        model,
        fallbacks: Vec::new(),
        system_prompt: String::new(),
        tools: None,
        agents: CallableAgents::Any,
    }))
}

/// The `n`th agent.
pub(super) fn agent_id(n: u128) -> AgentId {
    AgentId(Uuid::from_u128(n))
}

/// A change of the `n`th agent to the state after `from`.
pub(super) fn moved(n: u128, from: AgentState) -> EventBody {
    EventBody::from(StateChanged::new(agent_id(n), from, from.next()))
}

/// The `n`th approval.
pub(super) fn approval_id(n: u64) -> Result<ApprovalId, Finding> {
    ApprovalId::parse(&format!("approval-{n}")).during("an approval id")
}

/// A request for the `n`th approval.
pub(super) fn requested(n: u64) -> Result<ApprovalRequested, Finding> {
    Ok(ApprovalRequested {
        approval_id: approval_id(n)?,
        tool_call_id: call_id(n)?,
        tool_name: "bash".to_owned(),
        arguments: RawJson::parse(r#"{ "command":"rm", "n":1.0 }"#).during("JSON")?,
        reason: "it removes files".to_owned(),
        rule: Rule("bash(rm *)".to_owned()),
        expires_at: None,
        boot_until: None,
        question: None,
    })
}

/// A decision about the `n`th approval.
pub(super) fn decided(n: u64, decision: Decision, by: &str) -> Result<ApprovalDecided, Finding> {
    let approval_id = approval_id(n)?;
    Ok(ApprovalDecided { approval_id, decision, by: by.to_owned(), comment: None, answer: None })
}

/// The `n`th queued message.
pub(super) fn interaction_id(n: u128) -> InteractionId {
    InteractionId(Uuid::from_u128(n))
}

/// The arrival of the `n`th message.
pub(super) fn queued(n: u128) -> MessageQueued {
    let message = UserMessage::text(format!("message {n}"), noon());
    MessageQueued::of_user(interaction_id(n), HandlingMode::Steer, message)
}

/// The `n`th message joins the conversation.
pub(super) fn taken(n: u128) -> EventBody {
    let message = UserMessage::text(format!("message {n}"), noon());
    EventBody::from(MessageAppended::of_queued(message, interaction_id(n)))
}

/// An answer to the `n`th request.
pub(super) fn replied(n: u128, status: ResponseStatus, result: &str) -> Replied {
    Replied {
        in_reply_to: interaction_id(n),
        to: Sender::User,
        reply_to: None,
        status,
        result: Value::from(result),
    }
}

fn call_id(n: u64) -> Result<ToolCallId, Finding> {
    ToolCallId::parse(&format!("call-{n}")).during("a call id")
}
