//! Commands while a server works on the project: what they do, and whom they do not believe.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod served {
    pub(crate) mod forger;
    mod named_server;
    pub(crate) mod project;
}

#[path = "support/project_folder.rs"]
mod project_folder;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use served::forger::Forger;
use served::project::{Project, Seen};

use project_folder::state;

#[test]
fn an_approval_is_answered_through_the_server_and_its_task_goes_on() {
    let project = Project::that_asks("go");
    let server = project.serve();
    let listed = project.antiphon(&["approvals", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    let id = listed[0]["approval_id"].as_str().unwrap();
    let allowed = project.antiphon(&["approvals", "allow", "last"]);
    assert_eq!(allowed.code, 0, "{allowed:?}");
    assert!(allowed.out.starts_with("allowed: bash "), "{allowed:?}");
    assert!(allowed.out.ends_with("; its task continues\n"), "{allowed:?}");
    assert_eq!(project.antiphon(&["tasks", "watch", "last"]).code, 0);
    assert!(project.path().join("pushed").exists());
    let again = project.antiphon(&["approvals", "deny", id]);
    assert_eq!(again.code, 2, "{again:?}");
    assert!(again.err.contains("is already decided: allowed"), "{again:?}");
    server.end();
}

#[test]
fn a_task_is_told_something_paused_and_resumed_through_the_server() {
    let project = Project::that_asks("go");
    let server = project.serve();
    let task = project.last();
    let said = project.antiphon(&["tasks", "send", "last", "--steer", "by the way"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "queued; the agent reads it when the task continues\n")
    );
    let paused = project.antiphon(&["tasks", "pause", "last"]);
    let expected = format!("paused; resume it with `antiphon tasks resume {task}`\n");
    assert_eq!((paused.code, paused.out), (0, expected));
    assert!(project.antiphon(&["tasks", "list"]).out.contains("paused"));
    let resumed = project.antiphon(&["tasks", "resume", &task]);
    assert_eq!(resumed.code, 3, "it asks again: {resumed:?}");
    assert_eq!(resumed.out, format!("{task} input_required\n"));
    let all = project.antiphon(&["tasks", "resume"]);
    assert_eq!((all.code, all.out.as_str()), (0, ""), "it waits: {all:?}");
    assert!(all.err.contains("waits for an answer"), "{all:?}");
    let denied = project.antiphon(&["approvals", "deny", "last", "--comment", "Not now."]);
    assert_eq!(denied.code, 0, "{denied:?}");
    assert_eq!(project.antiphon(&["tasks", "watch", &task]).code, 0);
    let shown = project.antiphon(&["tasks", "show", &task]).out;
    assert!(shown.contains("Not now.") && shown.contains("Heard: by the way"), "{shown}");
    let over = project.antiphon(&["tasks", "resume"]);
    assert_eq!((over.code, over.out.as_str()), (0, "no interrupted tasks\n"));
    server.end();
}

#[test]
fn a_task_that_works_is_canceled_and_who_waits_for_it_is_told() {
    let project = Project::that_asks("hang");
    let server = project.serve();
    let task = project.last();
    assert_eq!(project.antiphon(&["approvals", "deny", "last"]).code, 0);
    assert_eq!(project.antiphon(&["tasks", "pause", "last"]).code, 0);
    let mut watching = project.spawn(&["tasks", "watch", "--json", "last"]);
    let mut changes = BufReader::new(watching.stdout.take().unwrap()).lines();
    let waiting = project.spawn(&["tasks", "resume", &task]);
    // It runs again: the `resume` command waits for it now.
    let is = |line: &str, status: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["status"] == status
    };
    assert!(changes.any(|line| is(&line.unwrap(), "running")));
    let canceled = project.antiphon(&["tasks", "cancel", "last"]);
    assert_eq!((canceled.code, canceled.out), (0, format!("canceled {task}: hang\n")));
    let seen = Seen::of(waiting.wait_with_output().unwrap());
    assert_eq!((seen.code, seen.out), (130, format!("{task} canceled\n")), "{}", seen.err);
    assert!(changes.any(|line| is(&line.unwrap(), "canceled")));
    assert!(watching.wait().unwrap().success());
    server.end();
}

#[test]
fn what_is_refused_is_refused_with_the_same_words_and_code_as_alone() {
    let refusals = |project: &Project| {
        let task = project.last();
        let approval = project.antiphon(&["approvals", "list", "--json"]).out;
        let approval: Value = serde_json::from_str(&approval).unwrap();
        let approval = approval[0]["approval_id"].as_str().unwrap().to_owned();
        assert_eq!(project.antiphon(&["tasks", "cancel", "last"]).code, 0);
        let orders: [&[&str]; 10] = [
            &["tasks", "cancel", &task],
            &["tasks", "pause", &task],
            &["tasks", "resume", &task],
            &["tasks", "send", &task, "hello"],
            &["tasks", "send", &task, " "],
            &["tasks", "cancel", "last"],
            &["tasks", "cancel", "unknown"],
            &["approvals", "allow", &approval],
            &["approvals", "deny", "last"],
            &["approvals", "allow", "unknown"],
        ];
        let seen = orders.map(|order| {
            let seen = project.antiphon(order);
            let named = seen.err.replace(&task, "TASK").replace(&approval, "APPROVAL");
            (order[..2].join(" "), seen.code, named, seen.out)
        });
        assert!(seen.iter().all(|(_, code, ..)| *code == 2), "{seen:?}");
        seen
    };
    let alone = refusals(&Project::that_asks("go"));
    let project = Project::that_asks("go");
    let server = project.serve();
    assert_eq!(refusals(&project), alone);
    server.end();
}

#[test]
fn what_a_dead_server_left_is_ignored() {
    let project = Project::that_asks("go");
    drop(project.serve());
    assert!(state(project.path()).join("server.json").exists(), "it had no time");
    let paused = project.antiphon(&["tasks", "pause", "last"]);
    assert_eq!(paused.code, 0, "{paused:?}");
    assert!(paused.out.contains("antiphon run --resume"), "{paused:?}");
    assert_eq!(project.antiphon(&["tasks", "cancel", "last"]).code, 0);
}

#[test]
fn a_server_record_of_a_process_that_does_not_own_the_journal_is_ignored() {
    let project = Project::that_asks("go");
    let forger = Forger::beside(&project);
    forger.publish(&format!("http://{}", forger.address()));
    // Without a server: no process owns the journal.
    assert_eq!(project.antiphon(&["tasks", "pause", "last"]).code, 0);
    // A server owns it, and another process replaced its record.
    let server = project.serve();
    forger.publish(&format!("http://{}", forger.address()));
    let seen = project.antiphon(&["tasks", "cancel", "last"]);
    assert_eq!(seen.code, 0, "the socket of the server is used: {seen:?}");
    assert_eq!(forger.connection(), "", "no connection");
    server.end();
}

#[test]
fn a_process_that_holds_the_journal_and_does_not_answer_is_named() {
    let project = Project::that_asks("go");
    let _forger = Forger::owning(&project);
    let seen = project.antiphon(&["tasks", "cancel", "last"]);
    assert_eq!(seen.code, 4, "{seen:?}");
    let process = format!("process {} needs the journal", std::process::id());
    assert!(seen.err.contains(&process), "{seen:?}");
    let listed = project.antiphon(&["approvals", "list"]);
    assert!(listed.out.contains("waiting"), "looking is always possible: {listed:?}");
}

#[test]
fn server_files_that_others_could_have_written_are_refused_before_any_connection() {
    let project = Project::that_asks("go");
    let forger = Forger::owning(&project);
    let refused = |why: &str| {
        let seen = project.antiphon(&["tasks", "cancel", "last"]);
        assert_eq!(seen.code, 3, "{seen:?}");
        assert!(seen.err.contains("cannot be trusted") && seen.err.contains(why), "{seen:?}");
        assert_eq!(forger.connection(), "", "{why}: no connection");
    };
    for url in ["http://192.0.2.1:7117", "https://127.0.0.1:1", "http://localhost:1", "x"] {
        forger.publish(url);
        refused("loopback only");
    }
    let papers = state(project.path());
    fs::write(papers.join("server.json"), json!({"pid": std::process::id()}).to_string()).unwrap();
    refused("no server of this version");
    fs::write(papers.join("server.json"), " ".repeat(5000)).unwrap();
    refused("more than 4096 bytes");
    forger.publish(&format!("http://{}", forger.address()));
    for name in ["server.json", "token"] {
        let path = papers.join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        refused("other users can access it");
        let elsewhere = project.path().join(name);
        fs::rename(&path, &elsewhere).unwrap();
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&elsewhere, &path).unwrap();
        refused("it is a link");
        fs::remove_file(&path).unwrap();
        fs::rename(&elsewhere, &path).unwrap();
    }
}

