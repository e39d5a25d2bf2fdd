//! Commands through a server that `--server` names: the same answers as in the project's folder, clear
//! refusals, and no harm from a server that is broken or hostile.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::project::{Project, Seen};
use crate::project_folder::{home, trust};

const KEEPER: &str = "---\ndescription: Keeps the harbor.\nmodel: scripted/hello\ntools: read, nonesuch\n\
                      runtimes: [local]\nlimits: {turns: 7}\nsilent_intents: [ping]\n---\nYou keep it.\n";

/// A project with a task that asks, two agents, a file that is no agent, and what agents have and had in
/// their inboxes. Returns the ids of the interactions.
fn harbor() -> (Project, super::project::Server, Vec<String>) {
    let project = Project::that_asks("go");
    let agents = project.path().join(".antiphon/agents");
    fs::create_dir_all(&agents).unwrap();
    fs::write(agents.join("keeper.md"), KEEPER).unwrap();
    let plain = "---\ndescription: Works.\nmodel: scripted/hello\n---\nYou work.\n";
    fs::write(agents.join("plain.md"), "You work elsewhere.\n").unwrap();
    fs::write(agents.join("modest.md"), "You have no model.\n").unwrap();
    fs::write(agents.join("broken.md"), "---\nlimits: {turns: 0}\n---\nx\n").unwrap();
    trust(project.path());
    let own = home(project.path()).join(".config/antiphon/agents");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("plain.md"), plain).unwrap();
    let server = project.serve();
    let mut ids = Vec::new();
    for order in [
        &["send", "keeper", "--request", "ask", "--wait", "--json"][..],
        &["send", "keeper", "--no-wake", "--from", "ci", "The build is red.", "--json"],
        &["send", "plain", "--no-wake", "Later.", "--json"],
    ] {
        let sent = project.antiphon(order);
        let sent: Value = serde_json::from_str(&sent.out).unwrap();
        ids.push(sent["id"].as_str().unwrap().to_owned());
    }
    assert_eq!(project.antiphon(&["agents", "stop", "plain"]).code, 0);
    (project, server, ids)
}

/// Without times and ages, which differ from one command to the next, and without the width of columns.
fn timeless(seen: &Seen) -> (i32, String, String) {
    let digits =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_time = |word: &str| {
        let is_age = word.strip_suffix(['s', 'm', 'h', 'd']).is_some_and(digits);
        is_age || (word.len() == 8 && word.split(':').count() == 3)
    };
    let strip = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_span =
            |at: usize| digits(words[at]) && words.get(at + 1).is_some_and(|unit| *unit == "s");
        let shown = |at: usize| if is_time(words[at]) || is_span(at) { "TIME" } else { words[at] };
        (0..words.len()).map(shown).collect::<Vec<_>>().join(" ") + "\n"
    };
    let strip_all = |text: &str| text.lines().map(strip).collect::<String>();
    (seen.code, strip_all(&seen.out), strip_all(&seen.err))
}

/// The same answer here and through the server. Ages may differ by a second: then it is tried again.
fn assert_same(project: &Project, elsewhere: &Path, order: &[&str]) {
    let pair = || {
        let here = timeless(&project.antiphon(order));
        (here, timeless(&project.antiphon_from(elsewhere, order)))
    };
    let mut tries = std::iter::repeat_with(pair).take(4);
    let last = tries.find(|(here, there)| here == there).or_else(|| Some(pair()));
    let (here, there) = last.unwrap();
    assert_eq!(here, there, "{order:?}");
}

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

/// Commands that work in the folder of a project alone.
const ALONE: &[&[&str]] = &[
    &["demo"],
    &["acp"],
    &["chat"],
    &["serve"],
    &["keys", "list"],
    &["token"],
    &["trust"],
    &["projects", "list"],
    &["request", "-"],
    &["reply", "x", "done", "--agent", "coder"],
    &["doctor"],
    &["backup", "x.db"],
    &["restore", "x.db"],
    &["journal", "verify"],
    &["agents", "attach", "coder"],
    &["mcp", "serve"],
    &["init"],
    &["config", "show"],
    &["completions", "bash"],
    &["man", "pages"],
    &["import", "--dry-run"],
    &["prompt", "show"],
];

