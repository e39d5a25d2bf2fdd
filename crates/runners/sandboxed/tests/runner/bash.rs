//! The shell of the house, in a worker: restricted by it, and ended with it.

use std::fs;
use std::sync::Arc;

use antiphon_core::TaskStatus;
use antiphon_core::port::{Run, Runner};
use serde_json::json;

use crate::bench::{Bench, calls, eventually, processes, scripted, switch};

fn bench(command: &str) -> Bench {
    Bench::with(scripted(&calls("bash", json!({ "command": command }))), |settings| {
        settings.worker_settings["shell"] = json!(true);
    })
}

#[tokio::test]
async fn bash_runs_in_a_worker_under_its_restrictions() {
    let bench =
        bench("echo inside > file; touch ../outside; curl -s http://127.0.0.1:1; ls -A /tmp");
    let state = bench.whole().await;
    assert_eq!(state.status, TaskStatus::Completed);
    assert_eq!(fs::read_to_string(bench.root.join("file")).unwrap(), "inside\n");
    assert!(!bench.outside("outside").exists());
    let results = bench.results(&state.task_id).await;
    assert!(results[0].0.contains("Read-only file system"), "{results:?}");
    bench.assert_clean();
}

#[tokio::test]
async fn nothing_of_bash_is_left_when_its_task_is_canceled() {
    let bench = bench("setsid sleep $TOKEN & sleep $TOKEN & wait");
    let script = calls(
        "bash",
        json!({ "command": format!(
        "setsid sleep {0} & (trap '' TERM; exec sleep {0}) & wait", bench.token
    ) }),
    );
    let bench = Bench { provider: scripted(&script), ..bench };
    let task_id = bench.accept().await;
    let (fire, cancel) = switch();
    let runner = Arc::clone(&bench.runner);
    let run = runner.run(Run { cancel, ..bench.run(&task_id) });
    let cancel = async {
        eventually("bash runs", || processes(&bench.token).len() == 5).await;
        drop(fire);
    };
    let (ran, ()) = tokio::join!(run, cancel);
    ran.unwrap();
    bench.assert_clean();
    assert_eq!(bench.state(&task_id).await.status, TaskStatus::Canceled);
}
