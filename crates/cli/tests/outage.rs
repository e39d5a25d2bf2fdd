//! The binary and a model server that is away, busy, or cuts its streams: tasks wait, say so, and go on.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/anthropic_wire.rs"]
mod anthropic_wire;
#[path = "support/project_folder.rs"]
mod project_folder;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use antiphon_model_server::{ModelServer, RecordedRequest, Reply};
use serde_json::Value;

use anthropic_wire::{bash, busy, cut_call, cut_text, gone, results, text};
use project_folder::{ProjectFolder, home};

/// What does not happen within this time does not happen.
const PATIENCE: Duration = Duration::from_secs(60);

fn antiphon(folder: &Path, url: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_antiphon"));
    command
        .current_dir(folder)
        .env_clear()
        .env("HOME", home(folder))
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("ANTHROPIC_API_KEY", "sk-ant-test")
        .env("ANTHROPIC_BASE_URL", url)
        .stdin(Stdio::null());
    command
}

/// A run of one task.
fn run(folder: &Path, url: &str, more: &[&str]) -> Command {
    let mut command = antiphon(folder, url);
    command.args(["run", "--model", "anthropic/claude", "--mode", "full", "--retries", "0"]);
    command.args(more).arg("go");
    command
}

struct Seen {
    code: i32,
    out: String,
    err: String,
}

async fn seen(mut command: Command) -> Seen {
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    Seen { code, out: text(&output.stdout), err: text(&output.stderr) }
}

async fn server(
    answer: impl Fn(&RecordedRequest, usize) -> Reply + Send + Sync + 'static,
) -> ModelServer {
    ModelServer::start(answer).await.unwrap()
}

fn json(command: &mut Command) -> Value {
    serde_json::from_slice(&command.output().unwrap().stdout).unwrap_or_default()
}

fn shown(folder: &Path, url: &str) -> Value {
    json(antiphon(folder, url).args(["tasks", "show", "last", "--json"]))
}

/// What a network with a login page answers in place of the model.
fn login_page() -> Reply {
    Reply {
        headers: vec![("content-type".to_owned(), "text/html".to_owned())],
        ..Reply::events("<!doctype html><p>Log in</p>")
    }
}

