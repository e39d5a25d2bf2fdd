//! `antiphon journal`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::project_folder::state;
use crate::server::{Server, antiphon, commands, project};

fn journal(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = antiphon(folder).arg("journal").args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let (code, out, error) = journal(folder, arguments);
    assert_eq!(code, 0, "{arguments:?}: {error}");
    serde_json::from_str(&out).unwrap()
}

fn run(folder: &Path) {
    let output = antiphon(folder).args(["run", "--mode", "full", "go"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn tasks(folder: &Path) -> Vec<Value> {
    let output = antiphon(folder).args(["tasks", "list", "--json"]).output().unwrap();
    serde_json::from_slice::<Value>(&output.stdout).unwrap().as_array().unwrap().clone()
}

#[test]
fn pruned_tasks_leave_the_list_with_their_results_and_a_dry_run_changes_nothing() {
    // The output is stored because it is too long for the model.
    let folder = project(&commands(&["head -c 300000 /dev/zero | tr '\\\\0' x"]));
    for _ in 0..3 {
        run(folder.path());
    }
    let results = state(folder.path()).join("results");
    // Beside the results is the folder of calls that run.
    let is_result = |entry: &fs::DirEntry| entry.file_name() != ".calls";
    let stored = || {
        fs::read_dir(&results)
            .map_or(0, |entries| entries.filter_map(Result::ok).filter(is_result).count())
    };
    assert_eq!((tasks(folder.path()).len(), stored()), (3, 3));
    let dry = json(folder.path(), &["prune", "--keep", "1", "--dry-run", "--json"]);
    assert_eq!(dry["tasks"].as_array().unwrap().len(), 2, "{dry}");
    assert_eq!((tasks(folder.path()).len(), stored()), (3, 3), "nothing changed");
    let pruned = json(folder.path(), &["prune", "--keep", "1", "--json"]);
    assert_eq!((&pruned["tasks"], &pruned["results"]), (&dry["tasks"], &json!(2)), "{pruned}");
    assert_eq!((tasks(folder.path()).len(), stored()), (1, 1));
    assert!(pruned["bytes_after"].as_u64() < pruned["bytes_before"].as_u64(), "{pruned}");
    let verified = json(folder.path(), &["verify", "--json"]);
    assert_eq!((&verified["sound"], &verified["pruned"]), (&json!(true), &json!(2)), "{verified}");
    run(folder.path());
    assert_eq!(tasks(folder.path()).len(), 2);
    let (code, out, _) = journal(folder.path(), &["prune", "--before", "2020-01-01"]);
    assert_eq!((code, out.as_str()), (0, "removed 0 tasks with 0 events and 0 sessions\n"));
}

#[test]
fn arguments_that_select_nothing_are_refused() {
    let folder = project(&commands(&["true"]));
    run(folder.path());
    for arguments in
        [&["prune"][..], &["prune", "--before", "yesterday"], &["prune", "--keep", "-1"]]
    {
        assert_eq!(journal(folder.path(), arguments).0, 2, "{arguments:?}");
    }
    assert_eq!(tasks(folder.path()).len(), 1);
}

#[test]
fn while_a_server_runs_the_journal_is_verified_and_not_changed() {
    let folder = project(&commands(&["true"]));
    let server = Server::start(folder.path(), &[]);
    let task = server.task();
    server.completed(&task);
    assert_eq!(json(folder.path(), &["verify", "--json"])["sound"], json!(true));
    for arguments in
        [&["compact"][..], &["prune", "--keep", "0"], &["prune", "--keep", "0", "--dry-run"]]
    {
        let (code, _, said) = journal(folder.path(), arguments);
        assert_eq!(code, 4, "{arguments:?}: {said}");
        assert!(said.contains("is in use by process"), "{arguments:?}: {said}");
    }
    assert_eq!(server.status(&task), "completed");
}

#[test]
fn a_damaged_journal_is_found_and_repaired() {
    let folder = project(&commands(&["echo a", "echo b"]));
    run(folder.path());
    run(folder.path());
    let (code, out, _) = journal(folder.path(), &["repair"]);
    assert_eq!((code, out.as_str()), (0, "the journal is sound: nothing was changed\n"));
    assert_eq!(journal(folder.path(), &["compact"]).0, 0);
    let path = state(folder.path()).join("journal.db");
    let whole = fs::read(&path).unwrap();
    // The last pages are cut off.
    fs::write(&path, &whole[..whole.len() - 2 * 4096]).unwrap();
    let (code, _, said) = journal(folder.path(), &["verify"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("truncated") && said.contains("journal repair"), "{said}");
    let (code, out, said) = journal(folder.path(), &["repair"]);
    assert_eq!(code, 0, "{said}");
    assert!(out.contains("the damaged journal is kept as"), "{out}");
    assert_eq!(json(folder.path(), &["verify", "--json"])["sound"], json!(true));
    run(folder.path());
}
