//! Trees of tasks on the command line: `tasks tree` and `tasks watch`, on journals that the test writes
//! event by event, and `run` with agents that call agents.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/project_folder.rs"]
mod project_folder;

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use antiphon_core::port::{Append, Expected, JournalLog};
use antiphon_core::{
    AssistantBlock, AssistantMessage, CallableAgents, EventBody, HandedOver, Message,
    MessageAppended, Seq, SessionId, StatusChanged, StopReason, TaskCreated, TaskId, TaskStatus,
    ToolCallId, Usage, UsageRecorded, UserMessage,
};
use antiphon_sqlite::{SqliteJournal, SyncPolicy};
use assert_cmd::Command;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use project_folder::{ProjectFolder, home, state, trust};

/// A project whose journal the test writes.
struct Project {
    folder: ProjectFolder,
    journal: SqliteJournal,
    began: DateTime<Utc>,
}

impl Project {
    fn new() -> Self {
        let folder = ProjectFolder::new();
        fs::create_dir_all(state(folder.path())).unwrap();
        let config = "[models.\"scripted/x\"]\nprice = { input = 1.0, output = 5.0 }\n";
        fs::write(folder.path().join("config.toml"), config).unwrap();
        let journal = state(folder.path()).join("journal.db");
        let journal = SqliteJournal::open(&journal, SyncPolicy::Normal).unwrap();
        Self { folder, journal, began: Utc::now() - TimeDelta::hours(1) }
    }

    async fn append(&self, task: &str, after: u64, second: i64, events: Vec<EventBody>) {
        let expected = if after == 0 { Expected::NoTask } else { Expected::At(Seq(after)) };
        let append = Append {
            task_id: id(task),
            expected,
            at: self.began + TimeDelta::seconds(second),
            events,
            key: None,
        };
        self.journal.append(append).await.unwrap();
    }

    /// Writes a running task: five events.
    async fn start(&self, task: &str, parent: Option<&str>, agent: &str) {
        self.append(task, 0, 0, start_events(task, parent, agent)).await;
    }

    async fn end(&self, task: &str, second: i64, status: TaskStatus, detail: Value) {
        let change = StatusChanged { detail: Some(detail), ..StatusChanged::new(status) };
        self.append(task, 5, second, vec![change.into()]).await;
    }