/// Looks at the last task until it is as wanted.
async fn until(folder: &Path, url: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let task = shown(folder, url);
        if wanted(&task) {
            return task;
        }
        assert!(began.elapsed() < PATIENCE, "{task:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn waits(task: &Value) -> bool {
    task["waiting_for"] == "model"
}

async fn waited(child: Child) -> Seen {
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let output = output.await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    Seen { code, out: text(&output.stdout), err: text(&output.stderr) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_outage_is_a_wait_and_the_work_is_done_once() {
    let kinds: [fn() -> Reply; 8] = [
        || busy(503, None),
        || busy(529, Some(100)),
        || busy(429, Some(100)),
        || busy(500, None),
        gone,
        login_page,
        || cut_text("Let me do that."),
        || cut_call("c1", "echo once >> log"),
    ];
    for kind in kinds {
        let folder = ProjectFolder::new();
        let server = server(move |request, number| match number {
            0 | 2 => kind(),
            _ if results(&request.json()) == 0 => bash("c1", "echo once >> log"),
            _ => text("All done."),
        })
        .await;
        let seen = seen(run(folder.path(), &server.url(), &[])).await;
        assert_eq!(seen.code, 0, "{}\n{}", seen.out, seen.err);
        assert!(seen.err.contains("waits for its model: "), "{}", seen.err);
        assert!(seen.out.ends_with("All done.\n"), "{}", seen.out);
        assert_eq!(std::fs::read_to_string(folder.path().join("log")).unwrap(), "once\n");
        assert_eq!(server.served(), 4);
        let task = shown(folder.path(), &server.url());
        assert_eq!((&task["status"], &task["turns"]), (&"completed".into(), &2.into()), "{task:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_shown_of_a_cut_answer_is_marked_in_every_form() {
    let answer = |_: &RecordedRequest, number: usize| match number {
        0 => cut_text("Half of an answer"),
        _ => text("A whole answer."),
    };
    let (folder, model) = (ProjectFolder::new(), server(answer).await);
    let seen_text = seen(run(folder.path(), &model.url(), &[])).await;
    let expected =
        "Half of an answer\n[The answer broke off here. It begins again.]\nA whole answer.\n";
    assert_eq!((seen_text.code, seen_text.out.as_str()), (0, expected), "{}", seen_text.err);
    let requests = model.requests();
    assert_eq!(requests[0].json()["messages"], requests[1].json()["messages"]);

    let (folder, model) = (ProjectFolder::new(), server(answer).await);
    let seen_json = seen(run(folder.path(), &model.url(), &["--json"])).await;
    let lines: Vec<Value> =
        seen_json.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let at = |wanted: &dyn Fn(&Value) -> bool| lines.iter().position(wanted).unwrap();
    let delta = at(&|line| line["type"] == "answer_superseded" && line["data"]["code"] == "cut");
    let kept = at(&|line| line["type"] == "message_appended" && line["data"]["superseded"] == true);
    let wait = at(&|line| line["data"]["waiting_for"] == "model");
    assert!(delta < wait && kept < wait, "{delta} {kept} {wait}");
    assert_eq!(lines[wait]["data"]["detail"]["superseded"], true);
    assert_eq!(lines[wait]["data"]["detail"]["attempt"], 1);
    let paid = at(&|line| line["data"]["purpose"] == "superseded");
    assert_eq!(lines[paid]["data"]["usage"]["input_tokens"], 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_is_shown_by_every_command_and_outlives_a_kill() {
    let (folder, is_away) = (ProjectFolder::new(), Arc::new(AtomicBool::new(true)));
    let flag = Arc::clone(&is_away);
    let model = server(move |_, _| {
        if flag.load(Ordering::SeqCst) { busy(503, Some(3000)) } else { text("Back again.") }
    })
    .await;
    let url = model.url();
    let mut child = run(folder.path(), &url, &[])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let task = until(folder.path(), &url, waits).await;
    assert_eq!(task["status"], "running");
    assert_eq!(
        (&task["detail"]["code"], &task["detail"]["attempt"]),
        (&"server".into(), &1.into())
    );
    let id = task["task_id"].as_str().unwrap();
    let text_of = |arguments: &[&str]| {
        let output = antiphon(folder.path(), &url).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    };
    let reason = "waits for its model: the provider ";
    for arguments in [&["tasks", "show", "last"][..], &["tasks", "tree"], &["tasks", "list"]] {
        let text = text_of(arguments);
        assert!(text.contains(reason), "{arguments:?}: {text}");
        assert!(text.contains("waits"), "{arguments:?}: {text}");
    }
    let listed = json(antiphon(folder.path(), &url).args(["tasks", "list", "--json"]));
    assert_eq!(listed[0]["waiting_for"], "model");
    assert_eq!(listed[0]["wait"]["code"], "server", "{listed}");
    assert!(listed[0]["wait"]["attempt"].as_u64().unwrap() >= 1, "{listed}");
    assert!(listed[0]["wait"]["next_at"].is_string(), "{listed}");
    // The process dies in the middle of the wait.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(waits(&shown(folder.path(), &url)));
    is_away.store(false, Ordering::SeqCst);
    let resumed = seen({
        let mut command = antiphon(folder.path(), &url);
        command.args(["run", "--resume", id]);
        command
    })
    .await;
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "Back again.\n"), "{}", resumed.err);
    let task = shown(folder.path(), &url);
    assert_eq!((&task["status"], &task["waiting_for"]), (&"completed".into(), &Value::Null));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_server_that_was_killed_and_started_again_answers_the_waiting_task() {
    let folder = ProjectFolder::new();
    // Nothing listens on this port.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("http://{address}");
    let child = run(folder.path(), &url, &[])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let task = until(folder.path(), &url, waits).await;
    assert_eq!(task["detail"]["code"], "connection");
    let model = server(|_, _| text("Here I am.")).await;
    let port = model.url();
    // The server is back, at the old address.
    let forward = tokio::net::TcpListener::bind(address).await.unwrap();
    let mut forwarding = tokio::task::JoinSet::new();
    forwarding.spawn(async move {
        let target = port.trim_start_matches("http://").to_owned();
        while let Ok((mut from, _)) = forward.accept().await {
            let mut to = tokio::net::TcpStream::connect(&target).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
        }
    });
    let seen = waited(child).await;
    forwarding.abort_all();
    assert_eq!((seen.code, seen.out.as_str()), (0, "Here I am.\n"), "{}", seen.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limit_of_a_task_and_a_cancel_end_its_wait() {
    let (folder, model) = (ProjectFolder::new(), server(|_, _| busy(503, None)).await);
    let url = model.url();
    let began = Instant::now();
    let limited = seen(run(folder.path(), &url, &["--max-seconds", "3"])).await;
    assert_eq!(limited.code, 3, "{}", limited.err);
    assert!(limited.err.contains("it waited for its model"), "{}", limited.err);
    assert!((3..9).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_never_succeed_fails_at_once() {
    let answer = |_: &RecordedRequest, _: usize| {
        let body = r#"{"type":"error","error":{"type":"authentication_error","message":"no"}}"#;
        Reply::json(401, body)
    };
    let (folder, model) = (ProjectFolder::new(), server(answer).await);
    let seen = seen(run(folder.path(), &model.url(), &[])).await;
    assert_eq!((seen.code, model.served()), (1, 1), "{}", seen.err);
    let mut resume = antiphon(folder.path(), &model.url());
    resume.args(["run", "--resume", "last"]);
    let resumed = self::seen(resume).await;
    assert_eq!((resumed.code, model.served()), (2, 1), "{}", resumed.err);
    assert!(resumed.err.contains(" has failed ("), "{}", resumed.err);
    assert!(resumed.err.contains("`antiphon run --session "), "{}", resumed.err);
}

/// A server of the project with a live agent.
struct Serving {
    child: Child,
}

impl Serving {
    fn start(folder: &Path, url: &str) -> Self {
        let mut child = antiphon(folder, url)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
        Self { child }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_agent_keeps_its_inbox_through_an_outage_and_a_kill_of_its_server() {
    let folder = ProjectFolder::new();
    let agents = folder.path().join(".antiphon/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let agent = "---\ndescription: Is there.\nmodel: anthropic/claude\ntools: []\n---\nYou help.\n";
    std::fs::write(agents.join("helper.md"), agent).unwrap();
    let (is_away, asked) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicUsize::new(0)));
    let (flag, count) = (Arc::clone(&is_away), Arc::clone(&asked));
    let model = server(move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        if flag.load(Ordering::SeqCst) { busy(529, None) } else { text("I read it.") }
    })
    .await;
    let url = model.url();
    let send = |words: &str| {
        let sent = antiphon(folder.path(), &url)
            .args(["send", "helper", "--from", "ci", words])
            .output()
            .unwrap();
        assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    };
    let live =
        || json(antiphon(folder.path(), &url).args(["tasks", "list", "--json", "--unfinished"]));
    {
        let _serving = Serving::start(folder.path(), &url);
        send("The build is red.");
        let began = Instant::now();
        while live()[0]["waiting_for"] != "model" {
            assert!(began.elapsed() < PATIENCE, "{:#}", live());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        send("The build is green.");
        // The server is killed while its agent waits.
    }
    let waiting = live();
    assert_eq!(waiting.as_array().unwrap().len(), 1, "{waiting:#}");
    is_away.store(false, Ordering::SeqCst);
    let _serving = Serving::start(folder.path(), &url);
    let id = waiting[0]["task_id"].as_str().unwrap();
    let began = Instant::now();
    loop {
        let task = json(antiphon(folder.path(), &url).args(["tasks", "show", id, "--json"]));
        let said = task["conversation"].to_string();
        let read = |words: &str| said.contains(words);
        if read("red")
            && read("green")
            && task["turns"].as_u64() >= Some(1)
            && task["waiting_for"].is_null()
        {
            assert_eq!(task["status"], "running", "it is still there: {task:#}");
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{task:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_agent_whose_model_is_away_says_why_and_when_it_tries_again() {
    let folder = ProjectFolder::new();
    let agents = folder.path().join(".antiphon/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let agent = "---\ndescription: Is there.\nmodel: anthropic/claude\ntools: []\n---\nYou help.\n";
    std::fs::write(agents.join("helper.md"), agent).unwrap();
    let is_away = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&is_away);
    let model =
        server(
            move |_, _| {
                if flag.load(Ordering::SeqCst) { busy(529, None) } else { text("I read it.") }
            },
        )
        .await;
    let url = model.url();
    let _serving = Serving::start(folder.path(), &url);
    let mut asking = antiphon(folder.path(), &url)
        .args(["send", "helper", "--request", "review", "--wait"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(asking.stderr.take().unwrap());
    let said = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        (line, said)
    });
    let (line, _said) = said.await.unwrap();
    assert!(line.starts_with("the agent waits for its model: "), "{line}");
    assert!(line.contains(" failed, the next is "), "{line}");
    let status = json(antiphon(folder.path(), &url).args(["agents", "status", "--json"]));
    let wait = &status[0]["wait"];
    assert_eq!(status[0]["waiting_for"], "model", "{status:#}");
    assert!(wait["attempt"].as_u64() >= Some(1) && wait["next_at"].is_string(), "{status:#}");
    assert_eq!(wait["code"], "overloaded", "{status:#}");
    let table = antiphon(folder.path(), &url).args(["agents", "status"]).output().unwrap();
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("\n`helper` waits for its model: "), "{table}");
    assert!(!table.contains("its start or first message waits"), "{table}");
    is_away.store(false, Ordering::SeqCst);
    let answered = waited(asking).await;
    assert_eq!((answered.code, answered.out.as_str()), (0, "I read it.\n"));
}

/// Sends Ctrl-C to a process.
fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_interrupts_and_the_task_can_be_resumed() {
    let folder = ProjectFolder::new();
    let model = server(|request, _| {
        if request.json()["messages"].as_array().unwrap().len() > 1 {
            return text("Then I go on.");
        }
        let mut reply = cut_text("I was just about to");
        reply.ending = antiphon_model_server::Ending::Stall;
        reply
    })
    .await;
    let url = model.url();
    let mut child = run(folder.path(), &url, &[])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 5];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    interrupt(&child);
    let seen_first = waited(child).await;
    assert_eq!(seen_first.code, 130, "{}", seen_first.err);
    let task = shown(folder.path(), &url);
    let id = task["task_id"].as_str().unwrap();
    assert_eq!(
        (&task["status"], &task["waiting_for"]),
        (&"input_required".into(), &"resume".into())
    );
    let resume = format!("antiphon run --resume {id}");
    assert!(seen_first.err.contains(&resume), "{}", seen_first.err);
    let sent =
        antiphon(folder.path(), &url).args(["tasks", "send", id, "--steer", "go on"]).output();
    assert!(sent.unwrap().status.success());
    let mut command = antiphon(folder.path(), &url);
    command.args(["run", "--resume", "last"]);
    let resumed = seen(command).await;
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "Then I go on.\n"), "{}", resumed.err);
    let messages = model.requests().last().unwrap().json()["messages"].clone();
    assert_eq!(messages[1]["role"], "assistant");
    assert!(messages[1].to_string().contains("I was just about to"), "{messages:#}");
    assert!(messages[2].to_string().contains("was interrupted here"), "{messages:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_leaves_does_not_cancel_and_last_says_how_to_go_on() {
    let folder = ProjectFolder::new();
    let model = server(|request, _| match results(&request.json()) {
        0 => bash("c1", "sleep 1; echo done >> log"),
        _ => text("line one\nline two\n"),
    })
    .await;
    let url = model.url();
    let mut child = run(folder.path(), &url, &["--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // As `| head -1`: one line is read, and the pipe is closed.
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let left = waited(child).await;
    assert_eq!(left.code, 130, "{}", left.err);
    assert!(left.err.contains("antiphon run --resume "), "{}", left.err);
    let task = shown(folder.path(), &url);
    assert_eq!(task["status"], "input_required", "{task:#}");
    let id = task["task_id"].as_str().unwrap().to_owned();
    let canceled = antiphon(folder.path(), &url).args(["tasks", "cancel", &id]).output().unwrap();
    assert!(canceled.status.success());
    let mut command = antiphon(folder.path(), &url);
    command.args(["run", "--resume", "last"]);
    let last = seen(command).await;
    assert_eq!(last.code, 2, "{}", last.err);
    assert!(last.err.contains(&format!("task {id} was canceled")), "{}", last.err);
    assert!(last.err.contains("antiphon run --session "), "{}", last.err);
}
