//! The schema of events accepts every written event, and nothing else.

mod bites;

use antiphon_core::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::schema::{faults, schema};
use crate::specimen;
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
    let of_tasks = [specimen::whole(), specimen::bare()].concat();
    let others = [specimen::statuses(), specimen::dispatches(), specimen::arrivals()].concat();
    let specimens = [of_tasks, others].concat();
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
        live("answer_superseded", &json!({"code": "cut", "error": "the answer was cut off"})),
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

/// Fields and types without a description, by their place in a schema. Conditions only narrow fields that are described elsewhere.
fn undescribed(schema: &Value, place: &str, found: &mut Vec<String>) {
    const CONDITIONS: [&str; 6] = ["if", "then", "else", "allOf", "anyOf", "not"];
    let Some(object) = schema.as_object() else { return };
    for (keyword, value) in object {
        let fields = value.as_object().filter(|_| ["properties", "$defs"].contains(&&**keyword));
        for (name, field) in fields.into_iter().flatten() {
            let place = format!("{place}/{name}");
            let is_described =
                field["description"].as_str().is_some_and(|text| text.ends_with('.'));
            if !is_described {
                found.push(place.clone());
            }
            undescribed(field, &place, found);
        }
        if fields.is_none() && !CONDITIONS.contains(&&**keyword) {
            for part in value.as_array().into_iter().flatten().chain([value]) {
                undescribed(part, place, found);
            }
        }
    }
}

#[test]
fn every_field_and_every_type_has_a_description() {
    let mut found = Vec::new();
    undescribed(&schema(), "", &mut found);
    assert_eq!(found, [""; 0]);
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

/// Paths of our own fields. Fields that hold arbitrary JSON are left out.
fn pointers(value: &Value, at: &str) -> Vec<String> {
    const ANYBODYS: [&str; 11] = [
        "detail",
        "arguments",
        "output_schema",
        "route",
        "value",
        "parameters",
        "config",
        "params",
        "payload",
        "result",
        "note",
    ];
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
