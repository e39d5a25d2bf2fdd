//! Summaries: what a journal lists is a fold over the events.

use std::collections::BTreeMap;

use antiphon_core::*;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use crate::specimen::{self, agent_id, approval_requested};
use crate::{UUID, both_ways, ten};

fn task_id() -> TaskId {
    TaskId::parse("t1").unwrap()
}

/// So many seconds after ten o'clock.
fn second(count: i64) -> DateTime<Utc> {
    ten() + TimeDelta::seconds(count)
}

fn created() -> TaskCreated {
    TaskCreated {
        model: Some(ModelRef::parse("p/m").unwrap()),
        ..TaskCreated::new("dev", SessionId::parse("s1").unwrap())
    }
}

/// The summary after these events, one per second.
fn after(events: impl IntoIterator<Item = EventBody>) -> TaskSummary {
    let mut summary = TaskSummary::created(task_id(), &created(), ten());
    for (count, body) in (1..).zip(events) {
        summary.apply(&body, second(count));
    }
    summary
}

fn user(content: Vec<InputBlock>) -> EventBody {
    MessageAppended::new(UserMessage { content, timestamp: ten() }).into()
}

fn asked(text: &str) -> EventBody {
    user(vec![InputBlock::text(text)])
}

fn answered(text: &str) -> EventBody {
    MessageAppended::new(AssistantMessage {
        content: vec![AssistantBlock::text(text)],
        stop_reason: StopReason::EndTurn,
        raw_stop_reason: String::new(),
        usage: Usage::default(),
        model: None,
        timestamp: ten(),
    })
    .into()
}

fn result(text: &str) -> EventBody {
    MessageAppended::new(ToolResultMessage {
        tool_call_id: ToolCallId::parse("tc_1").unwrap(),
        tool_name: "bash".to_owned(),
        content: vec![InputBlock::text(text)],
        is_error: false,
        timestamp: ten(),
    })
    .into()
}

fn status(status: TaskStatus) -> EventBody {
    StatusChanged::new(status).into()
}

fn waiting(waiting_for: WaitingFor) -> EventBody {
    let waiting_for = Some(waiting_for);
    StatusChanged { waiting_for, ..StatusChanged::new(TaskStatus::InputRequired) }.into()
}

fn started() -> EventBody {
    ToolStarted {
        tool_call_id: ToolCallId::parse("tc_1").unwrap(),
        tool_name: "bash".to_owned(),
        effect: Effect::SideEffect,
        note: None,
    }
    .into()
}

fn tokens(input_tokens: u64) -> Usage {
    Usage { input_tokens, ..Usage::default() }
}

fn paid(model: &str, input_tokens: u64, purpose: Option<Purpose>) -> EventBody {
    UsageRecorded { model: model.to_owned(), usage: tokens(input_tokens), purpose }.into()
}

#[test]
fn a_task_that_was_accepted_has_done_nothing() {
    let expected = TaskSummary {
        task_id: task_id(),
        agent: "dev".to_owned(),
        session_id: SessionId::parse("s1").unwrap(),
        parent: None,
        root: task_id(),
        payer: None,
        model: Some(ModelRef::parse("p/m").unwrap()),
        runs_on: RunsOn::default(),
        status: TaskStatus::Pending,
        waiting_for: None,
        wait: None,
        imported: None,
        title: String::new(),
        preview: None,
        seq: Seq(1),
        turns: 0,
        calls: 0,
        messages: 0,
        spent: BTreeMap::new(),
        created_at: ten(),
        last_event_at: ten(),
        ended_at: None,
    };
    assert_eq!(after([]), expected);
    let parent = Some(TaskId::parse("t0").unwrap());
    let root = Some(TaskId::parse("top").unwrap());
    let child = TaskCreated { parent: parent.clone(), root: root.clone(), ..created() };
    let summary = TaskSummary::created(task_id(), &child, ten());
    assert_eq!((summary.parent, Some(summary.root)), (parent, root));
}

#[test]
fn a_whole_life_is_summed_up() {
    let summary = after([
        status(TaskStatus::Running),
        asked("Count the files.\nAll of them."),
        answered("I look."),
        paid("p/m", 10, None),
        approval_requested().into(),
        waiting(WaitingFor::Approval),
        status(TaskStatus::Running),
        started(),
        result("3"),
        paid("p/small", 5, Some(Purpose::Compaction)),
        Compacted { summary: "They count.".to_owned(), kept_from: 2 }.into(),
        answered("There are three."),
        paid("p/m", 20, None),
        status(TaskStatus::Completed),
    ]);
    let expected = TaskSummary {
        status: TaskStatus::Completed,
        title: "Count the files.".to_owned(),
        preview: Some("There are three.".to_owned()),
        seq: Seq(15),
        turns: 2,
        calls: 1,
        messages: 4,
        spent: BTreeMap::from([("p/m".to_owned(), tokens(30)), ("p/small".to_owned(), tokens(5))]),
        last_event_at: second(14),
        ended_at: Some(second(14)),
        ..after([])
    };
    assert_eq!(summary, expected);
    assert_eq!(summary.usage(), tokens(35));
    assert_eq!(after([]).usage(), Usage::default());
}

