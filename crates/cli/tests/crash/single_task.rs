//! One task: a scripted model uses real tools. Its outcome is compared with that of an undisturbed run.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kill::Kill;
use crate::project::{Exit, Project};

/// Appends to a file several times, between calls that may run again.
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

/// The command that creates the task.
const NEW_TASK: [&str; 6] = ["run", "go", "--model", "scripted/crash", "--script", "crash.toml"];

/// The lines that are appended, each once at most.
const EFFECTS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The outcome of a task.
pub(crate) struct Outcome {
    pub(crate) status: String,
    /// The conversation as JSON, without times and other values that differ between runs.
    pub(crate) messages: Vec<String>,
}

impl Outcome {
    /// Calls that were interrupted and not run again.
    pub(crate) fn interrupted(&self) -> usize {
        self.messages.iter().filter(|message| message.contains("outcome unknown")).count()
    }
}

/// A project with one task.
pub(crate) struct SingleTask {
    project: Project,
}

impl SingleTask {
    pub(crate) fn new() -> Self {
        Self { project: Project::new(&[("crash.toml", SCRIPT), ("notes.txt", "a note\n")]) }
    }

    /// Creates the task or resumes it. The program dies at `kill`.
    pub(crate) fn start(&self, kill: Option<Kill>) -> Exit {
        match self.task() {
            None => self.project.start(&NEW_TASK, kill),
            Some(task) if task["status"] == "completed" => Exit::Completed,
            Some(_) => self.project.start(&["run", "--resume", "last"], kill),
        }
    }

    /// Creates the task or resumes it, and terminates the program after a while.
    pub(crate) fn start_and_terminate(&self, after: Duration) -> Exit {
        let mut command = self.project.antiphon();
        match self.task() {
            None => command.args(NEW_TASK),
            Some(task) if task["status"] == "completed" => return Exit::Completed,
            Some(_) => command.args(["run", "--resume", "last"]),
        };
        let mut process = command.spawn().unwrap();
        let until = Instant::now() + after;
        while process.try_wait().unwrap().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        // It may have ended meanwhile.
        let _ = Command::new("kill").args(["-TERM", &process.id().to_string()]).status();
        let output = process.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        // By the signal itself, when it came before anything was begun.
        let stopped = matches!(output.status.code(), Some(143) | None);
        assert!(output.status.success() || stopped, "{err}");
        if stopped { Exit::Killed } else { Exit::Completed }
    }

    /// Runs the task with its state on a small disk, which is full every now and then.
    /// Returns how often it was filled.
    pub(crate) fn run_on_full_disk(&self, mut random: impl FnMut(u64) -> u64) -> u64 {
        let (small, kept) = (self.project.state_base(), self.project.path().join("kept"));
        fs::create_dir_all(&small).unwrap();
        let script = "mount -t tmpfs -o size=6m,mode=0700 tmpfs \"$1\" && \"$0\" run --mode full \
                      --model scripted/crash --script crash.toml go; code=$?; rm -f \"$1/filler\"; \
                      cp -a \"$1/.\" \"$2\"; exit $code";
        let mut command = self.project.antiphon_in("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.arg(env!("CARGO_BIN_EXE_antiphon")).args([&small, &kept]);
        let mut process = command.spawn().unwrap();
        let inside = Path::new("/proc").join(process.id().to_string()).join("root");
        let filler = inside.join(small.strip_prefix("/").unwrap()).join("filler");
        let mut times = 0;
        // A program that starts on a full disk says so and ends.
        while self.project.text("log").is_empty() && process.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        while process.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(random(60)));
            // The process may have ended meanwhile, and its disk with it.
            if let Ok(mut file) = fs::File::create(&filler) {
                while file.write_all(&[0; 4096]).is_ok() {}
                times += 1;
            }
            std::thread::sleep(Duration::from_millis(random(400)));
            let _ = fs::remove_file(&filler);
        }
        let output = process.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{err}");
        fs::remove_dir_all(&small).unwrap();
        fs::rename(kept, small).unwrap();
        times
    }

    fn task(&self) -> Option<Value> {
        let output = self.project.output(&["tasks", "list", "--json"]);
        let tasks: Value = serde_json::from_slice(&output).ok()?;
        assert!(tasks.as_array().unwrap().len() <= 1, "{tasks}");
        tasks.get(0).cloned()
    }

    pub(crate) fn outcome(&self) -> Outcome {
        let output = self.project.output(&["tasks", "show", "last", "--json"]);
        let shown: Value = serde_json::from_slice(&output).unwrap();
        let comparable = |message: &Value| {
            let mut message = message.clone();
            message.as_object_mut().unwrap().remove("timestamp");
            // An interrupted call makes the later requests longer.
            message.as_object_mut().unwrap().remove("usage");
            let differs = message["tool_name"] == "bash" || message["tool_name"] == "write";
            if differs && !message.to_string().contains("outcome unknown") {
                // One contains a time, the other the earlier content of the file.
                message.as_object_mut().unwrap().remove("content");
            }
            message.to_string()
        };
        Outcome {
            status: shown["status"].as_str().unwrap().to_owned(),
            messages: shown["conversation"].as_array().unwrap().iter().map(comparable).collect(),
        }
    }

    /// Positions and sequence numbers count from one without a gap, and no event follows the end.
    pub(crate) fn check_events(&self, context: &str) {
        let events = self.project.events();
        for (number, event) in (1..).zip(&events) {
            assert_eq!((event.position.0, event.seq.0), (number, number), "{context}");
        }
        let ends = events.iter().filter(|event| event.body.ends_task()).count();
        assert_eq!(ends, 1, "{context}");
        assert!(events.last().unwrap().body.ends_task(), "{context}");
    }

    /// Each line was appended once; the line of an interrupted call, at most once.
    pub(crate) fn check_effects(&self, outcome: &Outcome, context: &str) {
        let log = self.project.text("log");
        let interrupted = outcome.interrupted();
        let mut missing = 0;
        for effect in EFFECTS {
            let times = log.lines().filter(|line| *line == effect).count();
            assert!(times <= 1, "{effect} was done {times} times: {context}\n{log}");
            missing += usize::from(times == 0);
        }
        assert!(missing <= interrupted, "{missing} of {log:?} are missing: {context}");
        assert_eq!(log.lines().count(), EFFECTS.len() - missing, "{context}");
        // These settle by themselves.
        assert_eq!(self.project.text("new/file.txt"), "written\n", "{context}");
        assert_eq!(self.project.text("notes.txt"), "a note, edited\n", "{context}");
        for message in outcome.messages.iter().filter(|message| message.contains("outcome unknown"))
        {
            assert!(message.contains("ANTIPHON_CALL_ID"), "{context}: {message}");
        }
        let kept = self.project.state().join("results/.calls");
        assert_eq!(fs::read_dir(kept).unwrap().count(), 0, "{context}");
    }
}
