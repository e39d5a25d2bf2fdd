//! Builds journals in code.

use std::collections::HashMap;
use std::sync::Arc;

use antiphon_core::port::Rule;
use antiphon_core::*;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

/// A journal under construction.
#[derive(Debug)]
pub(crate) struct JournalBuilder {
    pub(crate) events: Vec<Event>,
    seqs: HashMap<TaskId, u64>,
    now: DateTime<Utc>,
}

/// The time of the first event.
pub(crate) fn noon() -> DateTime<Utc> {
    "2026-02-18T12:00:00Z".parse().unwrap()
}

/// This many milliseconds after noon.
pub(crate) fn after_ms(ms: i64) -> DateTime<Utc> {
    noon() + TimeDelta::milliseconds(ms)
}

impl JournalBuilder {
    pub(crate) fn new() -> Self {
        Self { events: Vec::new(), seqs: HashMap::new(), now: noon() }
    }

    /// The next events are this many milliseconds after noon.
    pub(crate) fn at_ms(&mut self, ms: i64) -> &mut Self {
        self.now = after_ms(ms);
        self
    }

    /// Appends an event of a task.
    pub(crate) fn append(&mut self, task: &str, body: impl Into<EventBody>) -> &mut Self {
        let task_id = task_id(task);
        let seq = self.seqs.entry(task_id.clone()).or_default();
        *seq += 1;
        self.events.push(Event {
            position: Position(self.events.len() as u64 + 1),
            task_id,
            seq: Seq(*seq),
            at: self.now,
            body: body.into(),
        });
        self
    }

    /// The agent of a task passes through these states.
    pub(crate) fn state_changed(&mut self, task: &str, states: &[AgentState]) -> &mut Self {
        for to in states {
            let from = match to {
                AgentState::Thinking => AgentState::Idle,
                AgentState::ToolCall => AgentState::Thinking,
                AgentState::Reflecting => AgentState::ToolCall,
                AgentState::Idle => AgentState::Reflecting,
            };
            let agent_id = AgentId::from(uuid::Uuid::from_u128(1));
            self.append(task, StateChanged::new(agent_id, from, *to));
        }
        self
    }

    /// The agent starts to think.
    pub(crate) fn think(&mut self, task: &str) -> &mut Self {
        self.state_changed(task, &[AgentState::Thinking])
    }

    /// The model answers, with its usage.
    pub(crate) fn answer(&mut self, task: &str, model: &str, usage: Usage) -> &mut Self {
        self.append(task, assistant_message(StopReason::EndTurn, model, usage));
        self.append(task, paid(model, usage))
    }

    /// Passes every event to a function.
    pub(crate) fn each(&self, see: impl FnMut(&Event)) {
        self.events.iter().for_each(see);
    }
}

pub(crate) fn task_id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

pub(crate) fn call_id(text: &str) -> ToolCallId {
    ToolCallId::parse(text).unwrap()
}

pub(crate) fn interaction(number: u128) -> InteractionId {
    InteractionId::from(uuid::Uuid::from_u128(number))
}

/// A root task, for a model of the price list.
pub(crate) fn created(agent: &str) -> TaskCreated {
    TaskCreated {
        model: Some(ModelRef::parse("anthropic/claude-sonnet-4-5").unwrap()),
        ..TaskCreated::new(agent, SessionId::parse("s1").unwrap())
    }
}

/// A child task.
pub(crate) fn child(agent: &str, parent: &str, root: &str) -> TaskCreated {
    TaskCreated {
        parent: Some(task_id(parent)),
        root: Some(task_id(root)),
        depth: 1,
        ..created(agent)
    }
}

pub(crate) fn status(status: TaskStatus) -> StatusChanged {
    StatusChanged::new(status)
}

pub(crate) fn failed(detail: Value) -> StatusChanged {
    StatusChanged { detail: Some(detail), ..StatusChanged::new(TaskStatus::Failed) }
}

pub(crate) fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, ..Usage::default() }
}

