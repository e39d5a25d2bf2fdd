//! What is believed about a project is the user's own: nothing that came with a clone acts, and nothing that is
//! done to the project's folder loses a task.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/project_folder.rs"]
mod project_folder;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use project_folder::{ProjectFolder, home, state};
use serde_json::Value;

const PUSHES: &str = r#"
name = "work"
[[reply]]
when = { turn = 0 }
step = [{ call = { name = "bash", arguments = { command = "touch pushed; git push origin main" } } }]
[[reply]]
step = [{ text = "{{last_result}}" }]
"#;

/// A project whose model pushes, and a user who wants to be asked about it.
fn project() -> ProjectFolder {
    let folder = ProjectFolder::new();
    fs::write(folder.path().join("work.toml"), PUSHES).unwrap();
    let config = home(folder.path()).join(".config/antiphon");
    fs::create_dir_all(&config).unwrap();
    let text = "[permissions]\nask = [\"bash(git push *)\"]\n[scripts]\nwork = \"work.toml\"\n";
    fs::write(config.join("config.toml"), text).unwrap();
    fs::write(config.join("work.toml"), PUSHES).unwrap();
    folder
}

/// Exit code, output, errors.
fn antiphon(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("antiphon"))
        .current_dir(folder)
        .env_clear()
        .env("HOME", home(folder))
        .env("PATH", std::env::var_os("PATH").unwrap())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let (code, out, err) = antiphon(folder, arguments);
    assert_eq!(code, 0, "{arguments:?}: {err}");
    serde_json::from_str(&out).unwrap()
}

/// A task that waits for an answer, which a script of the project's own drives.
fn asks(folder: &Path) {
    let run = ["run", "go", "--model", "scripted/work", "--script", "work.toml", "--ask", "wait"];
    let (code, _, err) = antiphon(folder, &run);
    assert_eq!(code, 3, "{err}");
}

#[test]
fn a_journal_that_came_with_a_clone_acts_only_after_a_person_brought_it_over_and_resumed_it() {
    let theirs = project();
    asks(theirs.path());
    assert_eq!(antiphon(theirs.path(), &["approvals", "allow", "--task", "last"]).0, 0);
    let clone = project();
    let shared = clone.path().join(".antiphon");
    fs::create_dir(&shared).unwrap();
    // Closed, so that the file holds all of it.
    assert_eq!(antiphon(theirs.path(), &["backup", "copy"]).0, 0);
    fs::copy(theirs.path().join("copy"), shared.join("journal.db")).unwrap();

    let (code, _, err) = antiphon(clone.path(), &["tasks", "list"]);
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("may have come with a clone") && err.contains("antiphon restore"),
        "{err}"
    );
    assert!(!clone.path().join("pushed").exists());

    let (code, out, err) = antiphon(clone.path(), &["restore", ".antiphon/journal.db"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("1 task now paused, without approvals"), "{out}");
    let tasks = json(clone.path(), &["tasks", "list", "--json"]);
    assert_eq!(tasks[0]["waiting_for"], "resume", "{tasks}");
    assert!(!clone.path().join("pushed").exists());

    // The approval in the file does not count: the call asks again.
    let (code, _, err) = antiphon(clone.path(), &["run", "--resume", "last", "--ask", "wait"]);
    assert_eq!(code, 3, "{err}");
    assert!(!clone.path().join("pushed").exists());
    let asked = json(clone.path(), &["approvals", "list", "--json"]);
    assert_eq!(asked[0]["status"], "pending", "{asked}");
    assert_eq!(antiphon(clone.path(), &["approvals", "allow", "last"]).0, 0);
    assert_eq!(antiphon(clone.path(), &["run", "--resume", "last"]).0, 0);
    assert!(clone.path().join("pushed").exists(), "their own answer counts");
}

#[test]
fn cleaning_the_project_loses_nothing() {
    let folder = project();
    let git = |words: &[&str]| {
        let done = Command::new("git").args(words).current_dir(folder.path()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "--quiet"]);
    assert_eq!(antiphon(folder.path(), &["run", "hello"]).0, 0);
    assert_eq!(antiphon(folder.path(), &["keys", "new", "--name", "mine"]).0, 0);
    git(&["clean", "-fdx", "--quiet"]);
    assert_eq!(json(folder.path(), &["tasks", "list", "--json"]).as_array().unwrap().len(), 1);
    assert_eq!(json(folder.path(), &["keys", "list", "--json"])[0]["name"], "mine");
    let below = folder.path().join("deep/below");
    fs::create_dir_all(&below).unwrap();
    let shown = Command::new(assert_cmd::cargo::cargo_bin!("antiphon"))
        .current_dir(&below)
        .env_clear()
        .env("HOME", home(folder.path()))
        .args(["tasks", "list", "--json"])
        .output()
        .unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown.as_array().unwrap().len(), 1, "the top of the work tree is the root");
}