#[test]
fn commands_that_work_here_alone_refuse_a_server_and_do_not_offer_it() {
    let project = Project::that_asks("go");
    let server = project.serve();
    let elsewhere = tempfile::tempdir().unwrap();
    for alone in ALONE {
        let seen = project.antiphon_from(elsewhere.path(), alone);
        let said = seen.err.contains("does not work through --server");
        assert!(seen.code == 2 && said, "{alone:?}: {seen:?}");
        let seen = project.antiphon(&[*alone, &["--server", &project.url()]].concat());
        assert_eq!(seen.code, 2, "{alone:?}: {seen:?}");
        let has_subcommands =
            ["agents", "config", "journal", "keys", "mcp", "projects"].contains(&alone[0]);
        let command = if has_subcommands { &alone[..2] } else { &alone[..1] };
        let help = project.antiphon(&[command, &["--help"]].concat());
        assert!(help.code == 0 && !help.out.contains("--server <"), "{command:?}: {}", help.out);
        assert!(!help.out.contains("--token-file"), "{command:?}: {}", help.out);
    }
    let offered = [
        &["tasks", "watch"][..],
        &["tasks", "list"],
        &["inbox", "show"],
        &["agents", "list"],
        &["send"],
        &["run"],
        &["models"],
        &["agents", "new"],
        &["budget", "allow"],
        &["usage"],
        &["sessions", "fork"],
        &["approvals", "deny"],
    ];
    for offered in offered {
        let help = project.antiphon(&[offered, &["--help"]].concat()).out;
        assert!(
            help.contains("--server <URL>") && help.contains("--token-file"),
            "{offered:?}: {help}"
        );
    }
    // A new command is in one of the two lists.
    let known: Vec<&str> = ALONE.iter().chain(&offered).map(|command| command[0]).collect();
    let help = project.antiphon(&["--help"]).out;
    let listed = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let names = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 20, "{help}");
    for name in names.into_iter().filter(|name| *name != "help") {
        assert!(known.contains(&name), "`{name}`: does it work through --server?");
    }
    server.end();
}

#[test]
fn a_wrong_address_token_or_argument_says_what_to_do() {
    let project = Project::that_asks("go");
    let token = "t".repeat(64);
    let seen = project.antiphon_at("http://127.0.0.1:1", &token, &["tasks", "list"]);
    assert_eq!(seen.code, 4, "{seen:?}");
    assert!(seen.err.contains("no server answers at http://127.0.0.1:1"), "{seen:?}");
    assert!(seen.err.contains("antiphon serve") && !seen.err.contains("broke"), "{seen:?}");
    for url in ["localhost:7117", "team.example"] {
        let seen = project.antiphon_at(url, &token, &["tasks", "list"]);
        assert!(seen.code == 2 && seen.err.contains("add http://"), "{seen:?}");
    }
    let refused = |arguments: &[&str], reason: &str| {
        let seen = project.antiphon(arguments);
        assert!(seen.code == 2 && seen.err.contains(reason), "{arguments:?}: {seen:?}");
    };
    refused(&["tasks", "list", "--server", "http://127.0.0.1:1"], "ANTIPHON_TOKEN");
    refused(&["tasks", "list", "--token-file", "x"], "needs --server");
    fs::write(project.path().join("x"), "t".repeat(64)).unwrap();
    refused(&["tasks", "list", "--server", "http://a.example", "--token-file", "x"], "https");
    refused(&["budget", "allow", "x"], "an amount in US dollars");
    refused(&["budget", "allow", "0"], "an amount in US dollars");
    refused(&["usage", "--from", "nope"], "a day as YEAR-MONTH-DAY");
    let server = project.serve();
    for order in
        [&["tasks", "list"][..], &["tasks", "watch"], &["inbox", "list"], &["budget", "show"]]
    {
        let seen = project.antiphon_at(&project.url(), &token, order);
        assert_eq!(seen.code, 3, "{order:?}: {seen:?}");
        assert!(seen.err.contains("does not accept the token: use what"), "{seen:?}");
    }
    server.end();
}

