//! The creation of a task, with every field and with none.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use antiphon_core::port::BootTime;
use antiphon_core::*;
use serde_json::json;

use super::Specimen;

fn sampling() -> Sampling {
    Sampling {
        top_p: Some(0.5.try_into().unwrap()),
        stop: vec!["END".to_owned()],
        seed: Some(7),
        presence_penalty: Some((-2.0).try_into().unwrap()),
        frequency_penalty: Some(2.0.try_into().unwrap()),
        reasoning_effort: Some(ReasoningEffort::XHigh),
        parallel_tool_calls: Some(false),
        metadata: [("ticket".to_owned(), "42".to_owned())].into(),
    }
}

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
        parallel_tools: vec!["bash".to_owned()],
        external_tools: vec![Arc::new(Tool {
            name: "browse".to_owned(),
            description: "Opens a page.".to_owned(),
            parameters: RawJson::parse(r#"{"type":"object"}"#).unwrap(),
        })],
        keeps_client_tools: true,
        agents: CallableAgents::Only(vec!["reviewer".to_owned()]),
        runner: Some(RunnerConfig::new("sandbox").with_config(json!({"memory_mib": 64}))),
        resident: true,
        limits: limits(),
        output_schema: Some(RawJson::parse(r#"{"type":"object"}"#).unwrap()),
        model_options: ModelOptions {
            temperature: Some(Temperature::new(0.5).unwrap()),
            tool_choice: ToolChoice::Named("read".to_owned()),
            thinking_tokens: None,
            sampling: sampling(),
        },
        payer: Some("tR7xQ2pL".to_owned()),
        route: Some(RawJson::parse(r#"{"script":"hello.toml"}"#).unwrap()),
        provenance: Provenance::AdminKey("tR7xQ2pL".to_owned()),
        canonical: vec![CanonicalHeader {
            id: crate::UUID.parse::<uuid::Uuid>().unwrap().into(),
            role: Role::User,
            timestamp: "2026-01-02T03:04:05Z".parse().unwrap(),
            metadata: [("ticket".to_owned(), "42".to_owned())].into(),
        }],
        unstored: true,
        imported: Some(ImportedTimes {
            created_at: "2025-01-02T03:04:05Z".parse().unwrap(),
            updated_at: "2025-02-03T04:05:06Z".parse().unwrap(),
        }),
        boot_time: Some(BootTime { boot_id: uuid::Uuid::from_u128(31), elapsed_ms: 12_340 }),
        followed: true,
        cancels: Some(PeerCancel {
            task_id: TaskId::parse("t5").unwrap(),
            remote_task_id: TaskId::parse("far-5").ok(),
        }),
        access: TaskAccess::PlanFirst,
    };
    (created.into(), "task_created", whole_json())
}

fn whole_json() -> serde_json::Value {
    json!({
        "agent": "dev", "session_id": "s1", "parent": "t0", "root": "t0", "depth": 1,
        "history": {"task_id": "t-1", "seq": 9}, "model": "scripted/hello",
        "fallbacks": ["local/a/b"], "system_prompt": "Be brief.", "tools": ["read", "call_agent"],
        "parallel_tools": ["bash"],
        "external_tools": [{
            "name": "browse", "description": "Opens a page.", "parameters": {"type": "object"}
        }],
        "keeps_client_tools": true,
        "agents": {"only": ["reviewer"]},
        "runner": {"kind": "sandbox", "config": {"memory_mib": 64}},
        "resident": true,
        "limits": {
            "turns_max": 3, "answer_tokens_max": 4, "tool_calls_max": 5, "tokens_max": 6,
            "cost_nano_usd_max": 7, "wall_clock_s_max": 8, "depth_max": 9, "fan_out_max": 10,
            "tasks_max": 11
        },
        "output_schema": {"type": "object"}, "model_options": {"temperature": 0.5, "tool_choice": {"named": "read"}, "sampling": {
            "top_p": 0.5, "stop": ["END"], "seed": 7, "presence_penalty": -2.0, "frequency_penalty": 2.0,
            "reasoning_effort": "xhigh", "parallel_tool_calls": false,
            "metadata": {"ticket": "42"}}},
        "payer": "tR7xQ2pL", "route": {"script": "hello.toml"},
        "provenance": "admin_key:tR7xQ2pL",
        "canonical": [{
            "id": crate::UUID, "role": "user", "timestamp": "2026-01-02T03:04:05Z",
            "metadata": {"ticket": "42"}
        }],
        "unstored": true,
        "imported": {"created_at": "2025-01-02T03:04:05Z", "updated_at": "2025-02-03T04:05:06Z"},
        "boot_time": {"boot_id": "00000000-0000-0000-0000-00000000001f", "elapsed_ms": 12340},
        "followed": true,
        "cancels": {"task_id": "t5", "remote_task_id": "far-5"},
        "access": "plan_first"
    })
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
