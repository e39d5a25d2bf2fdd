//! Calls that were cut off: what is known about them is kept until their result is recorded.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use antiphon_core::port::{Cancel, CutOffCall, CutOffOutcome, ToolContext};
use antiphon_core::{InputBlock, RawJson, ToolExecutor, ToolResult};
use antiphon_shell::Shell;
use serde_json::json;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::bench::{Bench, eventually, settings};

fn command(command: &str) -> RawJson {
    RawJson::of(&json!({ "command": command })).unwrap()
}

fn context(bench: &Bench, call_uuid: Uuid) -> ToolContext {
    ToolContext { task_id: bench.task_id.clone(), call_uuid, ..ToolContext::trial(Cancel::never()) }
}

fn file(bench: &Bench, call_uuid: Uuid) -> PathBuf {
    bench.outside("results/.calls").join(call_uuid.to_string())
}

/// A look by the next process.
async fn inspect_cut_off(bench: &Bench, call_uuid: Uuid) -> CutOffOutcome {
    let next = Shell::new(settings(&bench.folder, &bench.root)).unwrap();
    let call = CutOffCall { task_id: bench.task_id.clone(), call_uuid, note: None };
    next.inspect_cut_off("bash", &command("x"), &call).await
}

fn text(result: &ToolResult) -> String {
    let text = |block: &InputBlock| match block {
        InputBlock::Text(text) => text.text.clone(),
        InputBlock::Image(_) => String::new(),
    };
    result.content.iter().map(text).collect()
}

#[tokio::test]
async fn the_next_process_finds_the_output_so_far_the_time_and_the_id() {
    for bench in [Bench::new(), Bench::full()] {
        let uuid = Uuid::new_v4();
        let shell = Arc::clone(&bench.shell);
        let context = context(&bench, uuid);
        let script = "echo $ANTIPHON_CALL_ID; echo and more; printf 'half a line'; sleep 60";
        let mut running = JoinSet::new();
        running.spawn(async move {
            let _ = shell.execute("bash", &command(script), context).await;
        });
        let kept = file(&bench, uuid);
        // The header, two lines and a half.
        let whole = 32 + 37 + 9 + 11;
        eventually("the output", || fs::metadata(&kept).is_ok_and(|it| it.len() >= whole)).await;
        let found = inspect_cut_off(&bench, uuid).await;
        drop(running);
        let CutOffOutcome::Unknown { known } = found else { panic!("{found:?}") };
        let output = format!("[Output so far:]\n{uuid}\nand more\nhalf a line");
        assert!(known.ends_with(&output), "{known}");
        assert!(known.contains(&format!("ANTIPHON_CALL_ID: {uuid}]")), "{known}");
        assert!(known.contains("[It ran for 0."), "{known}");
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&kept).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_call_that_had_ended_has_its_result() {
    let bench = Bench::new();
    let uuid = Uuid::new_v4();
    for script in ["echo done", "echo failed >&2; exit 3"] {
        let result = bench.shell.execute("bash", &command(script), context(&bench, uuid)).await;
        assert_eq!(inspect_cut_off(&bench, uuid).await, CutOffOutcome::Happened(result.unwrap()));
    }
}

#[tokio::test]
async fn the_time_of_a_silent_command_is_known() {
    let bench = Bench::new();
    let uuid = Uuid::new_v4();
    let (shell, context) = (Arc::clone(&bench.shell), context(&bench, uuid));
    let mut running = JoinSet::new();
    running.spawn(async move {
        let _ = shell.execute("bash", &command("sleep 60"), context).await;
    });
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    let found = inspect_cut_off(&bench, uuid).await;
    drop(running);
    let CutOffOutcome::Unknown { known } = found else { panic!("{found:?}") };
    let ran = known.contains("[It ran for 1.") || known.contains("[It ran for 2.");
    assert!(ran && known.contains("[It had no output until then]"), "{known}");
}

#[tokio::test]
async fn the_file_goes_when_the_result_is_recorded_and_not_before() {
    let bench = Bench::new();
    let (uuid, other) = (Uuid::new_v4(), Uuid::new_v4());
    for uuid in [uuid, other] {
        let result = bench.shell.execute("bash", &command("echo x"), context(&bench, uuid)).await;
        assert!(text(&result.unwrap()).starts_with("x\n"));
    }
    bench.release().await;
    assert!(file(&bench, uuid).exists(), "the result is not recorded yet");
    for _ in 0..2 {
        bench.shell.settled("bash", &bench.task_id, uuid).await;
        assert!(!file(&bench, uuid).exists() && file(&bench, other).exists());
    }
    let CutOffOutcome::Unknown { known } = inspect_cut_off(&bench, uuid).await else { panic!() };
    assert!(known.contains("Nothing was kept"), "{known}");
}

#[tokio::test]
async fn a_command_cannot_reach_or_forge_what_is_kept() {
    let bench = Bench::new();
    let uuid = Uuid::new_v4();
    let calls = bench.outside("results/.calls");
    let script = format!("ls {0}; echo forged > {0}/{uuid}; exit 1", calls.display());
    let result = bench.shell.execute("bash", &command(&script), context(&bench, uuid)).await;
    let result = result.unwrap();
    assert!(!text(&result).contains(&uuid.to_string()[..13]) || result.is_error, "{result:?}");
    assert_eq!(inspect_cut_off(&bench, uuid).await, CutOffOutcome::Happened(result));
}

#[tokio::test]
async fn a_flood_is_kept_in_part() {
    let bench = Bench::new();
    let uuid = Uuid::new_v4();
    let script = "seq 1 2000000; sleep 60";
    let (shell, context) = (Arc::clone(&bench.shell), context(&bench, uuid));
    let mut running = JoinSet::new();
    running.spawn(async move {
        let _ = shell.execute("bash", &command(script), context).await;
    });
    let mut known = String::new();
    for _ in 0..200 {
        if let CutOffOutcome::Unknown { known: now } = inspect_cut_off(&bench, uuid).await {
            known = now;
        }
        if known.ends_with("\n2000000") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    drop(running);
    assert!(known.ends_with("\n2000000") && known.contains("\n1\n2\n"), "{}", known.len());
    assert!(known.contains("bytes left out") && known.len() < 30_000, "{}", known.len());
    assert!(fs::metadata(file(&bench, uuid)).unwrap().len() < 32 * 1024);
}

#[tokio::test]
async fn without_a_place_to_keep_it_a_command_runs_all_the_same() {
    let bench = Bench::new();
    let calls = bench.outside("results/.calls");
    fs::remove_dir_all(&calls).unwrap();
    fs::write(&calls, "").unwrap();
    let uuid = Uuid::new_v4();
    let result = bench.shell.execute("bash", &command("echo x"), context(&bench, uuid)).await;
    assert!(!result.unwrap().is_error);
    bench.shell.settled("bash", &bench.task_id, uuid).await;
}
