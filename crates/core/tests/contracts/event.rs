//! Events: the entries of the journal.

use antiphon_core::{
    AgentState, ContextScope, Event, EventBody, EventError, HandlingMode, ImageBlock, InputBlock,
    MessageQueued, Position, Seq, StateChanged, StatusChanged, TaskStatus, UserMessage,
};
use serde_json::{Value, json};

use crate::specimen::{self, agent_id, envelope, event};
use crate::{UUID, both_ways, read, refusal, ten, written};

#[test]
fn each_event_has_its_type_and_its_data() {
    let kinds = [specimen::whole(), specimen::statuses(), specimen::dispatches()];
    for (body, kind, data) in [kinds.concat(), specimen::arrivals()].concat() {
        assert_eq!(body.event_type(), kind);
        both_ways(&event(body), &envelope(kind, &data));
    }
}

#[test]
fn every_type_of_event_is_listed() {
    let types: Vec<&str> = specimen::whole().iter().map(|(_, kind, _)| *kind).collect();
    assert_eq!(EventBody::TYPES, types);
}

#[test]
fn what_an_event_does_not_know_is_left_out() {
    for (body, kind, data) in specimen::bare() {
        both_ways(&event(body), &envelope(kind, &data));
    }
}

#[test]
fn what_an_earlier_version_did_not_say_means_what_it_meant() {
    let dispatched = json!({"tool_call_id": "tc_1", "join": "all", "children": ["t2"]});
    let EventBody::Dispatched(dispatched) =
        EventBody::parse("dispatched", &dispatched.to_string()).unwrap()
    else {
        panic!("it is a dispatch");
    };
    assert_eq!(dispatched.context, ContextScope::Independent);
    let spelled_out = json!({"agent": "dev", "session_id": "s1", "depth": 0, "agents": "anybody"});
    assert_eq!(
        EventBody::parse("task_created", &spelled_out.to_string()),
        EventBody::parse("task_created", r#"{"agent":"dev","session_id":"s1"}"#)
    );
}

#[test]
fn the_earlier_names_of_fields_are_read() {
    let created = |resident: &str, options: &str| {
        let data = json!({
            "agent": "dev", "session_id": "s1", resident: true, options: {"temperature": 0.5},
        });
        EventBody::parse("task_created", &data.to_string()).unwrap()
    };
    let before = created("standing", "manner");
    assert_eq!(before, created("resident", "model_options"));
    let written = serde_json::to_value(&before).unwrap();
    assert_eq!((&written["resident"], written.get("standing")), (&json!(true), None));
}

#[test]
fn a_message_that_an_earlier_version_queued_is_the_users() {
    let queued = |message: Value| {
        let data = json!({"id": UUID, "mode": "steer", "message": message});
        EventBody::parse("message_queued", &data.to_string()).unwrap()
    };
    let png = ImageBlock::new("image/png", b"\x89PNG\r\n\x1a\n".to_vec()).unwrap();
    let blocks = vec![
        InputBlock::text("Look at this,"),
        InputBlock::Image(png),
        InputBlock::text("and stop."),
    ];
    for content in [vec![InputBlock::text("Stop.")], blocks, vec![]] {
        let message = UserMessage { content, timestamp: ten() };
        let id = UUID.parse::<uuid::Uuid>().unwrap().into();
        let expected = MessageQueued::of_user(id, HandlingMode::Steer, message.clone());
        assert_eq!(queued(written(&message)), expected.into());
    }
    let data = json!({"id": UUID, "mode": "steer", "message": {"type": "user", "content": "hi"}});
    assert!(EventBody::parse("message_queued", &data.to_string()).is_err());
}

#[test]
fn only_what_is_queued_is_an_arrival() {
    for (body, kind, _) in [specimen::whole(), specimen::bare(), specimen::arrivals()].concat() {
        assert_eq!(body.is_arrival(), kind == "message_queued", "{kind}");
    }
}

#[test]
fn only_a_terminal_status_ends_a_task() {
    for (body, kind, data) in [specimen::whole(), specimen::statuses()].concat() {
        let terminal = ["completed", "failed", "canceled"].map(Value::from);
        let ends = kind == "status_changed" && terminal.contains(&data["status"]);
        assert_eq!(body.ends_task(), ends, "{kind} {data}");
    }
}

#[test]
fn an_event_is_written_with_its_fields_in_order() {
    assert_eq!(
        serde_json::to_string(&event(StatusChanged::new(TaskStatus::Running))).unwrap(),
        r#"{"v":1,"position":7,"task_id":"t1","seq":3,"at":"2026-02-18T12:00:00Z","type":"status_changed","data":{"status":"running"}}"#
    );
}

#[test]
fn an_event_of_a_later_version_is_refused() {
    let mut json = envelope("status_changed", &json!({"status": "running"}));
    json["v"] = json!(2);
    assert_eq!(refusal::<Event>(json), "event version 2 is newer than this program knows (1)");
    assert_eq!(
        EventError::UnknownVersion { found: 2 }.to_string(),
        "event version 2 is newer than this program knows (1)"
    );
}

#[test]
fn an_event_of_an_unknown_type_is_refused_with_the_types_there_are() {
    assert_eq!(
        refusal::<Event>(envelope("task_paused", &json!({}))),
        "unknown event type `task_paused`, expected one of task_created, task_restored, \
         status_changed, state_changed, message_appended, message_queued, request_sent, replied, \
         approval_requested, approval_decided, tool_refused, tool_started, tool_requested, \
         dispatched, awaited, handed_over, relayed, usage_recorded, budget_raised, \
         output_rejected, todo_changed, compacted"
    );
}

#[test]
fn an_event_with_other_data_than_its_type_has_is_refused_with_the_field() {
    for (kind, data, reason) in [
        ("task_created", json!({"agent": "dev"}), "missing field `session_id`"),
        (
            "state_changed",
            json!({"agent_id": UUID, "from": "asleep", "to": "idle"}),
            "unknown variant `asleep`, expected one of `idle`, `thinking`, `toolcall`, `reflecting`",
        ),
        (
            "message_appended",
            json!({"message": {"type": "system", "content": [],
                               "timestamp": "2026-02-18T12:00:00Z"}}),
            "unknown message type `system`, expected one of `user`, `assistant`, `tool_result`",
        ),
        (
            "message_queued",
            json!({"id": UUID, "mode": "queue", "content": {"type": "shout", "body": "hi"}}),
            "unknown variant `shout`, expected one of `message`, `request`, `response`, `ack`",
        ),
        (
            "message_queued",
            json!({"id": UUID, "mode": "queue", "from": "system",
                   "content": {"type": "message", "body": "hi"}}),
            "the name `system` is reserved",
        ),
        (
            "replied",
            json!({"in_reply_to": UUID, "to": "user", "status": "done"}),
            "unknown variant `done`, expected one of `accepted`, `completed`, `failed`",
        ),
        ("request_sent", json!({"tool_call_id": "tc_1", "id": UUID}), "missing field `to`"),
        (
            "dispatched",
            json!({"tool_call_id": "tc_1", "join": {"quorum": {"n": 0}}, "children": ["t2"]}),
            "invalid value: integer `0`, expected a nonzero u32",
        ),
        (
            "handed_over",
            json!({"tool_call_id": "tc_1", "agent": "a", "agents": "nobody"}),
            "unknown variant `nobody`, expected one of `any`, `anybody`, `only`",
        ),
    ] {
        let said = refusal::<Event>(envelope(kind, &data));
        assert!(said.starts_with(&format!("malformed `{kind}` event: {reason}")), "{said}");
    }
}

#[test]
fn an_envelope_without_a_field_is_refused_by_its_name() {
    let whole = envelope("status_changed", &json!({"status": "running"}));
    for field in ["v", "position", "task_id", "seq", "at", "type", "data"] {
        let mut json = whole.clone();
        json.as_object_mut().unwrap().remove(field);
        assert_eq!(refusal::<Event>(json), format!("missing field `{field}`"));
    }
}

#[test]
fn unknown_fields_of_an_event_are_ignored_in_any_order() {
    let json = r#"{"data":{"to":"thinking","since":1,"from":"idle","agent_id":
        "123e4567-e89b-12d3-a456-426614174000"},"node":"a","type":"state_changed","seq":3,
        "at":"2026-02-18T12:00:00Z","task_id":"t1","position":7,"v":1}"#;
    assert_eq!(
        read::<Event>(json),
        event(StateChanged::new(agent_id(), AgentState::Idle, AgentState::Thinking))
    );
}

#[test]
fn positions_and_seqs_are_plain_numbers_in_order() {
    both_ways(&Position(u64::MAX), &json!(u64::MAX));
    both_ways(&Seq(1), &json!(1));
    assert_eq!((Position::default(), Seq::default()), (Position(0), Seq(0)));
    assert_eq!((Position(12).to_string(), Seq(3).to_string()), ("12".to_owned(), "3".to_owned()));
    assert!(Position(9) < Position(10) && Seq(9) < Seq(10));
}