pub(crate) fn assistant_message(
    stop_reason: StopReason,
    model: &str,
    usage: Usage,
) -> MessageAppended {
    MessageAppended::new(AssistantMessage {
        content: vec![AssistantBlock::text("a secret answer")],
        stop_reason,
        raw_stop_reason: String::new(),
        usage,
        model: ModelRef::parse(model).ok(),
        timestamp: noon(),
    })
}

pub(crate) fn user_message(text: &str, queued: Option<InteractionId>) -> MessageAppended {
    MessageAppended { queued, ..MessageAppended::new(UserMessage::text(text, noon())) }
}

pub(crate) fn paid(model: &str, usage: Usage) -> UsageRecorded {
    UsageRecorded { model: model.to_owned(), usage, purpose: None }
}

pub(crate) fn started(call: &str, tool: &str) -> ToolStarted {
    let (tool_call_id, tool_name) = (call_id(call), tool.to_owned());
    ToolStarted { tool_call_id, tool_name, effect: Effect::ReadOnly, note: None }
}

pub(crate) fn refused(call: &str, tool: &str) -> ToolRefused {
    let reason = "a secret reason".to_owned();
    ToolRefused { tool_call_id: call_id(call), tool_name: tool.to_owned(), reason }
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Went {
    Well,
    Wrong,
}

pub(crate) fn result(call: &str, tool: &str, went: Went) -> MessageAppended {
    MessageAppended::new(ToolResultMessage {
        tool_call_id: call_id(call),
        tool_name: tool.to_owned(),
        content: vec![InputBlock::text("a secret result")],
        is_error: went == Went::Wrong,
        timestamp: noon(),
    })
}

pub(crate) fn question(id: &str, tool: &str) -> ApprovalRequested {
    ApprovalRequested {
        approval_id: ApprovalId::parse(id).unwrap(),
        tool_call_id: call_id("c1"),
        tool_name: tool.to_owned(),
        arguments: RawJson::parse(r#"{"command":"a secret argument"}"#).unwrap(),
        reason: "a secret reason".to_owned(),
        rule: Rule("bash(ls)".to_owned()),
        expires_at: None,
        boot_until: None,
        question: None,
    }
}

pub(crate) fn decided(id: &str, decision: Decision) -> ApprovalDecided {
    let approval_id = ApprovalId::parse(id).unwrap();
    ApprovalDecided {
        approval_id,
        decision,
        by: "somebody".to_owned(),
        comment: None,
        answer: None,
    }
}

pub(crate) fn queued(number: u128, class: PeerInputClass) -> MessageQueued {
    MessageQueued {
        id: interaction(number),
        mode: HandlingMode::Queue,
        from: Sender::User,
        content: InteractionContent::Message { body: "a secret message".to_owned(), blocks: None },
        class,
        render_metadata: None,
        quiet: false,
        reply_to: None,
        until: None,
        replaces: None,
        hops: 0,
        payload: None,
        provenance: Provenance::Unknown,
        boot_until: None,
    }
}

pub(crate) fn request(call: &str, number: u128) -> RequestSent {
    RequestSent {
        tool_call_id: call_id(call),
        id: interaction(number),
        to: AgentName::parse("critic").unwrap(),
        intent: "review".to_owned(),
        params: Value::Null,
        until: noon(),
        waits: true,
        boot_until: None,
    }
}

pub(crate) fn reply(number: u128, status: ResponseStatus) -> Replied {
    Replied {
        in_reply_to: interaction(number),
        to: Sender::User,
        reply_to: None,
        status,
        result: Value::Null,
    }
}

pub(crate) fn dispatched(call: &str, children: &[&str]) -> Dispatched {
    Dispatched {
        tool_call_id: call_id(call),
        context: ContextScope::Independent,
        join: Join::All,
        children: children.iter().map(|child| task_id(child)).collect(),
        left_out: Vec::new(),
    }
}

pub(crate) fn user_text(text: &str) -> Arc<Message> {
    UserMessage::text(text, noon()).into()
}
