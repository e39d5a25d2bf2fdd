//! The same answers as in the folder of the project.

use std::fs;

use serde_json::Value;

use super::world::{assert_same, harbor};
use crate::served::project::Project;

/// Commands that look at a project.
const LOOKING: [&str; 23] = [
    "tasks list",
    "tasks list --all",
    "tasks list --unfinished",
    "tasks list --limit 1",
    "tasks list --status completed,failed",
    "tasks list --agent keeper",
    "tasks show last",
    "tasks tree",
    "tasks diff last --below",
    "sessions list",
    "sessions show last",
    "inbox list",
    "inbox list plain",
    "inbox list --limit 1",
    "agents list",
    "agents show keeper",
    "agents show plain",
    "agents show modest",
    "agents status",
    "budget show",
    "usage --by model,agent",
    "approvals list",
    "approvals list --all",
];

#[test]
fn every_command_that_looks_answers_as_in_the_folder_of_the_project() {
    let (project, server, ids) = harbor();
    let elsewhere = tempfile::tempdir().unwrap();
    for looking in LOOKING.into_iter().chain(["tasks tree --ids", "sessions export last"]) {
        let order: Vec<&str> = looking.split(' ').collect();
        assert_same(&project, elsewhere.path(), &order);
    }
    for id in &ids {
        assert_same(&project, elsewhere.path(), &["inbox", "show", id]);
    }
    let task = project.last();
    assert_same(&project, elsewhere.path(), &["tasks", "show", &task[..20]]);
    // The random part, which lists show.
    let short = &task.rsplit('-').next().unwrap()[..8];
    let shown = project.antiphon_from(elsewhere.path(), &["tasks", "show", short]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    assert_same(&project, elsewhere.path(), &["tasks", "show", short]);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0, "nothing is written here");
    server.end();
}

#[test]
fn every_command_that_looks_prints_the_same_json_as_in_the_folder_of_the_project() {
    let (project, server, ids) = harbor();
    let elsewhere = tempfile::tempdir().unwrap();
    for looking in LOOKING {
        let order: Vec<&str> = looking.split(' ').chain(["--json"]).collect();
        assert_same(&project, elsewhere.path(), &order);
    }
    for id in &ids {
        assert_same(&project, elsewhere.path(), &["inbox", "show", &id[..13], "--json"]);
    }
    let status = project.antiphon_from(elsewhere.path(), &["inbox", "show", &ids[0], "--json"]);
    let status: Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!(status["state"], "completed", "{status}");
    server.end();
}

#[test]
fn what_cannot_be_answered_is_refused_with_the_same_words() {
    let (project, server, _) = harbor();
    let elsewhere = tempfile::tempdir().unwrap();
    for refused in [
        "tasks show nonesuch",
        "tasks tree nonesuch",
        "tasks watch nonesuch",
        "tasks cancel nonesuch",
        "approvals allow nonesuch",
        "inbox list nobody",
        "inbox show ffffffff",
        "agents show nobody",
        "agents show broken",
        "agents start nobody",
        "agents stop nobody",
        "sessions show nonesuch",
        "sessions fork nonesuch",
        "send nobody hello",
        "usage --by nonsense",
        "usage --from 2026-11-15 --to 2026-11-01",
    ] {
        let order: Vec<&str> = refused.split(' ').collect();
        assert_eq!(project.antiphon(&order).code, 2, "{refused}");
        assert_same(&project, elsewhere.path(), &order);
    }
    server.end();
}

#[test]
fn last_is_an_ordinary_task_and_never_a_live_agent() {
    let (project, server, _) = harbor();
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(project.antiphon(&["tasks", "cancel", "last"]).code, 0);
    for order in [
        &["tasks", "cancel", "last"][..],
        &["tasks", "pause", "last"],
        &["tasks", "resume", "last"],
        &["tasks", "send", "last", "hello"],
    ] {
        for seen in [project.antiphon(order), project.antiphon_from(elsewhere.path(), order)] {
            let said = seen.err.contains("a live agent's task is named as the agent");
            assert!(seen.code == 2 && said, "{order:?}: {seen:?}");
        }
    }
    let status = project.antiphon(&["agents", "status"]).out;
    assert!(status.contains("keeper"), "it lives: {status}");
    let said = server.end();
    assert!(
        said.contains("stopping; kept for the next `antiphon serve`: 1 live agent\n"),
        "{said}"
    );
    let status = project.antiphon(&["agents", "status"]).out;
    assert!(status.contains("keeper"), "{status}");
}

#[test]
fn a_server_that_stops_says_what_waits() {
    let project = Project::that_asks("go");
    let said = project.serve().end();
    assert!(
        said.contains("stopping; kept for the next `antiphon serve`: 1 task waiting\n"),
        "{said}"
    );
    let server = project.serve();
    assert_eq!(project.antiphon(&["tasks", "cancel", "last"]).code, 0);
    let said = server.end();
    assert!(said.contains("stopping; no task is unfinished\n"), "{said}");
}

#[test]
fn a_fork_beside_a_server_is_continued_as_without_it() {
    let project = Project::that_asks("go");
    assert_eq!(project.antiphon(&["tasks", "cancel", "last"]).code, 0);
    let alone = project.antiphon(&["sessions", "fork", "last"]).out;
    assert!(alone.contains(": continue it with `antiphon run --session "), "{alone}");
    let server = project.serve();
    let beside = project.antiphon(&["sessions", "fork", "last"]).out;
    assert!(beside.contains(": continue it with `antiphon run --session "), "{beside}");
    server.end();
}