#[test]
fn every_event_counts_and_only_some_are_summed_up() {
    let untouched = ["state_changed", "message_queued", "approval_requested", "approval_decided"];
    let between = ["tool_requested", "dispatched", "awaited", "relayed", "request_sent", "replied"];
    let others = ["task_restored", "tool_refused", "budget_raised", "output_rejected", "compacted"];
    let untouched = [&untouched[..], &between, &others, &["todo_changed"]].concat();
    for (body, kind, _) in specimen::whole() {
        let expected = TaskSummary { seq: Seq(2), last_event_at: second(1), ..after([]) };
        let counted = untouched.contains(&kind) || kind == "task_created";
        assert_eq!(after([body]) == expected, counted, "{kind}");
    }
}

fn handed_over(agent: &str, model: Option<&str>) -> EventBody {
    HandedOver {
        tool_call_id: ToolCallId::parse("tc_1").unwrap(),
        agent: agent.to_owned(),
        model: model.map(|model| ModelRef::parse(model).unwrap()),
        fallbacks: vec![ModelRef::parse("p/other").unwrap()],
        system_prompt: "Another scene.".to_owned(),
        tools: None,
        agents: CallableAgents::Any,
    }
    .into()
}

#[test]
fn a_task_belongs_to_the_agent_of_its_last_handover() {
    let before = || [asked("Is this legal?"), answered("I ask."), paid("p/m", 10, None)];
    let once = after(before().into_iter().chain([handed_over("lawyer", Some("p/law"))]));
    let expected = TaskSummary {
        agent: "lawyer".to_owned(),
        model: Some(ModelRef::parse("p/law").unwrap()),
        seq: Seq(5),
        last_event_at: second(4),
        ..after(before())
    };
    assert_eq!(once, expected);
    let twice = after([handed_over("lawyer", Some("p/law")), handed_over("clerk", None)]);
    assert_eq!((twice.agent.as_str(), twice.model), ("clerk", None));
}

#[test]
fn what_a_task_waits_for_is_known_while_it_waits() {
    for waiting_for in [
        WaitingFor::Approval,
        WaitingFor::Resume,
        WaitingFor::ToolResult,
        WaitingFor::Budget,
        WaitingFor::Model,
    ] {
        let summary = after([waiting(waiting_for)]);
        assert_eq!(
            (summary.status, summary.waiting_for, summary.ended_at),
            (TaskStatus::InputRequired, Some(waiting_for), None)
        );
        let summary = after([waiting(waiting_for), status(TaskStatus::Running)]);
        assert_eq!((summary.status, summary.waiting_for), (TaskStatus::Running, None));
        let summary = after([waiting(waiting_for), status(TaskStatus::Canceled)]);
        assert_eq!((summary.waiting_for, summary.ended_at), (None, Some(second(2))));
    }
}

#[test]
fn a_title_is_the_first_line_of_the_first_question() {
    let long = "x".repeat(500);
    for (text, title) in [
        ("Fix it", "Fix it"),
        ("\n \t\n  Fix it  \nplease", "Fix it"),
        ("Fix\u{200B}\u{E0041} it\u{202E}", "Fix it"),
        ("Grüße 👋", "Grüße 👋"),
        (&long, &long[..200]),
        (&"é".repeat(300), &"é".repeat(200)),
        ("", ""),
    ] {
        assert_eq!(after([asked(text), result("no"), asked("Later")]).title, {
            if title.is_empty() { "Later" } else { title }
        });
    }
    let image = InputBlock::Image(ImageBlock::new("image/png", *b"png").unwrap());
    assert_eq!(after([user(vec![image])]).title, "(an image)");
    assert_eq!(after([user(vec![])]).title, "");
    assert_eq!(after([answered("Hi"), result("3")]).title, "");
}

#[test]
fn a_preview_is_the_first_line_of_the_last_answer_that_says_something() {
    for (answers, preview) in [
        (&["one", "two"][..], Some("two")),
        (&["one", ""], Some("one")),
        (&["one", " \n"], Some("one")),
        (&["\n  one\u{200B} \ntwo"], Some("one")),
        (&[""], None),
        (&[], None),
    ] {
        let events = answers.iter().flat_map(|text| [answered(text), result("3"), asked("go on")]);
        assert_eq!(after(events).preview.as_deref(), preview, "{answers:?}");
    }
}

#[test]
fn a_summary_of_a_task_has_its_json() {
    both_ways(
        &after([]),
        &json!({
            "task_id": "t1", "agent": "dev", "session_id": "s1", "root": "t1", "model": "p/m",
            "runs_on": {"runner": "local"},
            "status": "pending", "title": "", "seq": 1, "turns": 0, "calls": 0, "messages": 0,
            "created_at": "2025-01-20T10:00:00Z", "last_event_at": "2025-01-20T10:00:00Z"
        }),
    );
    both_ways(
        &after([asked("Hi"), paid("p/m", 7, None), waiting(WaitingFor::Resume)]),
        &json!({
            "task_id": "t1", "agent": "dev", "session_id": "s1", "root": "t1", "model": "p/m",
            "runs_on": {"runner": "local"},
            "status": "input_required", "waiting_for": "resume", "title": "Hi", "seq": 4,
            "turns": 1, "calls": 0, "messages": 1,
            "spent": {"p/m": {"input_tokens": 7, "output_tokens": 0}},
            "created_at": "2025-01-20T10:00:00Z", "last_event_at": "2025-01-20T10:00:03Z"
        }),
    );
}

