//! One event of each type, with the data it has in JSON.

mod arrival;
mod creation;
mod dispatch;

use antiphon_core::port::{BootTime, Rule};
use antiphon_core::*;
use serde_json::{Value, json};

use crate::{UUID, at, ten, written};

/// An event's body, its type and its data.
pub(crate) type Specimen = (EventBody, &'static str, Value);

/// Around a body, always the same.
pub(crate) fn event(body: impl Into<EventBody>) -> Event {
    Event {
        position: Position(7),
        task_id: TaskId::parse("t1").unwrap(),
        seq: Seq(3),
        at: at("2026-02-18T12:00:00Z"),
        body: body.into(),
    }
}

/// The same in JSON.
pub(crate) fn envelope(kind: &str, data: &Value) -> Value {
    json!({
        "v": 1, "position": 7, "task_id": "t1", "seq": 3, "at": "2026-02-18T12:00:00Z",
        "type": kind, "data": data
    })
}

/// One of each, with every field it can have, in the order of [`EventBody::TYPES`].
pub(crate) fn whole() -> Vec<Specimen> {
    let said = UserMessage::text("hi", ten());
    let appended = MessageAppended {
        message: said.clone().into(),
        queued: Some(interaction_id()),
        superseded: true,
    };
    let said = written(&said);
    vec![
        creation::whole(),
        (
            TaskRestored { file: "backup.db".to_owned() }.into(),
            "task_restored",
            json!({"file": "backup.db"}),
        ),
        failed(),
        moved(),
        (
            appended.into(),
            "message_appended",
            json!({"message": said, "queued": UUID, "superseded": true}),
        ),
        arrival::queued(),
        arrival::request_sent(),
        arrival::replied(),
        question_asked(),
        question_answered(),
        refused(),
        started(),
        dispatch::requested(),
        dispatch::dispatched(),
        dispatch::awaited(),
        dispatch::handed_over(),
        dispatch::relayed(),
        paid(),
        raised(),
        (
            OutputRejected { reason: "`sum` is missing".to_owned() }.into(),
            "output_rejected",
            json!({"reason": "`sum` is missing"}),
        ),
        (
            TodoChanged {
                items: vec![
                    TodoItem { text: "read".to_owned(), status: TodoStatus::Done },
                    TodoItem { text: "write".to_owned(), status: TodoStatus::InProgress },
                    TodoItem { text: "test".to_owned(), status: TodoStatus::Pending },
                ],
            }
            .into(),
            "todo_changed",
            json!({"items": [
                {"text": "read", "status": "done"}, {"text": "write", "status": "in_progress"},
                {"text": "test", "status": "pending"},
            ]}),
        ),
        (
            Compacted { summary: "They said hi.".to_owned(), kept_from: 12 }.into(),
            "compacted",
            json!({"summary": "They said hi.", "kept_from": 12}),
        ),
    ]
}

/// Those with fields that can be absent, without them.
pub(crate) fn bare() -> Vec<Specimen> {
    let said = UserMessage::text("hi", ten());
    let paid = UsageRecorded { model: "m".to_owned(), usage: Usage::default(), purpose: None };
    let asked = ApprovalRequested { expires_at: None, boot_until: None, ..approval_requested() };
    let mut question = asked_data();
    for absent in ["expires_at", "boot_until"] {
        question.as_object_mut().unwrap().remove(absent);
    }
    let decided = ApprovalDecided { comment: None, ..approval_decided() };
    let plan = Question::Plan(PlanQuestion { plan: "1. Look.".to_owned() });
    let planned = ApprovalRequested { question: Some(plan), ..asked.clone() };
    let mut planned_data = question.clone();
    planned_data["question"] = json!({"kind": "plan", "plan": "1. Look."});
    vec![
        creation::bare(),
        (
            StatusChanged::new(TaskStatus::Running).into(),
            "status_changed",
            json!({"status": "running"}),
        ),
        moved_once(),
        (
            MessageAppended::new(Message::from(said.clone())).into(),
            "message_appended",
            json!({"message": written(&said)}),
        ),
        arrival::queued_by_the_user(),
        arrival::request_sent_in_passing(),
        arrival::replied_to_the_user(),
        (asked.into(), "approval_requested", question),
        (planned.into(), "approval_requested", planned_data),
        (
            decided.into(),
            "approval_decided",
            json!({"approval_id": "a1", "decision": "deny", "by": "user"}),
        ),
        dispatch::awaited_for_ever(),
        dispatch::handed_over_as_is(),
        (
            paid.into(),
            "usage_recorded",
            json!({"model": "m", "usage": {"input_tokens": 0, "output_tokens": 0}}),
        ),
        (
            BudgetRaised { nano_usd: 1, payer: None, by: "user".to_owned(), comment: None }.into(),
            "budget_raised",
            json!({"nano_usd": 1, "by": "user"}),
        ),
    ]
}

/// A dispatch of each join, and of each context that has children.
pub(crate) fn dispatches() -> Vec<Specimen> {
    dispatch::of_each_kind()
}

/// An arrival of each content, from every sender that may send it.
pub(crate) fn arrivals() -> Vec<Specimen> {
    arrival::of_each_content()
}

fn outage_wait() -> Value {
    json!({
        "code": "overloaded", "error": "the provider is overloaded: busy", "attempt": 3,
        "next_at": "2026-02-18T12:00:30Z", "superseded": true
    })
}

/// A status of each kind, with what goes with it.
pub(crate) fn statuses() -> Vec<Specimen> {
    let specimen = |status, detail: Option<Value>, waiting_for, data| {
        (StatusChanged { status, detail, waiting_for }.into(), "status_changed", data)
    };
    vec![
        specimen(TaskStatus::Pending, None, None, json!({"status": "pending"})),
        specimen(
            TaskStatus::InputRequired,
            None,
            Some(WaitingFor::Approval),
            json!({"status": "input_required", "waiting_for": "approval"}),
        ),
        specimen(
            TaskStatus::InputRequired,
            None,
            Some(WaitingFor::Resume),
            json!({"status": "input_required", "waiting_for": "resume"}),
        ),
        specimen(
            TaskStatus::InputRequired,
            None,
            Some(WaitingFor::ToolResult),
            json!({"status": "input_required", "waiting_for": "tool_result"}),
        ),
        specimen(
            TaskStatus::InputRequired,
            Some(json!({"scope": "total"})),
            Some(WaitingFor::Budget),
            json!({"status": "input_required", "waiting_for": "budget", "detail": {"scope": "total"}}),
        ),
        specimen(
            TaskStatus::Running,
            Some(outage_wait()),
            Some(WaitingFor::Model),
            json!({"status": "running", "waiting_for": "model", "detail": outage_wait()}),
        ),
        specimen(
            TaskStatus::Running,
            Some(outage_wait()),
            Some(WaitingFor::Peer),
            json!({"status": "running", "waiting_for": "peer", "detail": outage_wait()}),
        ),
        specimen(
            TaskStatus::InputRequired,
            Some(json!({"peer": "office", "task_id": "t2", "waiting_for": "approval"})),
            None,
            json!({"status": "input_required",
                "detail": {"peer": "office", "task_id": "t2", "waiting_for": "approval"}}),
        ),
        specimen(
            TaskStatus::Completed,
            Some(Value::Null),
            None,
            json!({"status": "completed", "detail": null}),
        ),
        specimen(
            TaskStatus::Completed,
            Some(json!({"sum": 3})),
            None,
            json!({"status": "completed", "detail": {"sum": 3}}),
        ),
        specimen(TaskStatus::Canceled, None, None, json!({"status": "canceled"})),
    ]
}

pub(crate) fn agent_id() -> AgentId {
    UUID.parse::<uuid::Uuid>().unwrap().into()
}

fn interaction_id() -> InteractionId {
    UUID.parse::<uuid::Uuid>().unwrap().into()
}

fn failed() -> Specimen {
    let limit = json!({"limit": "turns", "max": 3});
    let detail = json!({"code": "limit_reached", "error": "out of turns", "limit": limit});
    let failed = StatusChanged {
        status: TaskStatus::Failed,
        detail: Some(detail.clone()),
        waiting_for: None,
    };
    (failed.into(), "status_changed", json!({"status": "failed", "detail": detail}))
}

/// Several changes in a row.
fn moved() -> Specimen {
    let through = vec![AgentState::Reflecting, AgentState::Idle];
    let moved = StateChanged {
        agent_id: agent_id(),
        from: AgentState::ToolCall,
        through,
        to: AgentState::Thinking,
    };
    let data = json!({
        "agent_id": UUID, "from": "toolcall", "through": ["reflecting", "idle"], "to": "thinking"
    });
    (moved.into(), "state_changed", data)
}

fn moved_once() -> Specimen {
    let moved = StateChanged::new(agent_id(), AgentState::Idle, AgentState::Thinking);
    let data = json!({"agent_id": UUID, "from": "idle", "to": "thinking"});
    (moved.into(), "state_changed", data)
}

/// A deadline by a clock that cannot be set.
pub(crate) fn boot_until() -> BootTime {
    BootTime { boot_id: uuid::Uuid::from_u128(31), elapsed_ms: 42_340 }
}

pub(crate) fn boot_until_data() -> Value {
    json!({"boot_id": "00000000-0000-0000-0000-00000000001f", "elapsed_ms": 42340})
}

pub(crate) fn approval_requested() -> ApprovalRequested {
    ApprovalRequested {
        approval_id: ApprovalId::parse("a1").unwrap(),
        tool_call_id: ToolCallId::parse("tc_1").unwrap(),
        tool_name: "bash".to_owned(),
        arguments: RawJson::parse(r#"{"command":"git push"}"#).unwrap(),
        reason: "it writes to a remote".to_owned(),
        rule: Rule("bash(git push *)".to_owned()),
        expires_at: Some(at("2026-02-18T13:00:00Z")),
        boot_until: Some(boot_until()),
        question: None,
    }
}

fn asked_data() -> Value {
    json!({
        "approval_id": "a1", "tool_call_id": "tc_1", "tool_name": "bash",
        "arguments": {"command": "git push"}, "reason": "it writes to a remote",
        "rule": "bash(git push *)", "expires_at": "2026-02-18T13:00:00Z",
        "boot_until": boot_until_data()
    })
}

pub(crate) fn approval_decided() -> ApprovalDecided {
    ApprovalDecided {
        approval_id: ApprovalId::parse("a1").unwrap(),
        decision: Decision::Deny,
        by: "user".to_owned(),
        comment: Some("not on a Friday".to_owned()),
        answer: None,
    }
}

/// A question with everything that a question can have.
fn question_asked() -> Specimen {
    let label = |label: &str| Choice { label: label.to_owned(), description: None };
    let described = Choice { description: Some("one file".to_owned()), ..label("SQLite") };
    let question = ChoiceQuestion {
        text: "Which database?".to_owned(),
        choices: vec![described, label("PostgreSQL")],
        multiple: true,
        free_text: true,
        default: Some(Answer { choices: vec!["SQLite".to_owned()], text: None }),
    };
    let requested =
        ApprovalRequested { question: Some(Question::Choice(question)), ..approval_requested() };
    let mut data = asked_data();
    data["question"] = json!({
        "kind": "choice", "text": "Which database?",
        "choices": [{"label": "SQLite", "description": "one file"}, {"label": "PostgreSQL"}],
        "multiple": true, "free_text": true, "default": {"choices": ["SQLite"]},
    });
    (requested.into(), "approval_requested", data)
}

fn question_answered() -> Specimen {
    let answer = Answer { choices: vec!["SQLite".to_owned()], text: Some("for now".to_owned()) };
    let decided = ApprovalDecided {
        decision: Decision::AllowOnce,
        answer: Some(answer),
        ..approval_decided()
    };
    let data = json!({
        "approval_id": "a1", "decision": "allow_once", "by": "user",
        "comment": "not on a Friday", "answer": {"choices": ["SQLite"], "text": "for now"},
    });
    (decided.into(), "approval_decided", data)
}

fn refused() -> Specimen {
    let refused = ToolRefused {
        tool_call_id: ToolCallId::parse("tc_1").unwrap(),
        tool_name: "bash".to_owned(),
        reason: "not on a Friday".to_owned(),
    };
    let data = json!({"tool_call_id": "tc_1", "tool_name": "bash", "reason": "not on a Friday"});
    (refused.into(), "tool_refused", data)
}

fn started() -> Specimen {
    let started = ToolStarted {
        tool_call_id: ToolCallId::parse("tc_1").unwrap(),
        tool_name: "bash".to_owned(),
        effect: Effect::SideEffect,
        note: Some(json!({"after": "1f"})),
    };
    let data = json!({
        "tool_call_id": "tc_1", "tool_name": "bash", "effect": "side_effect", "note": {"after": "1f"}
    });
    (started.into(), "tool_started", data)
}

fn paid() -> Specimen {
    let usage = Usage {
        input_tokens: 1,
        output_tokens: 2,
        cache_read_tokens: Some(3),
        cache_write_tokens: Some(4),
    };
    let purpose = Some(Purpose::Compaction);
    let paid = UsageRecorded { model: "scripted/hello".to_owned(), usage, purpose };
    let data = json!({
        "model": "scripted/hello",
        "usage": {
            "input_tokens": 1, "output_tokens": 2, "cache_read_tokens": 3, "cache_write_tokens": 4
        },
        "purpose": "compaction"
    });
    (paid.into(), "usage_recorded", data)
}

fn raised() -> Specimen {
    let raised = BudgetRaised {
        nano_usd: 5_000_000_000,
        payer: Some("tR7xQ2pL".to_owned()),
        by: "user".to_owned(),
        comment: Some("until Monday".to_owned()),
    };
    let data = json!({
        "nano_usd": 5_000_000_000_u64, "payer": "tR7xQ2pL", "by": "user", "comment": "until Monday"
    });
    (raised.into(), "budget_raised", data)
}
