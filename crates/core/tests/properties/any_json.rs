//! Any text, number, time and JSON.

use antiphon_core::RawJson;
use chrono::{DateTime, Utc};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Any text: control characters, tags, surrogate neighbors and all.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        vec(any::<char>(), 0..12).prop_map(String::from_iter),
        "[ -~]{0,12}",
        Just("\u{E0041}\u{200B}\u{FEFF}\u{202E}".to_owned()),
        Just("\u{0}\u{7f}\r\n\t\"\\/".to_owned()),
        Just("\u{D7FF}\u{E000}\u{FFFF}\u{10FFFF}".to_owned()),
        Just("e\u{301}\u{1F468}\u{200D}\u{1F469}".to_owned()),
    ]
}

/// Any time JSON can carry, to the millisecond.
pub(crate) fn time() -> impl Strategy<Value = DateTime<Utc>> {
    let far =
        DateTime::<Utc>::MIN_UTC.timestamp_millis()..DateTime::<Utc>::MAX_UTC.timestamp_millis();
    prop_oneof![far, 0_i64..4_102_444_800_000, Just(-1_i64), Just(253_402_300_800_000_i64),]
        .prop_map(|ms| DateTime::from_timestamp_millis(ms).unwrap())
}

/// Any JSON value.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((text(), inner), 0..5).prop_map(|pairs| Value::Object(Map::from_iter(pairs))),
        ]
    })
}

/// Any JSON object, in any formatting.
pub(crate) fn object() -> impl Strategy<Value = RawJson> {
    let built = || vec((text(), value()), 0..4).prop_map(Map::from_iter);
    prop_oneof![
        4 => built().prop_map(|map| RawJson::of(&map).unwrap()),
        2 => built().prop_map(|map| RawJson::parse(&format!("{:#}", json!(map))).unwrap()),
        1 => Just(RawJson::parse(r#"{"a":1.0,"a":123456789012345678901234567890}"#).unwrap()),
        1 => Just(RawJson::parse(r#"{ "\u00e9" : [ ] ,"b":-0}"#).unwrap()),
    ]
}

/// Words of every contract, to make values that nearly mean something.
const WORDS: [&str; 66] = [
    "type",
    "kind",
    "user",
    "assistant",
    "tool_result",
    "content",
    "text",
    "thinking",
    "image",
    "tool_call",
    "id",
    "name",
    "arguments",
    "signature",
    "opaque",
    "value",
    "data",
    "mime_type",
    "media_type",
    "image/png",
    "AAAA",
    "timestamp",
    "2025-01-20T10:00:00Z",
    "stop_reason",
    "end_turn",
    "tool_call_id",
    "tool_name",
    "v",
    "position",
    "task_id",
    "seq",
    "at",
    "message_appended",
    "status_changed",
    "message",
    "status",
    "completed",
    "targets",
    "agent",
    "named",
    "agent_id",
    "join",
    "quorum",
    "n",
    "agents",
    "only",
    "children",
    "dispatched",
    "handed_over",
    "executor",
    "force",
    "remote",
    "runner",
    "action",
    "stop_agent",
    "from",
    "event:x",
    "message_queued",
    "request",
    "intent",
    "in_reply_to",
    "body",
    "mode",
    "messages",
    "role",
    "123e4567-e89b-12d3-a456-426614174000",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        9 => proptest::sample::select(&WORDS[..]).prop_map(str::to_owned),
        1 => text(),
    ]
}

/// JSON made of the words of the contracts.
pub(crate) fn familiar() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_i64..3).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => vec((word(), inner), 0..8).prop_map(|pairs| Value::Object(Map::from_iter(pairs))),
        ]
    })
}
