//! The schema of events refuses what is nearly an event.

use antiphon_core::TARGETS_MAX;
use serde_json::{Value, json};

use super::broken;
use crate::schema::faults;
use crate::specimen::envelope;

/// Asserts that an event of a type with something put in the place of something else does not
/// fit.
#[track_caller]
fn bites<const N: usize>(table: [(&str, &str, Option<Value>); N]) {
    for (kind, pointer, value) in table {
        let line = broken(kind, pointer, value);
        assert!(!faults(&line).is_empty(), "{line}");
    }
}

#[test]
fn the_schema_bites_into_every_line() {
    bites([
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
        ("text_delta", "/at", Some(json!("2026-02-18T12:00:00Z"))),
    ]);
}

#[test]
fn the_schema_bites_into_the_creation_of_a_task() {
    bites([
        ("task_created", "/data/model", Some(json!("hello"))),
        ("task_created", "/data/limits", Some(json!({}))),
        ("task_created", "/data/limits/turns_max", Some(json!(0))),
        ("task_created", "/data/limits/turns_max", Some(json!(4_294_967_296_u64))),
        ("task_created", "/data/limits/steps_max", Some(json!(1))),
        ("task_created", "/data/history/seq", None),
        ("task_created", "/data/output_schema", Some(json!("object"))),
        ("task_created", "/data/depth", Some(json!(0))),
        ("task_created", "/data/fallbacks", Some(json!([]))),
        ("task_created", "/data/fallbacks", Some(json!(["hello"]))),
        ("task_created", "/data/tools", Some(json!("read"))),
        ("task_created", "/data/external_tools", Some(json!([]))),
        ("task_created", "/data/external_tools", Some(json!(["browse"]))),
        ("task_created", "/data/external_tools/0/parameters", Some(json!("object"))),
        ("task_created", "/data/external_tools/0/parameters", None),
        ("task_created", "/data/agents", Some(json!("anybody"))),
        ("task_created", "/data/agents", Some(json!(["reviewer"]))),
        ("task_created", "/data/runner", Some(json!("sandbox"))),
        ("task_created", "/data/runner/config", None),
        ("task_created", "/data/resident", Some(json!(false))),
        ("task_created", "/data/limits/depth_max", Some(json!(0))),
        ("task_created", "/data/limits/fan_out_max", Some(json!(4_294_967_296_u64))),
        ("task_created", "/data/limits/tasks_max", Some(json!("many"))),
    ]);
}

#[test]
fn the_schema_bites_into_what_happens_between_tasks() {
    bites([
        ("tool_requested", "/data/arguments", Some(json!("{}"))),
        ("tool_requested", "/data/until", None),
        ("dispatched", "/data/context", None),
        ("dispatched", "/data/context", Some(json!("shared"))),
        ("dispatched", "/data/join", Some(json!("quorum"))),
        ("dispatched", "/data/join", Some(json!("first"))),
        ("dispatched", "/data/join/quorum", Some(json!(2))),
        ("dispatched", "/data/join/quorum/n", Some(json!(0))),
        ("dispatched", "/data/join/quorum/n", Some(json!(4_294_967_296_u64))),
        ("dispatched", "/data/children", Some(json!([]))),
        ("dispatched", "/data/children", Some(json!(["a b"]))),
        ("dispatched", "/data/children", Some(json!(vec!["t"; TARGETS_MAX + 1]))),
        ("awaited", "/data/tasks", Some(json!([]))),
        ("awaited", "/data/mode", Some(json!("quorum"))),
        ("awaited", "/data/mode", None),
        ("awaited", "/data/until", Some(json!(60))),
        ("handed_over", "/data/agent", None),
        ("handed_over", "/data/model", Some(json!("law"))),
        ("handed_over", "/data/system_prompt", Some(json!(""))),
        ("handed_over", "/data/agents", Some(json!("anybody"))),
        ("handed_over", "/data/agents/only", Some(json!([1]))),
        ("relayed", "/data/task_id", None),
        ("relayed", "/data/seq", Some(json!(-1))),
    ]);
}

#[test]
fn the_schema_bites_into_what_arrives() {
    let said = json!({"type": "user", "content": [], "timestamp": "2026-02-18T12:00:00Z"});
    bites([
        ("message_queued", "/data/mode", Some(json!("now"))),
        ("message_queued", "/data/content", None),
        ("message_queued", "/data/content", Some(said.clone())),
        ("message_queued", "/data/message", Some(said)),
        ("message_queued", "/data/content/type", Some(json!("message"))),
        ("message_queued", "/data/content/type", Some(json!("shout"))),
        ("message_queued", "/data/content/params", None),
        ("message_queued", "/data/from", Some(json!("user"))),
        ("message_queued", "/data/from", Some(json!("User"))),
        ("message_queued", "/data/from", Some(json!("system"))),
        ("message_queued", "/data/from", Some(json!("event:"))),
        ("message_queued", "/data/from", Some(json!("a\nb"))),
        ("message_queued", "/data/class", Some(json!("actionable_message"))),
        ("message_queued", "/data/class", Some(json!("noise"))),
        ("message_queued", "/data/render_metadata/salience", None),
        ("message_queued", "/data/render_metadata/salience", Some(json!("loud"))),
        ("message_queued", "/data/render_metadata/class", Some(json!("poem"))),
        ("message_queued", "/data/quiet", Some(json!(false))),
        ("message_queued", "/data/reply_to", Some(json!("a b"))),
        ("message_queued", "/data/until", Some(json!(60))),
        ("message_queued", "/data/replaces", Some(json!("t1"))),
        ("message_queued", "/data/hops", Some(json!(0))),
        ("message_queued", "/data/payload", Some(json!(null))),
        ("request_sent", "/data/tool_call_id", None),
        ("request_sent", "/data/id", Some(json!("r1"))),
        ("request_sent", "/data/to", Some(json!("event:webhook"))),
        ("request_sent", "/data/to", Some(json!("user"))),
        ("request_sent", "/data/params", Some(json!(null))),
        ("request_sent", "/data/until", None),
        ("request_sent", "/data/waits", Some(json!(false))),
        ("replied", "/data/in_reply_to", None),
        ("replied", "/data/to", None),
        ("replied", "/data/to", Some(json!("SYSTEM"))),
        ("replied", "/data/reply_to", Some(json!(null))),
        ("replied", "/data/status", Some(json!("done"))),
        ("replied", "/data/result", Some(json!(null))),
    ]);
}