    fn antiphon(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = command(self.folder.path(), arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    fn shown(&self, arguments: &[&str]) -> String {
        let (code, out, err) = self.antiphon(arguments);
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        out
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.shown(arguments)).unwrap()
    }

    /// A planner, a researcher that is done, and a writer whose editor failed.
    async fn team(&self) {
        self.start("top", None, "planner").await;
        self.start("a", Some("top"), "researcher").await;
        self.end("a", 12, TaskStatus::Completed, json!("It is\n12 places.")).await;
        self.start("b", Some("top"), "writer").await;
        self.start("b1", Some("b"), "editor").await;
        let error = json!({ "code": "overloaded", "error": "the model is unavailable" });
        self.end("b1", 4, TaskStatus::Failed, error).await;
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("antiphon").unwrap();
    command
        .current_dir(folder)
        .env_clear()
        .env("HOME", home(folder))
        .env("ANTIPHON_CONFIG", folder.join("config.toml"))
        .args(arguments)
        .timeout(std::time::Duration::from_secs(20));
    command
}

fn id(task: &str) -> TaskId {
    TaskId::parse(task).unwrap()
}

fn start_events(task: &str, parent: Option<&str>, agent: &str) -> Vec<EventBody> {
    let created = TaskCreated {
        parent: parent.map(id),
        root: parent.map(|_| id("top")),
        ..TaskCreated::new(agent, SessionId::parse(&format!("session-{task}")).unwrap())
    };
    let prompt = Message::from(UserMessage::text(format!("Work of {agent}."), Utc::now()));
    let usage = Usage { input_tokens: 1000, output_tokens: 200, ..Usage::default() };
    vec![
        created.into(),
        MessageAppended::new(prompt).into(),
        StatusChanged::new(TaskStatus::Running).into(),
        MessageAppended::new(answer(&format!("{agent} works on it."))).into(),
        UsageRecorded { model: "scripted/x".to_owned(), usage, purpose: None }.into(),
    ]
}

fn answer(text: &str) -> Message {
    Message::from(AssistantMessage {
        content: vec![AssistantBlock::text(text)],
        stop_reason: StopReason::EndTurn,
        raw_stop_reason: "end_turn".to_owned(),
        usage: Usage::default(),
        model: None,
        timestamp: Utc::now(),
    })
}

#[tokio::test]
async fn a_tree_is_drawn_with_its_totals_while_another_process_owns_the_journal() {
    let project = Project::new();
    project.team().await;
    project.end("b", 65, TaskStatus::Completed, json!({ "pages": 3 })).await;
    project.end("top", 80, TaskStatus::Completed, json!("Done.")).await;
    let expected = "\
planner         ✓ completed   80 s  1200  $0.0020  Work of planner. │ Done.
│ Σ 3 below                         3600  $0.0060
├─ researcher   ✓ completed   12 s  1200  $0.0020  Work of researcher. │ 12 places.
└─ writer       ✓ completed   65 s  1200  $0.0020  Work of writer. │ {\"pages\":3}
   │ Σ 1 below                      1200  $0.0020
   └─ editor    ✗ failed     4.0 s  1200  $0.0020  Work of editor. │ the model is unavailable
4 tasks (3 completed, 1 failed) · 4800 tokens · $0.0080 · 80 s
";
    assert_eq!(project.shown(&["tasks", "tree"]), expected);
    assert_eq!(project.shown(&["tasks", "tree", "top"]), expected);
    let below = project.shown(&["tasks", "tree", "b"]);
    assert!(below.starts_with("writer       ✓ completed   65 s"), "{below}");
    assert!(below.ends_with("2 tasks (1 completed, 1 failed) · 2400 tokens · $0.0040 · 65 s\n"));
    let ids = project.shown(&["tasks", "tree", "--ids"]);
    assert!(ids.contains("$0.0020  b1 │ Work of editor."), "{ids}");
}

#[tokio::test]
async fn a_tree_in_json_is_nested_and_has_totals() {
    let project = Project::new();
    project.team().await;
    let over = HandedOver {
        tool_call_id: ToolCallId::parse("c1").unwrap(),
        agent: "author".to_owned(),
        model: None,
        fallbacks: Vec::new(),
        system_prompt: String::new(),
        tools: None,
        agents: CallableAgents::Any,
    };
    project.append("b", 5, 20, vec![over.into()]).await;
    let tree = project.json(&["tasks", "tree", "last", "--json"]);
    assert_eq!(tree["task_id"], "top");
    assert_eq!(tree["usage"], json!({ "input_tokens": 1000, "output_tokens": 200 }));
    assert_eq!(tree["usage_total"], json!({ "input_tokens": 4000, "output_tokens": 800 }));
    assert_eq!((&tree["cost"], &tree["cost_total"]), (&json!(2_000_000), &json!(8_000_000)));
    assert_eq!(tree["tasks_total"], 4);
    let [researcher, writer] = tree["children"].as_array().unwrap().as_slice() else {
        panic!("{tree}");
    };
    assert_eq!(researcher["output"], "12 places.");
    assert_eq!(researcher["children"], json!([]));
    assert_eq!((&writer["agent"], &writer["handovers"]), (&json!("author"), &json!(["writer"])));
    assert_eq!(writer["children"][0]["output"], "the model is unavailable");
    assert_eq!(writer["usage_total"], json!({ "input_tokens": 2000, "output_tokens": 400 }));
}

#[tokio::test]
async fn many_children_are_collapsed_unless_all_are_requested() {
    let project = Project::new();
    project.start("top", None, "planner").await;
    for number in 0..40 {
        let task = format!("t{number}");
        project.start(&task, Some("top"), "worker").await;
        project.end(&task, 1, TaskStatus::Completed, json!("ok")).await;
    }
    let collapsed = project.shown(&["tasks", "tree"]);
    assert!(collapsed.contains("\n└─ … 28 more completed\n"), "{collapsed}");
    assert_eq!(collapsed.matches("worker").count(), 2 * 12, "a name and a title each: {collapsed}");
    let all = project.shown(&["tasks", "tree", "--all"]);
    assert_eq!(all.lines().count(), 43, "{all}");
    assert_eq!(
        project.json(&["tasks", "tree", "--json"])["children"].as_array().unwrap().len(),
        40
    );
}

#[tokio::test]
async fn the_last_task_is_the_top_of_its_tree() {
    let project = Project::new();
    project.team().await;
    assert!(project.shown(&["tasks", "show", "last"]).starts_with("task top, running"));
    assert_eq!(project.json(&["tasks", "show", "b1", "--json"])["task_id"], "b1");
    let (code, _, err) = project.antiphon(&["tasks", "tree", "missing"]);
    assert!(code == 2 && err.starts_with("antiphon: there is no task `missing` here"), "{err}");
}

/// A watcher process and its output.
struct Watcher {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watcher {
    fn start(project: &Project, arguments: &[&str]) -> Self {
        let folder = project.folder.path();
        let mut process = std::process::Command::new(env!("CARGO_BIN_EXE_antiphon"))
            .current_dir(folder)
            .env_clear()
            .env("HOME", home(folder))
            .env("ANTIPHON_CONFIG", folder.join("config.toml"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    fn end(mut self) -> i32 {
        assert!(self.lines.next().is_none(), "it prints no more");
        self.process.wait().unwrap().code().unwrap()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_watcher_in_another_process_prints_each_change_and_ends_with_the_top() {
    let project = Project::new();
    project.start("top", None, "planner").await;
    let mut watcher = Watcher::start(&project, &["tasks", "watch", "--json"]);
    let mut next = || serde_json::from_str::<Value>(&watcher.line()).unwrap();
    assert_eq!(next()["task_id"], "top");
    project.start("other", None, "stranger").await;
    project.start("a", Some("top"), "researcher").await;
    let started = next();
    assert_eq!((&started["task_id"], &started["parent"]), (&json!("a"), &json!("top")));
    assert_eq!(
        (&started["status"], &started["output"]),
        (&json!("running"), &json!("researcher works on it."))
    );
    project.end("a", 12, TaskStatus::Completed, json!("found it")).await;
    let done = next();
    assert_eq!((&done["status"], &done["output"]), (&json!("completed"), &json!("found it")));
    project.end("top", 80, TaskStatus::Failed, json!({ "error": "no" })).await;
    assert_eq!(next()["status"], "failed");
    assert_eq!(watcher.end(), 0);
}

#[tokio::test]
async fn without_a_terminal_a_watcher_prints_a_line_per_change() {
    let project = Project::new();
    project.start("top", None, "planner").await;
    let mut watcher = Watcher::start(&project, &["tasks", "watch", "top"]);
    let mut next = || watcher.line().split_once(' ').unwrap().1.to_owned();
    assert_eq!(next(), "planner (top) ● running 1200 tokens $0.0020 planner works on it.");
    project.start("a", Some("top"), "researcher").await;
    assert_eq!(next(), "researcher (a) ● running 1200 tokens $0.0020 researcher works on it.");
    let over = json!({ "error": "the model is unavailable" });
    project.end("a", 12, TaskStatus::Failed, over).await;
    assert_eq!(next(), "researcher (a) ✗ failed 12 s 1200 tokens $0.0020 the model is unavailable");
    project.end("top", 80, TaskStatus::Canceled, Value::Null).await;
    assert_eq!(next(), "planner (top) – canceled 80 s 1200 tokens $0.0020 planner works on it.");
    assert_eq!(watcher.end(), 0);
}

#[tokio::test]
async fn a_watcher_does_not_lock_the_journal() {
    let project = Project::new();
    project.start("top", None, "planner").await;
    let mut watcher = Watcher::start(&project, &["tasks", "watch", "--json"]);
    watcher.line();
    let Project { folder, journal, .. } = project;
    drop(journal);
    let canceled = command(folder.path(), &["tasks", "cancel", "top"]).output().unwrap();
    assert!(canceled.status.success(), "{}", String::from_utf8_lossy(&canceled.stderr));
    let last: Value = serde_json::from_str(&watcher.line()).unwrap();
    assert_eq!(last["status"], "canceled");
    assert_eq!(watcher.end(), 0);
}

const TEAM: &str = r#"
name = "x"
[[reply]]
when = { turn = 0, last_user_contains = "Review" }
step = [
    { text = "I ask an agent." },
    { call = { name = "call_agent", arguments = { agent = "researcher", prompt = "Find it." } } },
]
[[reply]]
when = { turn = 0, last_user_contains = "Find" }
step = [{ call = { name = "bash", arguments = { command = "echo found" } } }]
[[reply]]
step = [{ text = "Done: {{last_user}}\nThat is all." }]
usage = { input_tokens = 1000, output_tokens = 200 }
"#;

/// A project with a researcher.
fn team() -> ProjectFolder {
    let folder = ProjectFolder::new();
    let agents = folder.path().join(".antiphon/agents");
    fs::create_dir_all(&agents).unwrap();
    let researcher = "---\nname: researcher\ndescription: Finds things.\n---\nYou find things.\n";
    fs::write(agents.join("researcher.md"), researcher).unwrap();
    fs::write(folder.path().join("x.toml"), TEAM).unwrap();
    fs::write(folder.path().join("config.toml"), "").unwrap();
    trust(folder.path());
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let path = std::env::var_os("PATH").unwrap();
    let output = command(folder, arguments).env("PATH", path).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const REVIEW: [&str; 6] = ["run", "Review", "--model", "scripted/x", "--script", "x.toml"];

#[test]
fn a_descendant_is_shown_in_notes_and_only_the_answer_is_on_standard_output() {
    let folder = team();
    let (code, out, err) = run(folder.path(), &REVIEW);
    let notes = "  [researcher] begins: Find it.
  [researcher] → bash echo found
  [researcher] ✓ done, 2 lines
✓ call_agent, 2 lines
";
    assert_eq!((code, err.as_str()), (0, notes));
    assert_eq!(out, "I ask an agent.\nDone: Review\nThat is all.\n");
    let (_, tree, _) = run(folder.path(), &["tasks", "tree"]);
    assert!(tree.contains("\n└─ researcher  ✓ completed"), "{tree}");
}

#[test]
fn all_events_of_a_tree_are_printed_as_json_and_a_task_starts_with_its_creation() {
    let folder = team();
    let (code, out, err) = run(folder.path(), &[&REVIEW[..], &["--json"]].concat());
    assert_eq!((code, err.as_str()), (0, ""));
    let mut created = Vec::new();
    let mut descendant_deltas = 0;
    for line in out.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if event["type"] == "task_created" {
            created.push(event["task_id"].clone());
        }
        assert!(created.contains(&event["task_id"]), "{line}");
        let is_descendant = event["task_id"] != created[0];
        descendant_deltas += usize::from(is_descendant && event["type"] == "text_delta");
    }
    assert_eq!(created.len(), 2);
    assert!(descendant_deltas > 0, "{out}");
}

#[test]
fn a_descendant_that_needs_an_approval_is_named_and_the_tree_resumes_from_its_top() {
    let folder = team();
    let config = "[permissions]\nask = [\"bash(echo *)\"]\n";
    fs::write(folder.path().join("config.toml"), config).unwrap();
    let (code, _, err) = run(folder.path(), &[&REVIEW[..], &["--ask", "wait"]].concat());
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("\n  [researcher] asks about bash\n"), "{err}");
    assert!(err.contains("antiphon: researcher (task "), "{err}");
    let (_, tree, _) = run(folder.path(), &["tasks", "tree"]);
    assert!(tree.contains("\n└─ researcher  ? asks"), "{tree}");
    assert_eq!(run(folder.path(), &["approvals", "allow", "last"]).0, 0);
    let (code, out, err) = run(folder.path(), &["run", "--resume", "last"]);
    assert_eq!((code, out.as_str()), (0, "Done: Review\nThat is all.\n"), "{err}");
    assert!(err.contains("  [researcher] → bash\n"), "{err}");
}