#[test]
fn a_key_that_may_only_read_is_told_the_level_that_it_needs() {
    let project = Project::that_asks("go");
    let key = project.antiphon(&["keys", "new", "--name", "reader", "--level", "read"]).out;
    let key = key.trim().to_owned();
    let server = project.serve();
    let at = |order: &[&str]| project.antiphon_at(&project.url(), &key, order);
    assert_eq!(at(&["tasks", "list"]).code, 0);
    for (order, level) in [
        (&["budget", "allow", "5"][..], "admin"),
        (&["approvals", "allow", "last"], "admin"),
        (&["agents", "new", "scribe"], "admin"),
        (&["tasks", "cancel", "last"], "write"),
    ] {
        let seen = at(order);
        let needed = format!("this needs a key of level `{level}`; yours is `read`");
        assert!(seen.code == 3 && seen.err.contains(&needed), "{order:?}: {seen:?}");
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

/// A server that answers every connection with the same bytes. It ends with the test's process.
fn hostile(answer: Vec<u8>) -> (SocketAddr, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&count);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let Ok(mut socket) = socket else { continue };
            *counter.lock().unwrap() += 1;
            let mut head = [0; 4096];
            let _ = socket.read(&mut head);
            let _ = socket.write_all(&answer);
        }
    });
    (address, count)
}

#[test]
fn commands_end_with_a_reason_whatever_a_server_answers() {
    let project = Project::that_asks("go");
    let token = "0123456789abcdef".repeat(4);
    let (other, visits) = hostile(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_vec());
    let json = |body: &str| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
        format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    let answers: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("garbage", b"\x00\xff\x1b[2J nonsense\r\n\r\n".to_vec()),
        ("half", b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"tasks\": [".to_vec()),
        (
            "html",
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>"
                .to_vec(),
        ),
        (
            "500",
            b"HTTP/1.1 500 Oops\r\ncontent-length: 4\r\nconnection: close\r\n\r\noops".to_vec(),
        ),
        (
            "redirect",
            format!("HTTP/1.1 302 X\r\nlocation: http://{other}/\r\ncontent-length: 0\r\n\r\n")
                .into(),
        ),
        ("null", json("null")),
        ("empty", json("{}")),
        ("list", json("[1]")),
        ("escape", json("{\"code\":\"\\u001b[2J\",\"message\":\"\\u001b[2J\"}")),
    ];
    for (name, answer) in answers {
        let (address, _) = hostile(answer);
        for order in [
            &["tasks", "list"][..],
            &["tasks", "show", "last"],
            &["tasks", "watch"],
            &["tasks", "cancel", "last"],
            &["tasks", "tree"],
            &["inbox", "list"],
            &["inbox", "show", "a"],
            &["agents", "list"],
            &["agents", "show", "a"],
            &["agents", "new", "a"],
            &["agents", "status"],
            &["sessions", "list"],
            &["approvals", "list"],
            &["budget", "show"],
            &["usage"],
            &["send", "a", "hello"],
        ] {
            let started = Instant::now();
            let seen = project.antiphon_at(&format!("http://{address}"), &token, order);
            assert_eq!(seen.code, 4, "{name}, {order:?}: {seen:?}");
            assert!(
                seen.err.starts_with("antiphon: ") && !seen.err.contains("panicked"),
                "{seen:?}"
            );
            assert!(!seen.err.contains(&token) && !seen.err.contains('\u{1b}'), "{seen:?}");
            assert!(seen.out.is_empty(), "{name}, {order:?}: {seen:?}");
            assert!(started.elapsed() < Duration::from_secs(20), "{name}, {order:?}");
        }
    }
    assert_eq!(*visits.lock().unwrap(), 0, "no redirect was followed");
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