#[test]
fn the_schema_bites_into_the_pictures_of_an_arrival() {
    let arrived = |block: &Value| {
        let content = json!({"type": "message", "body": "", "blocks": [block]});
        broken("message_queued", "/data/content", Some(content))
    };
    let picture = json!({"type": "image", "data": "AAAA", "media_type": "image/png"});
    assert_eq!(faults(&arrived(&picture)), [""; 0]);
    for block in [
        json!({"type": "image", "data": "AAAA", "mime_type": "image/png"}),
        json!({"type": "image", "data": "", "media_type": "image/png"}),
        json!({"type": "image", "data": "AAA", "media_type": "image/png"}),
        json!({"type": "image", "data": "AAAA", "media_type": "text/plain"}),
        json!({"type": "thinking", "thinking": "hm"}),
        json!({"type": "text"}),
    ] {
        assert!(!faults(&arrived(&block)).is_empty(), "{block}");
    }
}

#[test]
fn the_schema_bites_into_what_happens_in_a_task() {
    bites([
        ("status_changed", "/data/status", Some(json!("paused"))),
        ("status_changed", "/data/detail", None),
        ("status_changed", "/data/detail", Some(json!("it failed"))),
        ("status_changed", "/data/detail/code", Some(json!("bad_luck"))),
        ("status_changed", "/data/detail/code", Some(json!("timeout"))),
        ("status_changed", "/data/detail/limit", Some(json!("turns"))),
        ("status_changed", "/data/waiting_for", Some(json!("resume"))),
        ("status_changed", "/data/status", Some(json!("input_required"))),
        ("state_changed", "/data/to", Some(json!("tool_call"))),
        ("state_changed", "/data/through", Some(json!("toolcall"))),
        ("state_changed", "/data/through", Some(json!([]))),
        ("state_changed", "/data/through", Some(json!(["tool_call"]))),
        ("state_changed", "/data/agent_id", Some(json!("dev"))),
        ("message_appended", "/data/message/type", Some(json!("system"))),
        ("message_appended", "/data/message/type", Some(json!("assistant"))),
        ("message_appended", "/data/message/content", Some(json!("hi"))),
        ("message_appended", "/data/message/is_error", Some(json!(false))),
        ("message_appended", "/data/queued", Some(json!(true))),
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
        ("text_delta", "/data/text", Some(json!("hi"))),
        ("tool_call_end", "/data/call/arguments", Some(json!([]))),
        ("tool_output", "/data/tool_call_id", None),
        ("deltas_missed", "/data/count", Some(json!(0))),
    ]);
}

/// A task that failed for this reason.
fn failed(detail: &Value) -> Value {
    envelope("status_changed", &json!({"status": "failed", "detail": detail}))
}

#[test]
fn a_failure_has_its_code() {
    for code in ["refused", "invalid_output", "runner_refused", "runner_unavailable"] {
        let mut detail = json!({"code": code, "error": "it did not work"});
        assert_eq!(faults(&failed(&detail)), [""; 0], "{code}");
        detail["limit"] = json!({"limit": "repairs", "max": 3});
        assert_eq!(faults(&failed(&detail)).is_empty(), code == "invalid_output", "{code}");
    }
}

#[test]
fn a_limit_has_its_measure_and_no_other() {
    let measures = [("max", json!(3)), ("max_nano_usd", json!(3)), ("max_s", json!(3))];
    let measures = measures.into_iter().chain([("model", json!("p/m"))]);
    let limits = ["turns", "tool_calls", "tokens", "repairs", "depth", "fan_out", "tasks"];
    let limits = limits.into_iter().map(|limit| (limit, "max"));
    let others = [("cost", "max_nano_usd"), ("wall_clock", "max_s"), ("price_unknown", "model")];
    for (limit, own) in limits.chain(others).chain([("patience", "none")]) {
        for (measure, value) in measures.clone() {
            let limit = json!({"limit": limit, measure: value});
            let detail = json!({"code": "limit_reached", "error": "too much", "limit": limit});
            assert_eq!(faults(&failed(&detail)).is_empty(), measure == own, "{detail}");
        }
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
        let line = broken("message_appended", "/data/message/content", Some(json!([image])));
        assert!(!faults(&line).is_empty(), "{line}");
    }
}
