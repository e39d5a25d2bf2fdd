//! What is allowed always: the file that remembers it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use antiphon_core::port::{Gate as _, GateVerdict, Rule};
use antiphon_permissions::{Decision, Gate, Limits, RULE_BYTES_MAX, Remembered, RememberedError};
use tempfile::TempDir;

use crate::world::{ROOT, explain, judge, open_gate, proposed, script};

fn rule(text: &str) -> Rule {
    Rule(text.to_owned())
}

fn remembering(file: &Path) -> Gate {
    open_gate("deny = [\"bash(rm *)\"]").remembering(Remembered::open(file, ROOT.as_ref()).unwrap())
}

fn world() -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config/permissions.toml");
    (folder, file)
}

#[tokio::test]
async fn what_is_remembered_holds_at_once_and_after_a_restart() {
    let (_folder, file) = world();
    let gate = remembering(&file);
    let child = gate.narrowed(&Limits::default()).unwrap();
    assert_eq!(script(&gate, "cargo build"), Decision::Ask);
    let verdict = judge(&gate, "bash", r#"{"command":"cargo build -v"}"#, &[]);
    gate.remember(&rule(proposed(&verdict))).await.unwrap();
    assert_eq!(script(&gate, "cargo build"), Decision::Allow);
    assert_eq!(script(&child, "cargo build"), Decision::Allow);
    assert_eq!(script(&remembering(&file), "cargo build --release"), Decision::Allow);
    assert_eq!(script(&remembering(&file), "cargo test"), Decision::Ask);

    gate.remember(&rule("bash(rm *)")).await.unwrap();
    assert_eq!(script(&gate, "rm x"), Decision::Deny);

    let other = Remembered::open(&file, "/home/me/other".as_ref()).unwrap();
    assert_eq!(other.rules(), []);
}

#[tokio::test]
async fn the_file_is_its_owners_alone_and_can_be_read_by_people() {
    let (_folder, file) = world();
    let gate = remembering(&file);
    gate.remember(&rule("bash(=echo \"a\nb\" 'c')")).await.unwrap();
    gate.remember(&rule("bash(git push *)")).await.unwrap();
    gate.remember(&rule("bash(git push *)")).await.unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("[projects.\"/home/me/project\"]"), "{text}");
    assert_eq!(text.matches("git push").count(), 1, "{text}");
    assert_eq!(script(&remembering(&file), "echo \"a\nb\" 'c'"), Decision::Allow);
    let left: Vec<_> = fs::read_dir(file.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 2, "the file and its lock: {left:?}");
}

#[tokio::test]
async fn a_damaged_file_is_an_error_and_is_left_as_it_is() {
    for damaged in [
        "projects = 1",
        "not toml",
        "[projects.\"/x\"]\nallow = [1]",
        "[projects.\"/home/me/project\"]\nallow = [\"bash(\"]",
        "[projects.\"/x\"]\ndeny = []",
        "\u{feff}\0",
    ] {
        let (_folder, file) = world();
        let gate = remembering(&file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, damaged).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let error = Remembered::open(&file, ROOT.as_ref()).unwrap_err();
        assert!(matches!(error, RememberedError::Malformed { .. }), "{error}");
        let message = gate.remember(&rule("bash(ls)")).await.unwrap_err();
        assert!(message.contains("cannot be read"), "{message}");
        assert_eq!(fs::read_to_string(&file).unwrap(), damaged);
        assert_eq!(script(&gate, "cargo build"), Decision::Ask);
    }
}

#[test]
fn a_file_that_others_can_write_is_refused() {
    let (_folder, file) = world();
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o622)).unwrap();
    let error = Remembered::open(&file, ROOT.as_ref()).unwrap_err();
    assert!(matches!(error, RememberedError::Exposed { .. }), "{error}");
}

#[test]
fn what_is_no_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = Remembered::open(folder.path(), ROOT.as_ref()).unwrap_err();
    assert!(matches!(error, RememberedError::Unusable { .. }), "{error}");
    let error = Remembered::open(folder.path().join("x"), "relative".as_ref()).unwrap_err();
    assert!(error.to_string().contains("not an absolute path"), "{error}");
}

