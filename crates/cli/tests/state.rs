//! What is believed about a project is the user's own: nothing that came with a clone acts, and nothing that is
//! done to the project's folder loses a task.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/project_folder.rs"]
mod project_folder;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use project_folder::{ProjectFolder, antiphon as binary, home, state};
use serde_json::Value;

const PUSHES: &str = r#"
name = "work"
[[reply]]
when = { turn = 0 }
step = [{ call = { name = "bash", arguments = { command = "touch pushed; git push origin main" } } }]
[[reply]]
step = [{ text = "{{last_result}}" }]
"#;

const ENDS: &str = "name = \"work\"\n[[reply]]\nstep = [{ text = \"Done.\" }]\n";

const CALLS_SERVER: &str = r#"
name = "work"
[[reply]]
when = { turn = 0 }
step = [{ call = { name = "mcp__marks__add", arguments = {} } }]
[[reply]]
step = [{ text = "{{last_result}}" }]
"#;

/// An MCP server that writes down its calls.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "marks", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = {"tools": [{"name": "add", "description": "add", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        with open("calls", "a") as calls:
            calls.write(message["params"]["name"] + "\n")
        answer["result"] = {"content": [{"type": "text", "text": "done"}]}
    elif method == "ping":
        answer["result"] = {}
    else:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(answer), flush=True)
"#;

/// A project whose model pushes, and a user who wants to be asked about it.
fn project() -> ProjectFolder {
    pushing(ProjectFolder::new())
}

fn pushing(folder: ProjectFolder) -> ProjectFolder {
    fs::write(folder.path().join("work.toml"), PUSHES).unwrap();
    let config = home(folder.path()).join(".config/antiphon");
    fs::create_dir_all(&config).unwrap();
    let text = "model = \"scripted/hello\"\n[permissions]\nask = [\"bash(git push *)\"]\n\
                [scripts]\nwork = \"work.toml\"\n";
    fs::write(config.join("config.toml"), text).unwrap();
    fs::write(config.join("work.toml"), PUSHES).unwrap();
    folder
}

/// Exit code, output, errors.
fn antiphon(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = binary(folder).args(arguments).stdin(Stdio::null()).output().unwrap();
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
    for clone in ProjectFolder::each().into_iter().map(pushing) {
        cloned_journal_acts_only_after_a_person(&clone);
    }
}

/// Puts the journal of one project into the other, as a clone brings it.
fn bring(theirs: &ProjectFolder, clone: &ProjectFolder) {
    let shared = clone.path().join(".antiphon");
    fs::create_dir(&shared).unwrap();
    // Closed, so that the file holds all of it.
    assert_eq!(antiphon(theirs.path(), &["backup", "copy"]).0, 0);
    fs::copy(theirs.path().join("copy"), shared.join("journal.db")).unwrap();
}

