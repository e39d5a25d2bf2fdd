//! One task whose model is away again and again: the server refuses, is gone, or cuts its answer in the middle,
//! and the program is killed as well.

use std::sync::Mutex;

use antiphon_model_server::{ModelServer, Reply};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::anthropic_wire::{bash, busy, cut_call, cut_text, gone, results, text};
use crate::kill::Kill;
use crate::project::{Exit, Project};
use crate::random::Random;

/// The lines that are appended, each once.
const EFFECTS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Failures in a row.
const FAILURES_MAX: u32 = 2;

/// From this number of the dice on, the model answers.
const WORKS: u64 = 5;

/// A project with one task, and its model.
pub(crate) struct OutageTask {
    project: Project,
    server: ModelServer,
    _runtime: Runtime,
}

impl OutageTask {
    /// One of two answers of the model fails.
    pub(crate) fn new(seed: u64) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let dice = Mutex::new((Random(seed), 0));
        let server = runtime.block_on(ModelServer::start(move |request, _| {
            let turn = results(&request.json());
            let (random, failures) = &mut *dice.lock().unwrap();
            // Pauses double with each failure in a row.
            let chance = if *failures < FAILURES_MAX { random.below(10) } else { WORKS };
            *failures = if chance < WORKS { *failures + 1 } else { 0 };
            answer(turn, chance)
        }));
        Self { project: Project::new(&[]), server: server.unwrap(), _runtime: runtime }
    }

    /// Creates the task or resumes it. The program dies at `kill`.
    pub(crate) fn start(&self, kill: Option<Kill>) -> Exit {
        let url = self.server.url();
        let variables = [("ANTHROPIC_API_KEY", "sk-ant-test"), ("ANTHROPIC_BASE_URL", &url)];
        let create =
            ["run", "--model", "anthropic/claude", "--mode", "full", "--retries", "0", "go"];
        match self.task() {
            None => self.project.start_with(&create, &variables, kill),
            Some(task) if task["status"] == "completed" => Exit::Completed,
            Some(_) => self.project.start_with(&["run", "--resume", "last"], &variables, kill),
        }
    }

    fn task(&self) -> Option<Value> {
        let output = self.project.output(&["tasks", "list", "--json"]);
        serde_json::from_slice::<Value>(&output).ok()?.get(0).cloned()
    }

    /// Checks a task that has ended. Returns how often its model failed, and how many calls were interrupted.
    pub(crate) fn check(&self, context: &str) -> (usize, usize) {
        let output = self.project.output(&["tasks", "show", "last", "--json"]);
        let shown: Value = serde_json::from_slice(&output).unwrap();
        assert_eq!(shown["status"], "completed", "{context}");
        let said = shown["conversation"].to_string();
        let interrupted = said.matches("outcome unknown").count();
        let log = self.project.text("log");
        let mut missing = 0;
        for effect in EFFECTS {
            let times = log.lines().filter(|line| *line == effect).count();
            assert!(times <= 1, "{effect} was done {times} times: {context}\n{log}");
            missing += usize::from(times == 0);
        }
        assert!(missing <= interrupted, "{missing} of {log:?} are missing: {context}");
        let events = self.project.events();
        for (number, event) in (1..).zip(&events) {
            assert_eq!((event.position.0, event.seq.0), (number, number), "{context}");
        }
        let wait = |event: &&antiphon_core::Event| {
            matches!(&event.body, antiphon_core::EventBody::StatusChanged(change)
                if change.waiting_for == Some(antiphon_core::WaitingFor::Model))
        };
        (events.iter().filter(wait).count(), interrupted)
    }
}

/// The answer after so many results, or a failure.
fn answer(turn: usize, chance: u64) -> Reply {
    let command = EFFECTS.get(turn).map(|effect| format!("echo {effect} >> log"));
    let id = format!("call_{turn}");
    match (chance, command) {
        (0, _) => busy(503, None),
        (1, _) => busy(529, Some(20)),
        (2, _) => gone(),
        (3, Some(command)) => cut_call(&id, &command),
        (3 | 4, _) => cut_text("One thing after the"),
        (_, Some(command)) => bash(&id, &command),
        (_, None) => text("That was all."),
    }
}