#[tokio::test]
async fn rules_that_cannot_be_kept_are_refused_with_what_to_do() {
    let (_folder, file) = world();
    let gate = remembering(&file);
    let long = format!("bash(={})", "a".repeat(RULE_BYTES_MAX));
    for (text, part) in [("bash(", "is not closed"), (long.as_str(), "allow it for this task")] {
        let error = gate.remember(&rule(text)).await.unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    assert!(!file.exists());
    let forgetful = open_gate("");
    let error = forgetful.remember(&rule("bash(ls)")).await.unwrap_err();
    assert!(error.contains("there is no file to remember rules in"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_gates_lose_no_remembered_rules() {
    let (_folder, file) = world();
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..8 {
        // Each has a gate of its own, as processes have.
        let gate = Arc::new(remembering(&file));
        tasks.spawn(async move {
            for at in 0..5 {
                gate.remember(&rule(&format!("bash(tool{writer} sub{at} *)"))).await.unwrap();
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(Remembered::open(&file, ROOT.as_ref()).unwrap().rules().len(), 40);
}

/// The other half of the next test: runs in a process of its own.
#[tokio::test]
async fn a_process_that_remembers() {
    let Ok(file) = std::env::var("ANTIPHON_TEST_REMEMBER") else { return };
    let name = std::env::var("ANTIPHON_TEST_NAME").unwrap();
    let gate = remembering(file.as_ref());
    for at in 0..10 {
        gate.remember(&rule(&format!("bash({name} sub{at} *)"))).await.unwrap();
    }
}

#[test]
fn processes_that_remember_at_the_same_time_lose_nothing_of_each_other() {
    let (_folder, file) = world();
    let children: Vec<_> = ["a", "b", "c"]
        .into_iter()
        .map(|name| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "remembered::a_process_that_remembers"])
                .env("ANTIPHON_TEST_REMEMBER", &file)
                .env("ANTIPHON_TEST_NAME", name)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(Remembered::open(&file, ROOT.as_ref()).unwrap().rules().len(), 30);
}

#[tokio::test]
async fn a_link_to_the_file_stays_a_link() {
    let (folder, file) = world();
    let real = folder.path().join("dotfiles.toml");
    fs::write(&real, "").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&real, &file).unwrap();
    remembering(&file).remember(&rule("bash(ls)")).await.unwrap();
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("bash(ls)"));
}

#[test]
fn what_others_remembered_is_not_asked_for_again() {
    let (_folder, file) = world();
    let gate = remembering(&file);
    assert_ne!(judge(&gate, "mcp__a__b", "{}", &[]), GateVerdict::Allow);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(remembering(&file).remember(&rule("mcp__a__b"))).unwrap();
    // It is learnt when this gate writes next.
    runtime.block_on(gate.remember(&rule("mcp__a__c"))).unwrap();
    assert_eq!(explain(&gate, "mcp__a__b", "{}", &[]).decision(), Decision::Allow);
}

#[tokio::test]
async fn rules_are_for_the_folder_and_not_for_what_is_at_its_path_later() {
    let folder = tempfile::tempdir().unwrap();
    let (file, root) = (folder.path().join("permissions.toml"), folder.path().join("root"));
    fs::create_dir(&root).unwrap();
    let open = || Remembered::open(&file, &root).unwrap();
    let add = async |rule: &str| {
        open_gate("").remembering(open()).remember(&Rule(rule.into())).await.unwrap();
    };
    add("bash(make)").await;
    assert_eq!(open().rules(), [Rule("bash(make)".into())]);
    fs::rename(&root, folder.path().join("before")).unwrap();
    fs::create_dir(&root).unwrap();
    assert_eq!(open().rules(), [], "another folder");
    add("bash(ls)").await;
    assert_eq!(open().rules(), [Rule("bash(ls)".into())], "nothing of the folder before is left");
    Remembered::forget(&file, &root).unwrap();
    assert_eq!(open().rules(), []);
    // A file of an earlier version says nothing about the folder.
    let old = format!("[projects.\"{}\"]\nallow = [\"bash(old)\"]\n", root.display());
    fs::write(&file, old).unwrap();
    assert_eq!(open().rules(), [Rule("bash(old)".into())]);
    add("bash(new)").await;
    assert_eq!(open().rules().len(), 2);
    fs::remove_dir(&root).unwrap();
    fs::create_dir(&root).unwrap();
    assert_eq!(open().rules(), []);
}
