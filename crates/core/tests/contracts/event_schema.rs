//! The schema of events: it takes whatever is written, and nothing that is not.

use antiphon_core::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::schema::{faults, schema};
use crate::specimen::{self, envelope};
use crate::{ten, written};

/// Every form a block of an answer can have.
fn answer() -> Message {
    let signature = Some(Signature("c2ln".to_owned()));
    let call = |arguments, signature| {
        AssistantBlock::ToolCall(ToolCallBlock {
            id: ToolCallId::parse("tc_1").unwrap(),
            name: "bash".to_owned(),
            arguments,
            signature,
        })
    };
    let thought = |signature| {
        AssistantBlock::Thinking(ThinkingBlock { thinking: "hm".to_owned(), signature })
    };
    Message::Assistant(AssistantMessage {
        content: vec![
            AssistantBlock::text("hi"),
            thought(None),
            thought(signature.clone()),
            AssistantBlock::Opaque(OpaqueBlock {
                kind: "redacted_thinking".to_owned(),
                value: RawJson::parse("[1, null]").unwrap(),
            }),
            call(ToolArguments::Object(RawJson::parse(r#"{"a": [1]}"#).unwrap()), signature),
            call(ToolArguments::Malformed("{\"a\":".to_owned()), None),
        ],
        stop_reason: StopReason::ToolUse,
        raw_stop_reason: "tool_use".to_owned(),
        usage: Usage {
            cache_read_tokens: Some(1),
            cache_write_tokens: Some(2),
            ..Usage::default()
        },
        model: Some(ModelRef::parse("p/m:8b/x").unwrap()),
        timestamp: ten(),
    })
}

fn messages() -> Vec<Message> {
    let image = || InputBlock::Image(ImageBlock::new("image/png", *b"pixels").unwrap());
    let timestamp = ten();
    vec![
        UserMessage { content: vec![InputBlock::text("look"), image()], timestamp }.into(),
        UserMessage { content: vec![], timestamp }.into(),
        answer(),
        ToolResultMessage {
            tool_call_id: ToolCallId::parse("tc_1").unwrap(),
            tool_name: "bash".to_owned(),
            content: vec![InputBlock::text("ok"), image()],
            is_error: true,
            timestamp,
        }
        .into(),
    ]
}

/// One event of each type and form.
fn events() -> Vec<Value> {
    let specimens = [specimen::whole(), specimen::bare(), specimen::statuses()].concat();
    let said = messages().into_iter().map(|message| MessageAppended::new(message).into());
    let bodies = specimens.into_iter().map(|(body, _, _)| body).chain(said);
    bodies.map(|body| written(&specimen::event(body))).collect()
}

/// A line of something that is not kept.
fn live(kind: &str, data: &Value) -> Value {
    json!({"v": 1, "task_id": "t1", "type": kind, "data": data})
}

/// One delta of each type.
fn deltas() -> Vec<Value> {
    let id = || ToolCallId::parse("tc_1").unwrap();
    let call = ToolCallBlock {
        id: id(),
        name: "bash".to_owned(),
        arguments: ToolArguments::Object(RawJson::empty_object()),
        signature: None,
    };
    let of_answers = [
        StreamEvent::TextDelta { delta: "hi".to_owned() },
        StreamEvent::ThinkingDelta { delta: "hm".to_owned() },
        StreamEvent::ToolCallBegin { id: id(), name: "bash".to_owned() },
        StreamEvent::ToolCallDelta { id: id(), delta: "{".to_owned() },
        StreamEvent::ToolCallEnd { call },
    ];
    let of_answers = of_answers.map(|event| {
        let event = written(&event);
        live(event["type"].as_str().unwrap(), &event["data"])
    });
    let others = [
        live("tool_output", &json!({"tool_call_id": "tc_1", "delta": "1\n"})),
        live("deltas_missed", &json!({"count": 3})),
    ];
    of_answers.into_iter().chain(others).collect()
}

#[test]
fn the_schema_is_one() {
    assert_eq!(jsonschema::meta::validate(&schema()).map_err(|error| error.to_string()), Ok(()));
}

#[test]
fn the_schema_knows_every_type() {
    let types = schema().pointer("/$defs/event/properties/type/enum").cloned();
    assert_eq!(types, Some(json!(EventBody::TYPES)));
    let known = schema().pointer("/$defs/delta/properties/type/enum").cloned();
    let types: Vec<Value> = deltas().iter().map(|line| line["type"].clone()).collect();
    assert_eq!(known, Some(json!(types)));
}

#[test]
fn the_page_has_a_row_for_every_type() {
    const PAGE: &str = include_str!("../../../../docs/events.md");
    let deltas = deltas().into_iter().map(|line| line["type"].as_str().unwrap().to_owned());
    for kind in EventBody::TYPES.iter().map(|kind| (*kind).to_owned()).chain(deltas) {
        assert!(PAGE.contains(&format!("\n| `{kind}` ")), "{kind}");
    }
}

#[test]
fn every_event_and_every_delta_fits() {
    for line in events().into_iter().chain(deltas()) {
        assert_eq!(faults(&line), [""; 0], "{line}");
    }
}

#[test]
fn no_field_may_be_added_or_be_of_another_type() {
    let mut places = 0;
    for line in events().into_iter().chain(deltas()) {
        for pointer in pointers(&line, "") {
            let mut strange = line.clone();
            let value = strange.pointer_mut(&pointer).unwrap();
            if let Some(fields) = value.as_object_mut() {
                fields.insert("surplus".to_owned(), json!(1));
            } else {
                *value = json!([[{}]]);
            }
            assert!(!faults(&strange).is_empty(), "{pointer}: {strange}");
            places += 1;
        }
    }
    assert!(places > 300, "{places}");
}

/// Where something of ours is. What is in the fields that hold anybody's JSON is not.
fn pointers(value: &Value, at: &str) -> Vec<String> {
    const ANYBODYS: [&str; 5] = ["detail", "arguments", "output_schema", "route", "value"];
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => {
            let ours = fields.iter().filter(|(name, _)| !ANYBODYS.contains(&name.as_str()));
            ours.map(|(name, value)| (format!("{at}/{name}"), value)).collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(index, value)| (format!("{at}/{index}"), value)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => vec![],
    };
    let inside = children.iter().flat_map(|(at, value)| pointers(value, at));
    let itself = (!value.is_array()).then(|| at.to_owned());
    itself.into_iter().chain(inside).collect()
}

#[test]
fn what_cannot_be_read_does_not_fit() {
    let odd = [json!(null), json!(-1), json!(0.5), json!(""), json!("x y"), json!([]), json!({})];
    let mut refused = 0;
    for line in events() {
        for pointer in pointers(&line, "") {
            let (parent, field) = pointer.rsplit_once('/').unwrap_or_default();
            let without = line.pointer(parent).and_then(Value::as_object).map(|fields| {
                let mut fields = fields.clone();
                fields.remove(field);
                let mut line = line.clone();
                *line.pointer_mut(parent).unwrap() = Value::Object(fields);
                line
            });
            let with = odd.iter().map(|odd| {
                let mut line = line.clone();
                *line.pointer_mut(&pointer).unwrap() = odd.clone();
                line
            });
            for broken in with.chain(without) {
                if Event::deserialize(&broken).is_err() {
                    assert!(!faults(&broken).is_empty(), "{pointer}: {broken}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

/// A valid event of a type with something put in the place of something else, or taken away.
fn broken(kind: &str, pointer: &str, value: Option<Value>) -> Value {
    let lines = events().into_iter().chain(deltas());
    let mut line = lines.into_iter().find(|line| line["type"] == *kind).unwrap();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let fields = line.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => drop(fields.insert(field.to_owned(), value)),
        None => drop(fields.remove(field).unwrap()),
    }
    line
}

#[test]
fn the_schema_bites() {
    let table = [
        ("task_created", "/v", Some(json!(2))),
        ("task_created", "/v", None),
        ("task_created", "/position", Some(json!(0))),
        // Then it would be a delta, which has neither `seq` nor `at`.
        ("task_created", "/position", None),
        ("task_created", "/seq", Some(json!("3"))),
        ("task_created", "/at", Some(json!("2026-02-18 12:00:00"))),
        ("task_created", "/at", Some(json!("2026-02-18T12:00:00+01:00"))),
        ("task_created", "/type", Some(json!("task_paused"))),
        ("task_created", "/type", Some(json!("tool_started"))),
        ("task_created", "/type", Some(json!("text_delta"))),
        ("task_created", "/task_id", Some(json!("a b"))),
        ("task_created", "/data/model", Some(json!("hello"))),
        ("task_created", "/data/limits", Some(json!({}))),
        ("task_created", "/data/limits/turns_max", Some(json!(0))),
        ("task_created", "/data/limits/turns_max", Some(json!(4_294_967_296_u64))),
        ("task_created", "/data/limits/steps_max", Some(json!(1))),
        ("task_created", "/data/history/seq", None),
        ("task_created", "/data/output_schema", Some(json!("object"))),
        ("status_changed", "/data/status", Some(json!("paused"))),
        ("status_changed", "/data/detail", None),
        ("status_changed", "/data/detail", Some(json!("it failed"))),
        ("status_changed", "/data/detail/code", Some(json!("bad_luck"))),
        ("status_changed", "/data/detail/code", Some(json!("timeout"))),
        ("status_changed", "/data/detail/limit", Some(json!("turns"))),
        ("status_changed", "/data/waiting_for", Some(json!("resume"))),
        ("status_changed", "/data/status", Some(json!("input_required"))),
        ("state_changed", "/data/to", Some(json!("tool_call"))),
        ("state_changed", "/data/agent_id", Some(json!("dev"))),
        ("message_appended", "/data/message/type", Some(json!("system"))),
        ("message_appended", "/data/message/type", Some(json!("assistant"))),
        ("message_appended", "/data/message/content", Some(json!("hi"))),
        ("message_appended", "/data/message/is_error", Some(json!(false))),
        ("message_appended", "/data/queued", Some(json!(true))),
        ("message_queued", "/data/mode", Some(json!("now"))),
        ("message_queued", "/data/message/type", Some(json!("tool_result"))),
        ("approval_requested", "/data/arguments", Some(json!("{}"))),
        ("approval_requested", "/data/rule", None),
        ("approval_decided", "/data/decision", Some(json!("allow"))),
        ("approval_decided", "/data/by", None),
        ("tool_refused", "/data/reason", None),
        ("tool_started", "/data/effect", Some(json!("none"))),
        ("usage_recorded", "/data/usage/input_tokens", Some(json!(-1))),
        ("usage_recorded", "/data/usage/total_tokens", Some(json!(3))),
        ("usage_recorded", "/data/purpose", Some(json!("turn"))),
        ("output_rejected", "/data/reason", Some(json!(["no"]))),
        ("compacted", "/data/kept_from", Some(json!(-1))),
        ("text_delta", "/at", Some(json!("2026-02-18T12:00:00Z"))),
        ("text_delta", "/data/text", Some(json!("hi"))),
        ("tool_call_end", "/data/call/arguments", Some(json!([]))),
        ("tool_output", "/data/tool_call_id", None),
        ("deltas_missed", "/data/count", Some(json!(0))),
    ];
    for (kind, pointer, value) in table {
        let line = broken(kind, pointer, value);
        assert!(!faults(&line).is_empty(), "{line}");
    }
}

#[test]
fn the_schema_bites_into_messages() {
    let said = |content: Value, more: Value| {
        let mut message = json!({
            "type": "assistant", "content": [content], "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1}, "timestamp": "2025-01-20T10:00:00Z"
        });
        message.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        envelope("message_appended", &json!({"message": message}))
    };
    let text = json!({"type": "text", "text": "hi"});
    let user = json!({"type": "user"});
    assert_eq!(faults(&said(text.clone(), json!({}))), [""; 0]);
    let seal = json!({"kind": "k", "value": 1});
    for line in [
        said(text.clone(), json!({"stop_reason": "stop"})),
        said(text.clone(), json!({"raw_stop_reason": ""})),
        said(text.clone(), json!({"model": "m"})),
        said(text.clone(), json!({"role": "assistant"})),
        said(text, user),
        said(json!({"type": "text"}), json!({})),
        said(json!({"type": "image", "data": "AAAA", "mime_type": "image/png"}), json!({})),
        said(json!({"type": "redacted_thinking", "data": "x"}), json!({})),
        said(json!({"type": "thinking", "thinking": "hm", "opaque": seal}), json!({})),
        said(json!({"type": "thinking", "thinking": "", "opaque": {"kind": "k"}}), json!({})),
        said(json!({"type": "tool_call", "id": "", "name": "a", "arguments": {}}), json!({})),
        said(json!({"type": "tool_call", "id": "a", "name": "a", "arguments": null}), json!({})),
    ] {
        assert!(!faults(&line).is_empty(), "{line}");
    }
    for (data, mime_type) in [("", "image/png"), ("AAA", "image/png"), ("AAAA", "text/plain")] {
        let image = json!({"type": "image", "data": data, "mime_type": mime_type});
        let line = broken("message_queued", "/data/message/content", Some(json!([image])));
        assert!(!faults(&line).is_empty(), "{line}");
    }
}