#[test]
fn conversations_are_brought_and_forked_through_the_server_as_alone() {
    let project = Project::that_asks("go");
    let file = project.path().join("talk.json");
    let at = "2026-01-02T03:04:05Z";
    let talk = json!({"version": 1, "id": "talk", "system_prompt": "", "created_at": at,
        "updated_at": at, "messages": [{"type": "user", "timestamp": at,
            "content": [{"type": "text", "text": "hello"}]}]});
    fs::write(&file, talk.to_string()).unwrap();
    let server = project.serve();
    let imported = project.antiphon(&["sessions", "import", "talk.json"]);
    assert_eq!(imported.code, 0, "{imported:?}");
    assert!(imported.out.starts_with("session talk: continue it with "), "{imported:?}");
    let forked = project.antiphon(&["sessions", "fork", "talk"]);
    assert_eq!(forked.code, 0, "{forked:?}");
    let id = forked.out.strip_prefix("session ").unwrap().split(':').next().unwrap();
    let shown = project.antiphon(&["sessions", "show", id]);
    assert!(shown.out.contains("hello"), "{shown:?}");
    let strange = project.antiphon(&["sessions", "fork", "nobody"]);
    assert_eq!(strange.code, 2, "{strange:?}");
    server.end();
}

#[test]
fn a_token_that_the_server_does_not_take_is_told() {
    let project = Project::that_asks("go");
    let server = project.serve();
    let token = state(project.path()).join("token");
    fs::write(&token, "f".repeat(64)).unwrap();
    let seen = project.antiphon(&["tasks", "cancel", "last"]);
    assert_eq!(seen.code, 3, "{seen:?}");
    assert!(seen.err.contains("does not accept the token"), "{seen:?}");
    server.end();
}

