//! Tools that take more than there is.

use antiphon_core::TaskStatus;
use antiphon_core::port::RunnerError;
use serde_json::{Value, json};

use crate::bench::{Bench, calls, scripted};

async fn refused(tool: &str, arguments: Value, config: Value) -> String {
    let bench = Bench { config, ..Bench::new(&calls(tool, arguments)) };
    let task_id = bench.accept().await;
    let error = bench.once(&task_id).await.unwrap_err();
    bench.assert_clean();
    assert_eq!(bench.state(&task_id).await.status, TaskStatus::Running);
    assert!(matches!(error, RunnerError::Refused { .. }), "{error}");
    error.to_string().strip_prefix("the runner refuses: ").unwrap().to_owned()
}

const OUT_OF_MEMORY: &str = "the worker ran out of memory (its tools may take 100 MB together)";

#[tokio::test]
async fn a_tool_that_takes_more_and_more_memory_is_refused() {
    let config = json!({ "memory_mb": 100 });
    assert_eq!(refused("eat", json!({ "bytes": 1_000_000 }), config).await, OUT_OF_MEMORY);
}

#[tokio::test]
async fn a_tool_that_takes_much_memory_at_once_is_refused() {
    let config = json!({ "memory_mb": 100 });
    assert_eq!(refused("eat", json!({ "bytes": 1_u64 << 33 }), config).await, OUT_OF_MEMORY);
}

#[tokio::test]
async fn commands_of_a_tool_count_together() {
    let config = json!({ "memory_mb": 100 });
    let each = "exec tail -c 60M /dev/zero";
    let command = format!("({each}) & ({each}) & ({each}) & wait");
    assert_eq!(refused("command", json!({ "on": command }), config).await, OUT_OF_MEMORY);
}

#[tokio::test]
async fn a_tool_that_spins_is_refused() {
    let reason = refused("spin", json!({}), json!({ "cpu_s": 1 })).await;
    assert_eq!(reason, "the worker ran out of CPU time (its tools may take 1 s)");
}

#[tokio::test]
async fn a_command_that_spins_is_refused() {
    let spin = json!({ "on": "(while :; do :; done) & (while :; do :; done) & wait" });
    let reason = refused("command", spin, json!({ "cpu_s": 1 })).await;
    assert_eq!(reason, "the worker ran out of CPU time (its tools may take 1 s)");
}

#[tokio::test]
async fn a_tool_that_takes_too_long_is_refused() {
    let reason = refused("hang", json!({}), json!({ "wall_s": 1 })).await;
    assert_eq!(reason, "the worker ran out of time (1 s)");
}

#[tokio::test]
async fn a_tool_that_starts_processes_without_end_is_refused() {
    let many = json!({ "on": "for i in $(seq 60); do sleep 60 & done; wait" });
    let bench = Bench::with(scripted(&calls("command", many)), |settings| {
        settings.limits.processes_max = 40;
    });
    let task_id = bench.accept().await;
    let reason = "the worker started too many processes (40 at most)".to_owned();
    assert_eq!(bench.once(&task_id).await, Err(RunnerError::Refused { reason }));
    bench.assert_clean();
}
