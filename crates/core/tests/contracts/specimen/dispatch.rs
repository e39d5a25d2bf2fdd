//! What happens between a task and those that work for it.

use std::num::NonZeroU32;

use antiphon_core::*;
use serde_json::{Value, json};

use super::{Specimen, boot_until, boot_until_data};
use crate::at;

pub(super) fn requested() -> Specimen {
    let requested = ToolRequested {
        tool_call_id: call_id(),
        tool_name: "browse".to_owned(),
        arguments: RawJson::parse(r#"{"url":"about:blank"}"#).unwrap(),
        until: at("2026-02-18T12:10:00Z"),
        boot_until: Some(boot_until()),
    };
    let data = json!({
        "tool_call_id": "tc_1", "tool_name": "browse", "arguments": {"url": "about:blank"},
        "until": "2026-02-18T12:10:00Z", "boot_until": boot_until_data()
    });
    (requested.into(), "tool_requested", data)
}

pub(super) fn dispatched() -> Specimen {
    let join = Join::Quorum { n: NonZeroU32::new(2).unwrap() };
    to_two(ContextScope::Inherited, join, &json!("inherited"), &json!({"quorum": {"n": 2}}))
}

pub(super) fn of_each_kind() -> Vec<Specimen> {
    let independent = |join, word: &str| {
        to_two(ContextScope::Independent, join, &json!("independent"), &json!(word))
    };
    vec![
        independent(Join::Single, "single"),
        independent(Join::All, "all"),
        independent(Join::Detached, "detached"),
        independent(Join::Any, "any"),
        dispatched(),
    ]
}

fn to_two(context: ContextScope, join: Join, scope: &Value, word: &Value) -> Specimen {
    let left_out = vec![LeftOutTool {
        task_id: two()[1].clone(),
        tool: "edit".to_owned(),
        reason: "there is no such tool here".to_owned(),
    }];
    let dispatched =
        Dispatched { tool_call_id: call_id(), context, join, children: two(), left_out };
    let left_out = json!({"task_id": "t3", "tool": "edit", "reason": "there is no such tool here"});
    let data = json!({
        "tool_call_id": "tc_1", "context": scope, "join": word, "children": ["t2", "t3"],
        "left_out": [left_out]
    });
    (dispatched.into(), "dispatched", data)
}

pub(super) fn awaited() -> Specimen {
    let awaited = Awaited {
        tool_call_id: call_id(),
        tasks: two(),
        mode: Awaiting::Any,
        until: Some(at("2026-02-18T12:01:00Z")),
        boot_until: Some(boot_until()),
    };
    let data = json!({
        "tool_call_id": "tc_1", "tasks": ["t2", "t3"], "mode": "any",
        "until": "2026-02-18T12:01:00Z", "boot_until": boot_until_data()
    });
    (awaited.into(), "awaited", data)
}

pub(super) fn awaited_for_ever() -> Specimen {
    let awaited = Awaited {
        tool_call_id: call_id(),
        tasks: two(),
        mode: Awaiting::All,
        until: None,
        boot_until: None,
    };
    let data = json!({"tool_call_id": "tc_1", "tasks": ["t2", "t3"], "mode": "all"});
    (awaited.into(), "awaited", data)
}

pub(super) fn handed_over() -> Specimen {
    let over = HandedOver {
        tool_call_id: call_id(),
        agent: "lawyer".to_owned(),
        model: Some(ModelRef::parse("scripted/law").unwrap()),
        fallbacks: vec![ModelRef::parse("local/a/b").unwrap()],
        system_prompt: "You are a lawyer.".to_owned(),
        tools: Some(vec!["read".to_owned()]),
        agents: CallableAgents::Only(vec!["clerk".to_owned()]),
    };
    let data = json!({
        "tool_call_id": "tc_1", "agent": "lawyer", "model": "scripted/law",
        "fallbacks": ["local/a/b"], "system_prompt": "You are a lawyer.", "tools": ["read"],
        "agents": {"only": ["clerk"]}
    });
    (over.into(), "handed_over", data)
}

pub(super) fn handed_over_as_is() -> Specimen {
    let over = HandedOver {
        tool_call_id: call_id(),
        agent: "lawyer".to_owned(),
        model: None,
        fallbacks: Vec::new(),
        system_prompt: String::new(),
        tools: None,
        agents: CallableAgents::Any,
    };
    (over.into(), "handed_over", json!({"tool_call_id": "tc_1", "agent": "lawyer"}))
}

pub(super) fn relayed() -> Specimen {
    let relayed =
        Relayed { task_id: TaskId::parse("far-1").unwrap(), seq: Seq(12), tasks: Vec::new() };
    (relayed.into(), "relayed", json!({"task_id": "far-1", "seq": 12}))
}

fn two() -> Vec<TaskId> {
    ["t2", "t3"].map(|id| TaskId::parse(id).unwrap()).to_vec()
}

fn call_id() -> ToolCallId {
    ToolCallId::parse("tc_1").unwrap()
}
