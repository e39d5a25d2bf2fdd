//! The shell of Antiphon, in a worker: restricted by it, and ended with it.

use std::fs;
use std::sync::Arc;

use antiphon_core::TaskStatus;
use antiphon_core::port::{Runner, RunnerError, RunnerTask};
use serde_json::json;

use crate::bench::{Bench, calls, eventually, kill_worker, processes, scripted, switch};

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
    let run = runner.run(RunnerTask { cancel, ..bench.run(&task_id) });
    let cancel = async {
        eventually("bash runs", || processes(&bench.token).len() == 5).await;
        drop(fire);
    };
    let (ran, ()) = tokio::join!(run, cancel);
    ran.unwrap();
    bench.assert_clean();
    assert_eq!(bench.state(&task_id).await.status, TaskStatus::Canceled);
}

/// Whether the record of a call in a worker has this text.
fn is_recorded(bench: &Bench, text: &str) -> bool {
    let workers = fs::read_dir(bench.outside("tmp")).unwrap().flatten();
    let records =
        workers.filter_map(|worker| fs::read_dir(worker.path().join("results/.calls")).ok());
    let mut files = records.flatten().flatten().filter_map(|file| fs::read(file.path()).ok());
    files.any(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
}

#[tokio::test]
async fn a_command_that_is_cut_off_with_its_worker_is_reported_with_its_output_so_far() {
    let script = calls("bash", json!({ "command": "echo half; sleep 60" }));
    let bench = Bench::with(scripted(&script), |settings| {
        settings.worker_settings["shell"] = json!(true);
        settings.kept = Some("results/.calls".into());
    });
    let task_id = bench.accept().await;
    let kill = async {
        eventually("the output is recorded", || is_recorded(&bench, "half")).await;
        assert!(kill_worker(&bench.token));
    };
    let (ran, ()) = tokio::join!(bench.once(&task_id), kill);
    assert!(matches!(ran, Err(RunnerError::Unavailable { .. })), "{ran:?}");
    bench.once(&task_id).await.unwrap();
    assert_eq!(bench.state(&task_id).await.status, TaskStatus::Completed);
    let results = bench.results(&task_id).await;
    assert!(results[0].0.contains("outcome unknown"), "{results:?}");
    assert!(results[0].0.contains("[Output so far:]\\nhalf"), "{results:?}");
    // The record went with the result.
    bench.assert_clean();
}

#[tokio::test]
async fn a_link_in_place_of_the_records_leads_nowhere() {
    let outside = "rm -rf /tmp/results; ln -s \"$1\" /tmp/results; echo linked; sleep 60";
    let bench = bench("true");
    let precious = bench.outside("precious/.calls");
    fs::create_dir_all(&precious).unwrap();
    fs::write(precious.join("file"), "precious").unwrap();
    let command = format!("set -- {}; {outside}", bench.outside("precious").display());
    let script = calls("bash", json!({ "command": command }));
    let bench = Bench::with(scripted(&script), |settings| {
        settings.worker_settings["shell"] = json!(true);
        settings.kept = Some("results/.calls".into());
    });
    let task_id = bench.accept().await;
    let kill = async {
        let linked = || {
            let workers = fs::read_dir(bench.outside("tmp")).unwrap().flatten();
            workers.map(|worker| worker.path().join("results")).any(|path| path.is_symlink())
        };
        eventually("the link is made", linked).await;
        assert!(kill_worker(&bench.token));
    };
    let (ran, ()) = tokio::join!(bench.once(&task_id), kill);
    assert!(matches!(ran, Err(RunnerError::Unavailable { .. })), "{ran:?}");
    assert_eq!(fs::read_to_string(precious.join("file")).unwrap(), "precious");
    bench.assert_clean();
}
