//! The end of a worker, and of the processes that supervise it.

use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_core::TaskStatus;
use antiphon_core::port::{Runner, RunnerTask};
use serde_json::json;

use crate::bench::{Bench, calls, ends, events, eventually, processes, scripted, switch, token};
use crate::model::PiecewiseModel;

/// What a hanging tool leaves, and the three processes of its worker.
const SCATTERED: usize = 3 + 3;

fn hanging() -> Bench {
    Bench::new(&calls("hang", json!({ "on": "x" })))
}

async fn until_it_hangs(bench: &Bench) {
    let hangs = || bench.lines("hangs").len() == 1 && processes(&bench.token).len() == SCATTERED;
    eventually("the tool runs", hangs).await;
}

#[tokio::test]
async fn a_cancel_ends_the_worker_and_all_that_its_tools_started() {
    let bench = hanging();
    let task_id = bench.accept().await;
    let (fire, cancel) = switch();
    let run = bench.runner.run(RunnerTask { cancel, ..bench.run(&task_id) });
    let cancel = async {
        until_it_hangs(&bench).await;
        drop(fire);
    };
    let (ran, ()) = tokio::join!(run, cancel);
    ran.unwrap();
    bench.assert_clean();
    assert_eq!(bench.state(&task_id).await.status, TaskStatus::Canceled);
    assert_eq!(ends(&events(&*bench.journal).await), [TaskStatus::Canceled]);
}

#[tokio::test]
async fn a_cancel_ends_a_running_answer_of_the_model() {
    let (model, say) = PiecewiseModel::new();
    let (requested, reading) = (Arc::clone(&model.requested), Arc::clone(&model.reading));
    let bench = Bench::with(Arc::new(model), |_| {});
    let task_id = bench.accept().await;
    let (fire, cancel) = switch();
    let run = bench.runner.run(RunnerTask { cancel, ..bench.run(&task_id) });
    let cancel = async {
        say.send("half".to_owned()).await.unwrap();
        eventually("half is heard", || bench.lines("heard").concat() == "half").await;
        drop(fire);
    };
    let (ran, ()) = tokio::join!(run, cancel);
    ran.unwrap();
    // The test and the model hold it.
    assert_eq!((Arc::strong_count(&reading), *requested.lock().unwrap()), (2, 1));
    assert_eq!(bench.state(&task_id).await.status, TaskStatus::Canceled);
    bench.assert_clean();
}

#[tokio::test]
async fn a_worker_that_does_not_hear_a_cancel_is_ended_all_the_same() {
    let bench = Bench::with(scripted(&calls("hang", json!({ "on": "x" }))), |settings| {
        settings.worker_settings["deaf"] = json!(true);
    });
    let task_id = bench.accept().await;
    let (fire, cancel) = switch();
    let run = bench.runner.run(RunnerTask { cancel, ..bench.run(&task_id) });
    let cancel = async {
        until_it_hangs(&bench).await;
        drop(fire);
        Instant::now()
    };
    let (ran, fired) = tokio::join!(run, cancel);
    ran.unwrap();
    assert!(fired.elapsed() < Duration::from_secs(10));
    bench.assert_clean();
}

#[tokio::test]
async fn rest_returns_and_the_next_run_goes_on() {
    let bench = hanging();
    let task_id = bench.accept().await;
    let (fire, rest) = switch();
    let run = bench.runner.run(RunnerTask { shutdown: rest, ..bench.run(&task_id) });
    let rest = async {
        until_it_hangs(&bench).await;
        drop(fire);
    };
    let (ran, ()) = tokio::join!(run, rest);
    ran.unwrap();
    bench.assert_clean();
    assert_eq!(bench.state(&task_id).await.status, TaskStatus::Running);
    bench.once(&task_id).await.unwrap();
    assert_eq!(bench.state(&task_id).await.status, TaskStatus::Completed);
    let results = bench.results(&task_id).await;
    assert!(results.len() == 1 && results[0].0.contains("outcome unknown"), "{results:?}");
    assert_eq!(bench.lines("hangs").len(), 1);
}

