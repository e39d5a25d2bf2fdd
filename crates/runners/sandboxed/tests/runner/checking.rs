//! What is said before anything is run.

use antiphon_core::port::{Runner, RunnerError};
use antiphon_sandbox::SandboxMode;
use antiphon_sandboxed::{SandboxRunner, SettingsError, WorkerCommand, WorkerLimits};
use serde_json::json;

use crate::bench::{Bench, calls, scripted, settings, token};

#[test]
fn a_config_is_checked_and_the_sandbox_is_tried() {
    let bench = Bench::new(&calls("look", json!({})));
    assert_eq!(bench.runner.kind(), "sandbox");
    assert_eq!(bench.runner.check(&json!({})), Ok(()));
    assert_eq!(bench.runner.check(&json!({ "memory_mb": 100, "cpu_s": 1, "wall_s": 1 })), Ok(()));
    let wrong = bench.runner.check(&json!({ "network": true })).unwrap_err();
    assert!(wrong.contains("unknown field `network`"), "{wrong}");
    assert_eq!(std::fs::read_dir(bench.outside("tmp")).unwrap().count(), 0);
}

#[test]
fn a_machine_without_a_sandbox_is_told_of() {
    for (program, reason) in
        [("/bin/true".into(), "sent nothing"), ("/nowhere".into(), "cannot be started")]
    {
        let bench = Bench::with(scripted(&calls("look", json!({}))), |settings| {
            settings.worker = WorkerCommand { program, args: Vec::new() };
        });
        let error = bench.runner.check(&json!({})).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn a_sandbox_that_cannot_be_made_says_why_and_nothing_is_run() {
    let bench = Bench::with(scripted(&calls("act", json!({ "on": "1" }))), |_| {});
    // What has to be protected cannot be: a link could lead anywhere.
    std::os::unix::fs::symlink("/etc", bench.root.join(".git")).unwrap();
    let error = bench.runner.check(&json!({})).unwrap_err();
    assert!(error.contains("cannot be protected"), "{error}");
    let task_id = bench.accept().await;
    assert_eq!(bench.once(&task_id).await, Err(RunnerError::Refused { reason: error }));
    assert!(bench.lines("acts").is_empty());
    bench.assert_clean();
}

#[test]
fn settings_that_make_no_sandbox_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |change: &dyn Fn(&mut antiphon_sandboxed::SandboxRunnerSettings)| {
        let mut settings = settings(folder.path(), folder.path(), &token());
        change(&mut settings);
        SandboxRunner::new(settings).unwrap_err()
    };
    let full = refused(&|settings| settings.policy.mode = SandboxMode::Full);
    assert_eq!(full, SettingsError::NoSandbox);
    let little = refused(&|settings| {
        settings.limits = WorkerLimits { memory_bytes_max: 1, ..WorkerLimits::default() };
    });
    assert!(matches!(little, SettingsError::TooLittle { name: "memory_bytes_max", .. }));
    let root = refused(&|settings| settings.policy.roots = vec!["/".into()]);
    assert!(root.to_string().contains("choose a folder in it"));
    let long = refused(&|settings| settings.worker_settings = json!("x".repeat(2_000_000)));
    assert!(matches!(long, SettingsError::TooLong { .. }));
}

#[tokio::test]
async fn a_config_that_is_wrong_is_refused_when_it_is_run_too() {
    let bench = Bench { config: json!({ "gpu": 1 }), ..Bench::new(&calls("look", json!({}))) };
    let task_id = bench.accept().await;
    let error = bench.once(&task_id).await.unwrap_err();
    assert!(matches!(error, RunnerError::Refused { .. }), "{error}");
}

#[tokio::test]
async fn a_machine_that_allows_no_namespaces_is_told_what_to_do() {
    // The inside of a sandbox is such a machine.
    let program = std::env::current_exe().unwrap();
    let test = "checking::a_check_where_there_are_no_namespaces";
    let bench = Bench::new(&calls("look", json!({})));
    let command = format!(
        "CHECK_FOLDER={} {} --exact {test} --ignored --nocapture",
        bench.root.display(),
        program.display()
    );
    let bench = Bench { provider: scripted(&calls("command", json!({ "on": command }))), ..bench };
    let state = bench.whole().await;
    let results = bench.results(&state.task_id).await;
    assert!(results[0].0.contains("this machine does not allow user namespaces"), "{results:?}");
}

/// Not a test: what the one above runs in a sandbox.
#[test]
#[ignore = "started by another test"]
fn a_check_where_there_are_no_namespaces() {
    let Some(folder) = std::env::var_os("CHECK_FOLDER").map(std::path::PathBuf::from) else {
        return;
    };
    let runner = SandboxRunner::new(settings(&folder, &folder, &token())).unwrap();
    println!("{:?}", runner.check(&json!({})));
}
