//! One task: a scripted model uses real tools. Its outcome is compared with that of an undisturbed run.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::full_disk::SmallDisk;
use crate::kill::Kill;
use crate::project::{Exit, Project};
use crate::signal::Signal;

/// Appends to a file several times, between calls that may run again.
const SCRIPT: &str = r#"
name = "crash"
chunk_chars = 5
delay_ms = 1
[[reply]]
when = { tool_results = 0 }
step = [
    { text = "One thing after the other." },
    { call = { name = "bash", arguments = { command = "echo a >> log" } } },
    { call = { name = "bash", arguments = { command = "echo b >> log" } } },
]
[[reply]]
when = { tool_results = 2 }
step = [
    { call = { name = "read", arguments = { path = "notes.txt" } } },
    { call = { name = "glob", arguments = { pattern = "*.toml" } } },
    { call = { name = "grep", arguments = { pattern = "note", path = "notes.txt" } } },
]
[[reply]]
when = { tool_results = 5 }
step = [
    { call = { name = "write", arguments = { path = "new/file.txt", content = "written\n" } } },
    { call = { name = "bash", arguments = { command = "echo c >> log" } } },
    { call = { name = "read", arguments = { path = "new/file.txt" } } },
]
[[reply]]
when = { tool_results = 8 }
step = [
    { text = "And on." },
    { call = { name = "edit", arguments = { path = "notes.txt", edits = [{ old = "a note", new = "a note, edited" }] } } },
    { call = { name = "bash", arguments = { command = "echo d >> log" } } },
]
[[reply]]
when = { tool_results = 10 }
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
        self.messages.iter().filter(|message| is_interrupted(message)).count()
    }

    /// The conversation without answers that a person interrupted: the model is asked for them again.
    pub(crate) fn without_interrupted_answers(&self) -> Vec<&String> {
        let is_whole = |message: &&String| !message.contains("\"stop_reason\":\"aborted\"");
        self.messages.iter().filter(is_whole).collect()
    }
}

/// The text without the numbers in ids of calls: an answer that a person interrupted counts in them.
fn without_call_ids(text: &str) -> String {
    let mut parts = text.split("call_");
    let mut without = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        without += "call_";
        without += part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_');
    }
    without
}

/// Whether a result says that its call was cut off or stopped.
pub(crate) fn is_interrupted(result: &str) -> bool {
    result.contains("outcome unknown") || result.contains("a person stopped the turn")
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

    /// Creates the task or resumes it, and sends the program a signal after a while.
    pub(crate) fn start_and_signal(&self, signal: Signal, after: Duration) -> Exit {
        match self.task() {
            None => self.project.start_and_signal(&NEW_TASK, signal, after),
            Some(task) if task["status"] == "completed" => Exit::Completed,
            Some(_) => self.project.start_and_signal(&["run", "--resume", "last"], signal, after),
        }
    }

    /// Runs the task with its state on a small disk, which is full every now and then.
    /// Returns how often it was filled.
    pub(crate) fn run_on_full_disk(&self, random: impl FnMut(u64) -> u64) -> u64 {
        let arguments = [&NEW_TASK[..], &["--mode", "full"]].concat();
        self.project.run_on_full_disk(&arguments, SmallDisk { megabytes: 6 }, random)
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
            if differs && !is_interrupted(&message.to_string()) {
                // One contains a time, the other the earlier content of the file.
                message.as_object_mut().unwrap().remove("content");
            }
            without_call_ids(&message.to_string())
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

    /// Every call had its effect once; an interrupted command, at most once. `write` and `edit` settle by themselves.
    pub(crate) fn check_effects(&self, outcome: &Outcome, context: &str) {
        self.check_commands(outcome, context);
        assert_eq!(self.project.text("new/file.txt"), "written\n", "{context}");
        assert_eq!(self.project.text("notes.txt"), "a note, edited\n", "{context}");
    }

    /// Each line was appended once; the line of an interrupted call, at most once.
    pub(crate) fn check_commands(&self, outcome: &Outcome, context: &str) {
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
        for message in outcome.messages.iter().filter(|message| message.contains("outcome unknown"))
        {
            assert!(message.contains("ANTIPHON_CALL_ID"), "{context}: {message}");
        }
        let kept = self.project.state().join("results/.calls");
        assert_eq!(fs::read_dir(kept).unwrap().count(), 0, "{context}");
    }
}
