//! A project in which a scripted model works with real tools, and what became of it.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use antiphon_core::port::{Journal, Read};
use antiphon_core::{Event, Position};
use antiphon_sqlite::{SqliteJournal, Sync};
use serde_json::Value;

/// How the program dies.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kill {
    /// Before its nth write to the journal.
    Before(u64),
    /// After it.
    After(u64),
    /// When half of it is written.
    Torn(u64),
    /// After so many milliseconds.
    Time(u64),
}

/// Appends to a file again and again, beside tools that may be run again.
const SCRIPT: &str = r#"
name = "crash"
chunk_chars = 5
delay_ms = 1
[[reply]]
when = { turn = 0 }
step = [
    { text = "One thing after the other." },
    { call = { name = "bash", arguments = { command = "echo a >> log" } } },
    { call = { name = "bash", arguments = { command = "echo b >> log" } } },
]
[[reply]]
when = { turn = 1 }
step = [
    { call = { name = "read", arguments = { path = "notes.txt" } } },
    { call = { name = "glob", arguments = { pattern = "*.toml" } } },
    { call = { name = "grep", arguments = { pattern = "note", path = "notes.txt" } } },
]
[[reply]]
when = { turn = 2 }
step = [
    { call = { name = "write", arguments = { path = "new/file.txt", content = "written\n" } } },
    { call = { name = "bash", arguments = { command = "echo c >> log" } } },
    { call = { name = "read", arguments = { path = "new/file.txt" } } },
]
[[reply]]
when = { turn = 3 }
step = [
    { text = "And on." },
    { call = { name = "edit", arguments = { path = "notes.txt", edits = [{ old = "a note", new = "a note, edited" }] } } },
    { call = { name = "bash", arguments = { command = "echo d >> log" } } },
]
[[reply]]
when = { turn = 4 }
step = [
    { call = { name = "bash", arguments = { command = "echo e >> log; cat new/file.txt" } } },
]
[[reply]]
step = [{ text = "That was all." }]
"#;

/// The lines that are appended, each once at most.
const EFFECTS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// What became of a task.
pub(crate) struct Told {
    pub(crate) status: String,
    /// What was said, without times and without what differs from run to run.
    pub(crate) said: Vec<String>,
}

/// A project.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("crash.toml"), SCRIPT).unwrap();
        fs::write(folder.path().join("notes.txt"), "a note\n").unwrap();
        Self { folder }
    }

    fn antiphon(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_antiphon"));
        command
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    /// Begins the task, or goes on with it, and dies if told to. Says whether it got to its end.
    pub(crate) fn start(&self, kill: Option<Kill>) -> bool {
        let mut command = self.antiphon();
        match self.task() {
            None => {
                command.args(["run", "go", "--model", "scripted/crash", "--script", "crash.toml"])
            }
            Some(task) if task["status"] == "completed" => return true,
            Some(_) => command.args(["run", "--resume", "last"]),
        };
        let die_at = match kill {
            None | Some(Kill::Time(_)) => None,
            Some(Kill::Before(at)) => Some(format!("{at}:before")),
            Some(Kill::After(at)) => Some(format!("{at}:after")),
            Some(Kill::Torn(at)) => Some(format!("{at}:torn")),
        };
        if let Some(die_at) = die_at {
            command.env("LD_PRELOAD", die_at_library()).env("DIE_AT", die_at);
        }
        let mut child = command.spawn().unwrap();
        if let Some(Kill::Time(millis)) = kill {
            let until = Instant::now() + Duration::from_millis(millis);
            while child.try_wait().unwrap().is_none() && Instant::now() < until {
                std::thread::sleep(Duration::from_micros(200));
            }
            child.kill().unwrap();
        }
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        // By SIGKILL, or at its end: it never fails.
        assert!(output.status.success() || output.status.code().is_none(), "{kill:?}: {err}");
        output.status.success()
    }

    /// What a command that only looks prints.
    fn look(&self, arguments: &[&str]) -> Vec<u8> {
        self.antiphon().args(arguments).stdout(Stdio::piped()).output().unwrap().stdout
    }

    fn task(&self) -> Option<Value> {
        let output = self.look(&["tasks", "list", "--json"]);
        let tasks: Value = serde_json::from_slice(&output).ok()?;
        assert!(tasks.as_array().unwrap().len() <= 1, "{tasks}");
        tasks.get(0).cloned()
    }

    pub(crate) fn told(&self) -> Told {
        let output = self.look(&["tasks", "show", "last", "--json"]);
        let shown: Value = serde_json::from_slice(&output).unwrap();
        let said = |message: &Value| {
            let mut message = message.clone();
            message.as_object_mut().unwrap().remove("timestamp");
            // A call that was cut off makes the rest a little longer.
            message.as_object_mut().unwrap().remove("usage");
            let differs = message["tool_name"] == "bash" || message["tool_name"] == "write";
            if differs && !message.to_string().contains("outcome unknown") {
                // One says how long it took, the other what was there before.
                message.as_object_mut().unwrap().remove("content");
            }
            message.to_string()
        };
        Told {
            status: shown["status"].as_str().unwrap().to_owned(),
            said: shown["conversation"].as_array().unwrap().iter().map(said).collect(),
        }
    }

    /// Positions and seqs count from one without a gap, and nothing follows the end.
    pub(crate) fn check_events(&self, place: &str) {
        let events = events(self.folder.path());
        for (number, event) in (1..).zip(&events) {
            assert_eq!((event.position.0, event.seq.0), (number, number), "{place}");
        }
        let ends = events.iter().filter(|event| event.body.ends_task()).count();
        assert_eq!(ends, 1, "{place}");
        assert!(events.last().unwrap().body.ends_task(), "{place}");
    }

    /// Each line was appended once; one whose call was cut off, once at most.
    pub(crate) fn check_effects(&self, told: &Told, place: &str) {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let cut_off = told.said.iter().filter(|said| said.contains("outcome unknown")).count();
        let mut missing = 0;
        for effect in EFFECTS {
            let times = log.lines().filter(|line| *line == effect).count();
            assert!(times <= 1, "{effect} was done {times} times: {place}\n{log}");
            missing += usize::from(times == 0);
        }
        assert!(missing <= cut_off, "{missing} of {log:?} are missing: {place}");
        assert_eq!(log.lines().count(), EFFECTS.len() - missing, "{place}");
        let file = fs::read_to_string(self.folder.path().join("new/file.txt"));
        if cut_off == 0 {
            assert_eq!(file.unwrap(), "written\n", "{place}");
            let notes = fs::read_to_string(self.folder.path().join("notes.txt")).unwrap();
            assert_eq!(notes, "a note, edited\n", "{place}");
        }
    }
}

fn events(folder: &Path) -> Vec<Event> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let journal = SqliteJournal::open(&folder.join(".antiphon/journal.db"), Sync::Full).unwrap();
    runtime.block_on(async {
        journal.verify().await.unwrap();
        let (mut events, mut after) = (Vec::new(), Position(0));
        loop {
            let read = Read { task_id: None, after, limit: NonZeroUsize::MAX };
            let page = journal.read(read).await.unwrap();
            if page.events.is_empty() {
                return events;
            }
            after = page.next;
            events.extend(page.events);
        }
    })
}

/// What is preloaded, compiled once.
fn die_at_library() -> &'static Path {
    static LIBRARY: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = LIBRARY.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("die_at.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash/die_at.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-o"])
            .args([&path, &source])
            .arg("-ldl")
            .status()
            .unwrap();
        assert!(compiled.success(), "the C compiler could not make {}", path.display());
        (folder, path)
    });
    path
}
