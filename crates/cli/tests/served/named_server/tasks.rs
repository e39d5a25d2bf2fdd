//! Tasks and agents at the server.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::Value;

use super::world::{assert_same, harbor};
use crate::served::project::Project;

#[test]
fn a_task_is_watched_told_something_paused_allowed_and_resumed_through_a_named_server() {
    let (project, server, _) = harbor();
    let elsewhere = tempfile::tempdir().unwrap();
    let at = |order: &[&str]| project.antiphon_from(elsewhere.path(), order);
    let task = at(&["tasks", "list", "--unfinished", "--json", "--agent", "default"]).out;
    let task: Value = serde_json::from_str(&task).unwrap();
    let task = task[0]["task_id"].as_str().unwrap();
    let mut watching = project
        .command_from(elsewhere.path(), &["tasks", "watch", "--json", "last"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut changes = BufReader::new(watching.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&changes.next().unwrap().unwrap()).unwrap();
    assert_eq!(first["status"], "input_required", "{first}");
    let kept = "queued; the agent reads it when the task continues\n";
    let sent = at(&["tasks", "send", &task[..20], "--steer", "by the way"]);
    assert_eq!((sent.code, sent.out.as_str()), (0, kept), "{sent:?}");
    let paused = at(&["tasks", "pause", "last"]);
    let expected = format!("paused; resume it with `antiphon tasks resume {task}`\n");
    assert_eq!((paused.code, paused.out), (0, expected));
    assert_eq!(at(&["approvals", "allow", "last"]).code, 0);
    assert_eq!(at(&["tasks", "resume", task]).out, format!("{task} completed\n"));
    let last = changes.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()).last();
    assert_eq!(last.unwrap()["status"], "completed");
    assert!(watching.wait().unwrap().success());
    for order in [&["tasks", "watch", task][..], &["tasks", "watch", "--json", task]] {
        assert_same(&project, elsewhere.path(), order);
    }
    let over = at(&["tasks", "cancel", task]);
    assert_eq!(over.code, 2, "{over:?}");
    server.end();
}

#[test]
fn agents_are_created_started_and_stopped_through_a_named_server() {
    let (project, server, _) = harbor();
    let elsewhere = tempfile::tempdir().unwrap();
    let at = |order: &[&str]| project.antiphon_from(elsewhere.path(), order);
    let made = at(&["agents", "new", "scribe", "--description", "Writes: all.", "--model", "a/b"]);
    let path = project.path().join(".antiphon/agents/scribe.md");
    assert_eq!((made.code, made.out), (0, format!("{}\n", path.display())), "{}", made.err);
    let again = at(&["agents", "new", "scribe"]);
    assert!(again.code == 2 && again.err.contains("exists already"), "{again:?}");
    for wrong in [&["agents", "new", "Bad Name"][..], &["agents", "new", "mine", "--user"]] {
        assert_eq!(at(wrong).code, 2, "{wrong:?}");
    }
    let shown = at(&["agents", "show", "scribe"]).out;
    assert!(shown.starts_with("Writes: all.\n") && shown.contains("You are scribe."), "{shown}");
    let started = at(&["agents", "start", "plain"]);
    assert!(started.out.starts_with("`plain` is started: task "), "{started:?}");
    assert!(at(&["agents", "start", "plain"]).out.starts_with("`plain` is already started"));
    assert!(at(&["agents", "stop", "plain"]).out.starts_with("`plain` is stopped: task "));
    assert_eq!(at(&["agents", "stop", "plain"]).out, "`plain` was not started\n");
    server.end();
}

#[test]
fn a_task_runs_at_the_server_and_is_shown_as_in_the_folder_of_the_project() {
    let project = Project::that_asks("go");
    let server = project.serve();
    let elsewhere = tempfile::tempdir().unwrap();
    let at = |order: &[&str]| project.antiphon_from(elsewhere.path(), order);
    let run = ["run", "--model", "scripted/hello", "Hello"];
    let (here, there) = (project.antiphon(&run), at(&run));
    assert_eq!((here.code, &here.out), (0, &there.out), "{here:?} {there:?}");
    assert_eq!(there.code, 0, "{there:?}");
    // The task is the server's: it works in the project, not where the command was started.
    let listed = project.antiphon(&["tasks", "list", "--json"]).out;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 3, "{listed}");
    // The same events as JSON, from the creation to the end.
    let events = at(&[&run[..], &["--json"]].concat());
    let types: Vec<String> = events
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(types.first().map(String::as_str), Some("task_created"), "{types:?}");
    assert_eq!(types.last().map(String::as_str), Some("status_changed"), "{types:?}");
    // A conversation goes on there, and an answer is asked for by other commands.
    let more = at(&["run", "--session", "last", "More"]);
    assert_eq!(more.code, 0, "{more:?}");
    let waits = at(&["run", "--resume", &project.first()]);
    assert!(waits.code == 3 && waits.err.contains("antiphon approvals list"), "{waits:?}");
    let models = at(&["models"]);
    assert!(models.code == 0 && models.out.contains("scripted/hello"), "{models:?}");
    server.end();
}

#[test]
fn what_belongs_to_this_machine_is_refused_for_a_task_at_a_server() {
    let project = Project::that_asks("go");
    let server = project.serve();
    let elsewhere = tempfile::tempdir().unwrap();
    for options in [
        &["--allow", "bash(ls)"][..],
        &["--mode", "full"],
        &["--network"],
        &["--ask", "refuse"],
        &["--no-rules"],
        &["--save", "x.json"],
        &["--retries", "1"],
    ] {
        let seen = project.antiphon_from(elsewhere.path(), &[&["run", "Hello"], options].concat());
        assert!(seen.code == 2 && seen.err.contains("--server"), "{options:?}: {seen:?}");
    }
    let listed = project.antiphon(&["tasks", "list", "--json"]).out;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1, "nothing was started: {listed}");
    server.end();
}

#[test]
fn ctrl_c_interrupts_the_task_at_the_server() {
    let project = Project::that_asks("go");
    let server = project.serve();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = project
        .command_from(elsewhere.path(), &["run", "--json", "--model", "scripted/slow", "Hello"]);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
    // The model is at work.
    assert!(lines.any(|line| line.unwrap().contains("text_delta")));
    let id = run.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.iter().any(|line| line.contains("interrupted")), "{rest:?}");
    let mut err = String::new();
    run.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130), "{err}");
    assert!(err.contains("antiphon run --resume"), "{err}");
    server.end();
}
