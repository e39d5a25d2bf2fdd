//! The creation of a task, with every field and with none.

use std::num::{NonZeroU32, NonZeroU64};

use antiphon_core::*;
use serde_json::json;

use super::Specimen;

pub(super) fn whole() -> Specimen {
    let created = TaskCreated {
        agent: "dev".to_owned(),
        session_id: SessionId::parse("s1").unwrap(),
        parent: Some(TaskId::parse("t0").unwrap()),
        root: Some(TaskId::parse("t0").unwrap()),
        depth: 1,
        history: Some(HistoryRef { task_id: TaskId::parse("t-1").unwrap(), seq: Seq(9) }),
        model: Some(ModelRef::parse("scripted/hello").unwrap()),
        fallbacks: vec![ModelRef::parse("local/a/b").unwrap()],
        system_prompt: "Be brief.".to_owned(),
        tools: Some(vec!["read".to_owned(), "call_agent".to_owned()]),
        external_tools: vec![Tool {
            name: "browse".to_owned(),
            description: "Opens a page.".to_owned(),
            parameters: RawJson::parse(r#"{"type":"object"}"#).unwrap(),
        }],
        agents: CallableAgents::Only(vec!["reviewer".to_owned()]),
        runner: Some(RunnerConfig::new("sandbox").with_config(json!({"memory_mib": 64}))),
        resident: true,
        limits: limits(),
        output_schema: Some(RawJson::parse(r#"{"type":"object"}"#).unwrap()),
        model_options: ModelOptions {
            temperature: Some(Temperature::new(0.5).unwrap()),
            tool_choice: ToolChoice::Named("read".to_owned()),
        },
        payer: Some("tR7xQ2pL".to_owned()),
        route: Some(RawJson::parse(r#"{"script":"hello.toml"}"#).unwrap()),
        provenance: Provenance::AdminKey("tR7xQ2pL".to_owned()),
    };
    let data = json!({
        "agent": "dev", "session_id": "s1", "parent": "t0", "root": "t0", "depth": 1,
        "history": {"task_id": "t-1", "seq": 9}, "model": "scripted/hello",
        "fallbacks": ["local/a/b"], "system_prompt": "Be brief.", "tools": ["read", "call_agent"],
        "external_tools": [{
            "name": "browse", "description": "Opens a page.", "parameters": {"type": "object"}
        }],
        "agents": {"only": ["reviewer"]},
        "runner": {"kind": "sandbox", "config": {"memory_mib": 64}},
        "standing": true,
        "limits": {
            "turns_max": 3, "answer_tokens_max": 4, "tool_calls_max": 5, "tokens_max": 6,
            "cost_nano_usd_max": 7, "wall_clock_s_max": 8, "depth_max": 9, "fan_out_max": 10,
            "tasks_max": 11
        },
        "output_schema": {"type": "object"}, "manner": {"temperature": 0.5, "tool_choice": {"named": "read"}},
        "payer": "tR7xQ2pL", "route": {"script": "hello.toml"},
        "provenance": "admin_key:tR7xQ2pL"
    });
    (created.into(), "task_created", data)
}

pub(super) fn bare() -> Specimen {
    let created = TaskCreated::new("dev", SessionId::parse("s1").unwrap());
    (created.into(), "task_created", json!({"agent": "dev", "session_id": "s1"}))
}

fn limits() -> TaskLimits {
    TaskLimits {
        turns_max: NonZeroU32::new(3),
        answer_tokens_max: NonZeroU32::new(4),
        tool_calls_max: NonZeroU32::new(5),
        tokens_max: NonZeroU64::new(6),
        cost_nano_usd_max: NonZeroU64::new(7),
        wall_clock_s_max: NonZeroU32::new(8),
        depth_max: NonZeroU32::new(9),
        fan_out_max: NonZeroU32::new(10),
        tasks_max: NonZeroU32::new(11),
    }
}