fn moved(agent_id: AgentId, from: AgentState, to: AgentState) -> EventBody {
    StateChanged::new(agent_id, from, to).into()
}

#[test]
fn a_live_agent_is_where_it_last_moved_to() {
    use AgentState::{Idle, Reflecting, Thinking, ToolCall};
    let changes =
        [(Idle, Thinking), (Thinking, ToolCall), (ToolCall, Reflecting), (Reflecting, Idle)];
    let mut status = None;
    for (count, (from, to)) in (1..).zip(changes.into_iter().chain(changes)) {
        status = LiveAgent::after(status, &moved(agent_id(), from, to), second(count));
        // A step with tools is not another message.
        let now = AgentStatus {
            id: agent_id(),
            state: to,
            last_activity: second(count),
            messages_processed: 1,
        };
        assert_eq!(status, Some(now));
    }
}

#[test]
fn an_agent_that_starts_again_is_a_fresh_one() {
    use AgentState::{Idle, Thinking, ToolCall};
    let before = AgentStatus {
        messages_processed: 9,
        state: ToolCall,
        ..AgentStatus::started(agent_id(), ten())
    };
    let fresh = AgentId::default();
    let after = LiveAgent::after(Some(before.clone()), &moved(fresh, Idle, Thinking), second(1));
    assert_eq!(
        after,
        Some(AgentStatus {
            id: fresh,
            state: Thinking,
            last_activity: second(1),
            messages_processed: 1
        })
    );
    let stayed =
        LiveAgent::after(Some(before), &moved(agent_id(), Thinking, Thinking), second(1)).unwrap();
    assert_eq!((stayed.state, stayed.messages_processed), (Thinking, 9));
}

#[test]
fn a_message_is_counted_once_however_often_its_agent_begins_to_think() {
    use AgentState::{Idle, Thinking};
    let first = LiveAgent::after(None, &moved(agent_id(), Idle, Thinking), second(1)).unwrap();
    let again =
        LiveAgent::after(Some(first.clone()), &moved(agent_id(), Idle, Thinking), second(2));
    let expected = AgentStatus { last_activity: second(2), messages_processed: 1, ..first };
    assert_eq!(again, Some(expected));
}

#[test]
fn each_message_that_is_read_from_the_inbox_counts() {
    use AgentState::{Idle, Thinking};
    let read = || {
        let content = vec![InputBlock::text("go on")];
        let message = MessageAppended::new(UserMessage { content, timestamp: ten() });
        MessageAppended { queued: Some(UUID.parse::<uuid::Uuid>().unwrap().into()), ..message }
            .into()
    };
    let bodies = [moved(agent_id(), Idle, Idle), read(), read(), moved(agent_id(), Idle, Thinking)];
    let mut status = None;
    for (count, body) in (1..).zip(bodies) {
        status = LiveAgent::after(status, &body, second(count));
    }
    assert_eq!(status.as_ref().unwrap().messages_processed, 2);
    let ended = self::status(TaskStatus::Completed);
    assert_eq!(LiveAgent::after(status, &ended, second(9)), None);
}

#[test]
fn the_other_summaries_have_their_json() {
    both_ways(
        &LiveAgent {
            agent: "dev".to_owned(),
            task_id: task_id(),
            status: AgentStatus::started(agent_id(), ten()),
        },
        &json!({
            "agent": "dev", "task_id": "t1", "id": UUID, "state": "idle",
            "last_activity": "2025-01-20T10:00:00Z", "messages_processed": 0
        }),
    );
    both_ways(
        &SessionSummary {
            session_id: SessionId::parse("s1").unwrap(),
            title: "Hi".to_owned(),
            tasks: 2,
            last_task: task_id(),
            status: TaskStatus::Running,
            created_at: ten(),
            updated_at: second(9),
        },
        &json!({
            "session_id": "s1", "title": "Hi", "tasks": 2, "last_task": "t1", "status": "running",
            "created_at": "2025-01-20T10:00:00Z", "updated_at": "2025-01-20T10:00:09Z"
        }),
    );
    both_ways(
        &QueuedMessage {
            task_id: task_id(),
            position: Position(7),
            at: ten(),
            message: MessageQueued::of_user(
                UUID.parse::<uuid::Uuid>().unwrap().into(),
                HandlingMode::Queue,
                UserMessage::text("hi", ten()),
            ),
        },
        &json!({
            "task_id": "t1", "position": 7, "at": "2025-01-20T10:00:00Z", "id": UUID, "mode": "queue",
            "content": {"type": "message", "body": "hi"}
        }),
    );
}