#[tokio::test]
async fn an_interrupt_ends_the_running_call_and_the_task_waits_for_a_person() {
    let bench = hanging();
    let task_id = bench.accept().await;
    let (fire, interrupt) = switch();
    let run = bench.runner.run(RunnerTask { interrupt, ..bench.run(&task_id) });
    let interrupt = async {
        until_it_hangs(&bench).await;
        drop(fire);
    };
    let (ran, ()) = tokio::join!(run, interrupt);
    ran.unwrap();
    bench.assert_clean();
    let state = bench.state(&task_id).await;
    assert_eq!(
        (state.status, state.waiting_for),
        (TaskStatus::InputRequired, Some(antiphon_core::WaitingFor::Resume))
    );
    assert_eq!(state.detail.unwrap()["code"], "interrupted");
    let results = bench.results(&task_id).await;
    assert!(
        results.len() == 1 && results[0].0.contains("a person stopped the turn"),
        "{results:?}"
    );
}

#[tokio::test]
async fn nothing_is_started_for_a_task_that_is_canceled_already() {
    let bench = hanging();
    let task_id = bench.accept().await;
    let (fire, cancel) = switch();
    drop(fire);
    bench.runner.run(RunnerTask { cancel, ..bench.run(&task_id) }).await.unwrap();
    assert!(bench.lines("hangs").is_empty());
}

#[tokio::test]
async fn nothing_is_left_when_the_run_is_dropped() {
    let bench = hanging();
    let task_id = bench.accept().await;
    tokio::select! {
        _ = bench.runner.run(bench.run(&task_id)) => unreachable!("it hangs"),
        () = until_it_hangs(&bench) => {}
    }
    eventually("the end of everything", || processes(&bench.token).is_empty()).await;
    let tmp = bench.outside("tmp");
    eventually("clearing", || std::fs::read_dir(&tmp).unwrap().count() == 0).await;
}

#[tokio::test]
async fn nothing_is_left_when_the_guard_is_killed() {
    let bench = hanging();
    let task_id = bench.accept().await;
    let kill = async {
        until_it_hangs(&bench).await;
        let guard = rustix::process::Pid::from_raw(processes(&bench.token)[0]).unwrap();
        rustix::process::kill_process(guard, rustix::process::Signal::KILL).unwrap();
    };
    let (ran, ()) = tokio::join!(bench.once(&task_id), kill);
    assert!(ran.unwrap_err().to_string().contains("cannot be reached"));
    eventually("the end of everything", || processes(&bench.token).is_empty()).await;
}

#[tokio::test]
async fn nothing_is_left_when_this_process_is_killed() {
    let token = token();
    let folder = tempfile::tempdir_in(crate::bench::scratch()).unwrap();
    let mut orchestrator = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ending::an_orchestrator_to_be_killed", "--nocapture", "--ignored"])
        .env("ORCHESTRATOR_FOLDER", folder.path())
        .env("ORCHESTRATOR_TOKEN", &token)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("everything", || processes(&token).len() == SCATTERED).await;
    orchestrator.kill().unwrap();
    orchestrator.wait().unwrap();
    eventually("the end of everything", || processes(&token).is_empty()).await;
    let tmp = folder.path().join("tmp");
    eventually("clearing", || std::fs::read_dir(&tmp).unwrap().count() == 0).await;
}

/// Not a test: the process that the one above kills.
#[tokio::test]
#[ignore = "started by another test"]
async fn an_orchestrator_to_be_killed() {
    let Some(folder) = std::env::var_os("ORCHESTRATOR_FOLDER") else { return };
    let token = std::env::var("ORCHESTRATOR_TOKEN").unwrap();
    let folder = std::path::PathBuf::from(folder);
    let script = calls("hang", json!({ "on": "x" }));
    let bench = Bench::with(scripted(&script), |settings| {
        settings.policy.tmp = folder.join("tmp");
        settings.worker.args = vec![token.clone().into()];
        settings.worker_settings["token"] = json!(token);
    });
    let task_id = bench.accept().await;
    bench.once(&task_id).await.unwrap();
}