#[test]
fn another_folder_at_the_same_path_does_not_get_the_tasks_unasked() {
    let folder = project();
    let root = folder.path();
    assert_eq!(antiphon(root, &["run", "hello"]).0, 0);
    fs::remove_dir_all(root).unwrap();
    fs::create_dir(root).unwrap();
    for order in [&["tasks", "list"][..], &["run", "hello"], &["serve", "--listen", "127.0.0.1:0"]]
    {
        let (code, _, err) = antiphon(root, order);
        assert_eq!(code, 3, "{order:?}: {err}");
        assert!(err.contains("projects move") && err.contains("projects forget"), "{err}");
    }
    assert_eq!(json(root, &["projects", "list", "--json"])[0]["status"], "replaced");
    let path = root.to_str().unwrap();
    assert_eq!(antiphon(root, &["projects", "move", path, path]).0, 0);
    assert_eq!(json(root, &["tasks", "list", "--json"]).as_array().unwrap().len(), 1);

    // It is moved: its tasks move along.
    let moved = root.with_file_name("moved");
    fs::rename(root, &moved).unwrap();
    assert_eq!(json(&moved, &["projects", "list", "--json"])[0]["status"], "gone");
    assert_eq!(antiphon(&moved, &["projects", "move", path]).0, 0);
    assert_eq!(json(&moved, &["tasks", "list", "--json"]).as_array().unwrap().len(), 1);
    assert!(!state(root).exists());

    let (code, _, err) = antiphon(&moved, &["projects", "forget", "."]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("--yes"), "{err}");
    assert!(state(&moved).exists());
    assert_eq!(antiphon(&moved, &["projects", "forget", ".", "--yes"]).0, 0);
    assert!(!state(&moved).exists());
    let (code, _, err) = antiphon(&moved, &["projects", "forget", "nonesuch", "--yes"]);
    assert!(code == 2 && err.contains("projects list"), "{err}");
}

#[test]
fn rules_that_were_always_allowed_are_for_the_folder_and_not_for_its_path() {
    let folder = project();
    let root = folder.path();
    asks(root);
    assert_eq!(antiphon(root, &["approvals", "allow", "--always", "last"]).0, 0);
    let kept = home(root).join(".config/antiphon/permissions.toml");
    assert!(fs::read_to_string(&kept).unwrap().contains("git push"));
    // Another folder at the same path, and state of it beside the old one.
    let aside = state(root).with_extension("replaced-1");
    fs::create_dir(&aside).unwrap();
    fs::copy(state(root).join("project.json"), aside.join("project.json")).unwrap();
    let path = root.to_str().unwrap();
    let (code, _, err) = antiphon(root, &["projects", "forget", path, "--yes"]);
    assert_eq!(code, 0, "{err}");
    assert!(!fs::read_to_string(&kept).unwrap().contains("git push"));
    assert!(!state(root).exists(), "the state in use is what the path names");
    assert!(aside.exists());
}

#[test]
fn a_project_that_a_process_works_on_is_neither_moved_nor_forgotten() {
    let folder = project();
    let root = folder.path();
    let mut server = Command::new(assert_cmd::cargo::cargo_bin!("antiphon"))
        .current_dir(root)
        .env_clear()
        .env("HOME", home(root))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = server.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    let path = root.to_str().unwrap();
    for order in [&["projects", "forget", path, "--yes"][..], &["projects", "move", path, path]] {
        let (code, _, err) = antiphon(root, order);
        assert_eq!(code, 4, "{order:?}: {err}");
    }
    assert!(state(root).join("journal.db").exists());
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_folder_that_holds_the_users_own_files_is_no_project() {
    let folder = project();
    let outer = folder.path().parent().unwrap();
    let own = home(folder.path());
    let inner = [".ssh", ".aws/sso", ".config/antiphon/agents"].map(|name| own.join(name));
    for path in &inner {
        fs::create_dir_all(path).unwrap();
    }
    for root in [own, outer.to_owned(), "/".into()].into_iter().chain(inner) {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("antiphon"));
        command.current_dir(&root).env_clear().env("HOME", home(folder.path()));
        let output = command.args(["run", "hello"]).stdin(Stdio::null()).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{}: {err}", root.display());
        assert!(err.contains("--allow-unsafe-root"), "{err}");
    }
    assert!(!home(folder.path()).join(".local").exists(), "nothing was begun");
}
