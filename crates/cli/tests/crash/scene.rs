//! One task: a scripted model works with real tools. What became of it is compared with what an
//! undisturbed run says.

use serde_json::Value;

use crate::kill::Kill;
use crate::project::{Fate, Project};

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

impl Told {
    /// Calls that were cut off and not run again.
    pub(crate) fn cut_off(&self) -> usize {
        self.said.iter().filter(|said| said.contains("outcome unknown")).count()
    }
}

/// A project.
pub(crate) struct Scene {
    project: Project,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { project: Project::new(&[("crash.toml", SCRIPT), ("notes.txt", "a note\n")]) }
    }

    /// Begins the task, or goes on with it, and dies if told to.
    pub(crate) fn start(&self, kill: Option<Kill>) -> Fate {
        match self.task() {
            None => {
                let begin = ["run", "go", "--model", "scripted/crash", "--script", "crash.toml"];
                self.project.start(&begin, kill)
            }
            Some(task) if task["status"] == "completed" => Fate::Ended,
            Some(_) => self.project.start(&["run", "--resume", "last"], kill),
        }
    }

    fn task(&self) -> Option<Value> {
        let output = self.project.look(&["tasks", "list", "--json"]);
        let tasks: Value = serde_json::from_slice(&output).ok()?;
        assert!(tasks.as_array().unwrap().len() <= 1, "{tasks}");
        tasks.get(0).cloned()
    }

    pub(crate) fn told(&self) -> Told {
        let output = self.project.look(&["tasks", "show", "last", "--json"]);
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
        let events = self.project.events();
        for (number, event) in (1..).zip(&events) {
            assert_eq!((event.position.0, event.seq.0), (number, number), "{place}");
        }
        let ends = events.iter().filter(|event| event.body.ends_task()).count();
        assert_eq!(ends, 1, "{place}");
        assert!(events.last().unwrap().body.ends_task(), "{place}");
    }

    /// Each line was appended once; one whose call was cut off, once at most.
    pub(crate) fn check_effects(&self, told: &Told, place: &str) {
        let log = self.project.text("log");
        let cut_off = told.cut_off();
        let mut missing = 0;
        for effect in EFFECTS {
            let times = log.lines().filter(|line| *line == effect).count();
            assert!(times <= 1, "{effect} was done {times} times: {place}\n{log}");
            missing += usize::from(times == 0);
        }
        assert!(missing <= cut_off, "{missing} of {log:?} are missing: {place}");
        assert_eq!(log.lines().count(), EFFECTS.len() - missing, "{place}");
        if cut_off == 0 {
            assert_eq!(self.project.text("new/file.txt"), "written\n", "{place}");
            assert_eq!(self.project.text("notes.txt"), "a note, edited\n", "{place}");
        }
    }
}