#[test]
fn a_server_that_goes_away_in_the_middle_is_told() {
    let project = Project::that_asks("go");
    let forger = Forger::owning(&project);
    // Before there is an owner: a list asks it too.
    let cancel = format!("/v1/tasks/{}/cancel", project.last());
    forger.publish(&format!("http://{}", forger.address()));
    let ask = |answer: &'static str| {
        // An order before has looked for the next owner.
        while !forger.connection().is_empty() {}
        let order = project.spawn(&["tasks", "cancel", "last"]);
        let greeting = forger.answer("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        assert!(greeting.starts_with("GET /health/live "), "{greeting}");
        assert!(!greeting.contains(&forger.token), "a greeting shows no token: {greeting}");
        let requested = forger.answer(answer);
        assert!(requested.contains(&cancel), "{requested}");
        assert!(requested.contains(&forger.token), "{requested}");
        Seen::of(order.wait_with_output().unwrap())
    };
    for cut in ["", "HTTP/1.1 503 X\r\ncontent-length: 9\r\n\r\n{"] {
        let seen = ask(cut);
        assert_eq!((seen.code, seen.out.as_str()), (4, ""), "{seen:?}");
        assert!(seen.err.contains("broke"), "{seen:?}");
    }
    // A redirect is not followed.
    let seen = ask("HTTP/1.1 307 X\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(seen.code, 4, "{seen:?}");
    assert!(seen.err.contains("unexpected answer"), "{seen:?}");
}

#[test]
fn a_command_that_waits_for_a_server_that_goes_away_takes_its_place() {
    let project = Project::that_asks("go");
    let forger = Forger::owning(&project);
    let listed = project.antiphon(&["tasks", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    let mut task = listed[0].clone();
    forger.publish(&format!("http://{}", forger.address()));
    let order = project.spawn(&["tasks", "resume", "last"]);
    let closing = "HTTP/1.1 200 OK\r\nconnection: close\r\n";
    let answer = |body: &str| format!("{closing}content-length: {}\r\n\r\n{body}", body.len());
    forger.answer(&answer(""));
    assert!(forger.answer(&answer(&task.to_string())).contains("/resume"));
    task["rests"] = false.into();
    let going_on = answer(&task.to_string());
    for _ in 0..2 {
        assert!(forger.answer(&going_on).contains("/rest?wait_s=25"));
    }
    assert!(forger.answer("").contains("/rest?wait_s=25"));
    drop(forger);
    let seen = Seen::of(order.wait_with_output().unwrap());
    let expected = format!("{} input_required\n", task["task_id"].as_str().unwrap());
    assert_eq!((seen.code, seen.out), (3, expected), "{}", seen.err);
}

#[test]
fn a_server_of_an_earlier_version_is_told() {
    let project = Project::that_asks("go");
    let forger = Forger::owning(&project);
    forger.publish(&format!("http://{}", forger.address()));
    let order = project.spawn(&["run", "hello"]);
    forger.answer("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let body = r#"{"code":"NOT_FOUND","message":"no such route: see /docs"}"#;
    let head = format!("content-type: application/json\r\ncontent-length: {}", body.len());
    let requested = forger.answer(&format!("HTTP/1.1 404 X\r\n{head}\r\n\r\n{body}"));
    assert!(requested.starts_with("POST /v1/runs "), "{requested}");
    let seen = Seen::of(order.wait_with_output().unwrap());
    assert_eq!(seen.code, 4, "{seen:?}");
    assert!(seen.err.contains("an earlier version of Antiphon works on the tasks"), "{seen:?}");
}

#[test]
fn who_owns_the_journal_and_does_not_answer_is_told() {
    let project = Project::that_asks("go");
    let forger = Forger::owning(&project);
    forger.publish(&format!("http://{}", forger.address()));
    let order = project.spawn(&["tasks", "cancel", "last"]);
    // Looked for twice: before it is waited for, and after.
    for _ in 0..2 {
        forger.answer("HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n");
    }
    let seen = Seen::of(order.wait_with_output().unwrap());
    assert_eq!(seen.code, 4, "{seen:?}");
    assert!(seen.err.contains("does not answer"), "{seen:?}");
}
