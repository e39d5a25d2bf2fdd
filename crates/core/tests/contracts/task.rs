//! Tasks and their results.

use antiphon_core::TaskStatus::{Canceled, Completed, Failed, InputRequired, Pending, Running};
use antiphon_core::{
    AgentResult, Executor, InvocationResult, RunnerConfig, TaskId, TaskSnapshot, TaskStatus,
};
use serde_json::json;

use crate::{both_ways, read};

fn result() -> AgentResult {
    AgentResult {
        content: json!({"text": "ok"}),
        task_id: TaskId::parse("t1").unwrap(),
        status: Completed,
    }
}

#[test]
fn three_statuses_are_terminal() {
    let terminal: Vec<TaskStatus> =
        TaskStatus::ALL.into_iter().filter(|status| status.is_terminal()).collect();
    assert_eq!(terminal, [Completed, Failed, Canceled]);
}

#[test]
fn nothing_follows_a_terminal_status_and_nothing_becomes_pending_again() {
    let open = [Running, InputRequired, Completed, Failed, Canceled];
    for (from, followers) in [
        (Pending, &open[..]),
        (Running, &open[..]),
        (InputRequired, &open[..]),
        (Completed, &[]),
        (Failed, &[]),
        (Canceled, &[]),
    ] {
        let allowed: Vec<TaskStatus> =
            TaskStatus::ALL.into_iter().filter(|next| from.may_become(*next)).collect();
        assert_eq!(allowed, followers, "after {from:?}");
    }
}

#[test]
fn the_result_of_an_agent_has_the_documented_json() {
    both_ways(
        &result(),
        &json!({"content": {"text": "ok"}, "task_id": "t1", "status": "completed"}),
    );
    both_ways(
        &AgentResult { content: json!("done"), status: Canceled, ..result() },
        &json!({"content": "done", "task_id": "t1", "status": "canceled"}),
    );
}

#[test]
fn the_result_of_an_invocation_mirrors_its_join() {
    both_ways(
        &InvocationResult::Scalar { result: result() },
        &json!({
            "kind": "scalar",
            "result": {"content": {"text": "ok"}, "task_id": "t1", "status": "completed"}
        }),
    );
    let failed =
        AgentResult { content: json!(null), task_id: TaskId::parse("t2").unwrap(), status: Failed };
    both_ways(
        &InvocationResult::Vector { results: vec![result(), failed] },
        &json!({
            "kind": "vector",
            "results": [
                {"content": {"text": "ok"}, "task_id": "t1", "status": "completed"},
                {"content": null, "task_id": "t2", "status": "failed"}
            ]
        }),
    );
    both_ways(
        &InvocationResult::TaskIds {
            task_ids: vec![TaskId::parse("t1").unwrap(), TaskId::parse("t2").unwrap()],
        },
        &json!({"kind": "task_ids", "task_ids": ["t1", "t2"]}),
    );
}

#[test]
fn a_snapshot_counts_in_milliseconds_and_leaves_out_what_is_not_known() {
    let running = TaskSnapshot {
        task_id: TaskId::parse("t1").unwrap(),
        agent_id: "researcher".to_owned(),
        status: Running,
        executor: Executor::Local,
        started_at: 1_737_367_200_000,
        last_event_at: 1_737_367_201_500,
        ended_at: None,
        preview: None,
    };
    both_ways(
        &running,
        &json!({
            "task_id": "t1",
            "agent_id": "researcher",
            "status": "running",
            "executor": {"type": "local"},
            "started_at": 1_737_367_200_000_i64,
            "last_event_at": 1_737_367_201_500_i64
        }),
    );
    both_ways(
        &TaskSnapshot {
            status: Completed,
            executor: Executor::Remote { runner: RunnerConfig::new("loopback") },
            ended_at: Some(1_737_367_202_000),
            preview: Some("42".to_owned()),
            ..running
        },
        &json!({
            "task_id": "t1",
            "agent_id": "researcher",
            "status": "completed",
            "executor": {"type": "remote", "runner": {"kind": "loopback", "config": {}}},
            "started_at": 1_737_367_200_000_i64,
            "last_event_at": 1_737_367_201_500_i64,
            "ended_at": 1_737_367_202_000_i64,
            "preview": "42"
        }),
    );
}

#[test]
fn a_snapshot_whose_end_is_null_has_not_ended() {
    let snapshot: TaskSnapshot = read(
        r#"{"task_id":"t1","agent_id":"a","status":"running","executor":{"type":"local"},
            "started_at":-1,"last_event_at":0,"ended_at":null,"preview":null}"#,
    );
    assert_eq!((snapshot.ended_at, snapshot.preview), (None, None));
    assert_eq!((snapshot.started_at, snapshot.last_event_at), (-1, 0));
}