fn cloned_journal_acts_only_after_a_person(clone: &ProjectFolder) {
    let theirs = project();
    asks(theirs.path());
    assert_eq!(antiphon(theirs.path(), &["approvals", "allow", "--task", "last"]).0, 0);
    bring(&theirs, clone);
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
fn a_restored_task_writes_no_file_that_the_journal_names() {
    // One that has ended, and one that has not.
    for script in [ENDS, PUSHES] {
        let (theirs, clone) = (project(), project());
        fs::write(theirs.path().join("work.toml"), script).unwrap();
        let target = home(clone.path()).join("written.json");
        let save = target.to_str().unwrap();
        let run =
            ["run", "go", "--model", "scripted/work", "--script", "work.toml", "--ask", "wait"];
        antiphon(theirs.path(), &[&run[..], &["--save", save]].concat());
        let _ = fs::remove_file(&target);
        bring(&theirs, &clone);
        let (code, _, err) = antiphon(clone.path(), &["restore", ".antiphon/journal.db"]);
        assert_eq!(code, 0, "{err}");
        let task = json(clone.path(), &["tasks", "list", "--all", "--json"])[0]["task_id"].clone();
        antiphon(clone.path(), &["run", "--resume", task.as_str().unwrap(), "--ask", "wait"]);
        antiphon(clone.path(), &["tasks", "resume", task.as_str().unwrap()]);
        assert!(!target.exists(), "{script}");
    }
}

#[test]
fn an_approved_call_of_an_mcp_server_in_a_restored_journal_asks_again() {
    let with_server = || {
        let folder = project();
        let config = home(folder.path()).join(".config/antiphon");
        let server = config.join("server.py");
        fs::write(&server, SERVER).unwrap();
        let text = format!(
            "[scripts]\nwork = \"work.toml\"\n[mcp.marks]\ncommand = \"python3\"\nargs = [{:?}]\ncwd = \".\"\n",
            server.to_str().unwrap()
        );
        fs::write(config.join("config.toml"), text).unwrap();
        for script in [config.join("work.toml"), folder.path().join("work.toml")] {
            fs::write(script, CALLS_SERVER).unwrap();
        }
        folder
    };
    let (theirs, clone) = (with_server(), with_server());
    asks(theirs.path());
    assert_eq!(antiphon(theirs.path(), &["approvals", "allow", "--task", "last"]).0, 0);
    bring(&theirs, &clone);
    assert_eq!(antiphon(clone.path(), &["restore", ".antiphon/journal.db"]).0, 0);
    let (code, _, err) = antiphon(clone.path(), &["run", "--resume", "last", "--ask", "wait"]);
    assert_eq!(code, 3, "{err}");
    assert!(!clone.path().join("calls").exists());
    assert_eq!(antiphon(clone.path(), &["approvals", "allow", "last"]).0, 0);
    assert_eq!(antiphon(clone.path(), &["run", "--resume", "last"]).0, 0);
    assert_eq!(fs::read_to_string(clone.path().join("calls")).unwrap(), "add\n");
}

/// What a forged index says about a task does not count: its events do.
#[test]
fn a_task_that_a_forged_index_calls_ended_is_paused_and_has_no_approvals() {
    let (theirs, clone) = (project(), project());
    asks(theirs.path());
    assert_eq!(antiphon(theirs.path(), &["approvals", "allow", "--task", "last"]).0, 0);
    bring(&theirs, &clone);
    let forged = clone.path().join(".antiphon/journal.db");
    // A plain copy of a journal is accepted without the digest that ends a backup.
    let without_digest = fs::read(&forged).unwrap();
    let pages = without_digest.len() / 4096 * 4096;
    fs::write(&forged, &without_digest[..pages]).unwrap();
    let forge = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); \
                 c.execute('UPDATE tasks SET ended = 1, status = \\'completed\\''); c.commit()";
    let done = Command::new("python3").args(["-c", forge]).arg(&forged).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let (code, out, err) = antiphon(clone.path(), &["restore", ".antiphon/journal.db"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("1 task now paused, without approvals"), "{out}");
    let tasks = json(clone.path(), &["tasks", "list", "--json"]);
    assert_eq!(tasks[0]["waiting_for"], "resume", "{tasks}");
    let asked = json(clone.path(), &["approvals", "list", "--json"]);
    assert_eq!(asked, serde_json::json!([]), "{asked}");
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

/// Path, mode and content of everything in a folder.
fn listing(folder: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let about = fs::symlink_metadata(&path).unwrap();
        let content = if about.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        found.push((path.clone(), about.permissions().mode(), content));
        if about.is_dir() {
            found.extend(listing(&path));
        }
    }
    found.sort();
    found
}

#[test]
fn a_look_at_this_machine_leaves_nothing_behind_in_the_project() {
    for folder in ProjectFolder::each().into_iter().map(pushing) {
        let root = folder.path();
        fs::create_dir_all(root.join("vendor/lib")).unwrap();
        for repository in [root.to_owned(), root.join("vendor/lib")] {
            let done =
                Command::new("git").args(["init", "--quiet"]).current_dir(repository).output();
            assert!(done.unwrap().status.success());
        }
        let before = listing(root);
        let (_, out, err) = antiphon(root, &["doctor"]);
        assert!(out.contains("sandbox"), "{out}\n{err}");
        assert!(listing(root) == before, "{:?}\n{out}", listing(root));
    }
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
