//! Calls that were cut off, of a tool that can look whether they happened.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{CutOffCall, CutOffOutcome, Journal, START_NOTE_BYTES_MAX, ToolContext};
use antiphon_core::{
    Effect, EventBody, RawJson, TaskId, TaskStatus, Tool, ToolError, ToolExecutor, ToolResult,
};
use antiphon_runtime::{Orchestrator, RuntimeDeps, TaskState};
use async_trait::async_trait;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::world::{Counting, Death, Mortal, events, new_task, world};

const SCRIPT: &str = r#"
name = "test"
[[reply]]
when = { turn = 0 }
step = [
    { call = { name = "note", arguments = { line = "a" } } },
    { call = { name = "note", arguments = { line = "b" } } },
]
[[reply]]
when = { turn = 1 }
step = [{ call = { name = "note", arguments = { line = "c" } } }]
[[reply]]
step = [{ text = "Done." }]
"#;

/// A list of lines. `note` adds one, and tells by the number of lines whether it did.
#[derive(Default)]
struct Lines {
    written: Mutex<Vec<String>>,
    executed: Mutex<Vec<Uuid>>,
    looked: Mutex<Vec<Uuid>>,
    settled: Mutex<Vec<Uuid>>,
    /// The look finds nothing out.
    blind: bool,
    note_bytes: usize,
}

impl Lines {
    fn count(&self) -> usize {
        self.written.lock().expect("no panic").len()
    }

    fn of(list: &Mutex<Vec<Uuid>>) -> BTreeSet<Uuid> {
        list.lock().expect("no panic").iter().copied().collect()
    }
}

#[async_trait]
impl ToolExecutor for Lines {
    fn tools(&self) -> Vec<Arc<Tool>> {
        let parameters = RawJson::parse(r#"{"type":"object"}"#).expect("JSON");
        vec![Arc::new(Tool {
            name: "note".to_owned(),
            description: "notes".to_owned(),
            parameters,
        })]
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        (tool == "note").then_some(Effect::SideEffect)
    }

    async fn start_note(&self, _: &str, _: &RawJson, _: &TaskId) -> Option<Value> {
        Some(json!({ "before": self.count(), "more": "x".repeat(self.note_bytes) }))
    }

    async fn execute(
        &self,
        _: &str,
        arguments: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        self.executed.lock().expect("no panic").push(context.call_uuid);
        self.written.lock().expect("no panic").push(arguments.to_string());
        Ok(ToolResult::text("noted"))
    }

    async fn inspect_cut_off(&self, _: &str, _: &RawJson, call: &CutOffCall) -> CutOffOutcome {
        self.looked.lock().expect("no panic").push(call.call_uuid);
        let before = call.note.as_ref().and_then(|note| note["before"].as_u64());
        let more = before.map(|before| self.count() as u64 - before).filter(|_| !self.blind);
        match more {
            Some(0) => CutOffOutcome::MayRun,
            Some(1) => CutOffOutcome::Happened(ToolResult::text("noted")),
            Some(_) | None => CutOffOutcome::Unknown { known: format!("{} lines", self.count()) },
        }
    }

    async fn settled(&self, _: &str, _: &TaskId, call_uuid: Uuid) {
        self.settled.lock().expect("no panic").push(call_uuid);
    }
}

fn process(journal: Arc<dyn Journal>, tools: &Arc<Lines>) -> Orchestrator {
    let tools = Arc::clone(tools) as Arc<dyn ToolExecutor>;
    let deps = world(journal, &Arc::new(Counting::default()), SCRIPT);
    Orchestrator::new(RuntimeDeps { tools, ..deps })
}

/// Runs the task, dying at append `last`, and then again without dying. `None` when it was not
/// accepted, or had ended before it died.
async fn interrupted(tools: &Arc<Lines>, last: usize, death: Death) -> Option<TaskState> {
    let journal = Arc::new(MemoryJournal::new());
    let first = process(Arc::new(Mortal::new(&journal, last, death)), tools);
    if let Ok(accepted) = first.invoke(new_task("go")).await {
        let _ = first.wait(&accepted.task_id).await;
    }
    let second = process(journal, tools);
    let recovered = second.recover().await.expect("a list");
    let task_id = recovered.begun.first()?;
    Some(second.wait(task_id).await.expect("an end"))
}

#[tokio::test]
async fn a_tool_that_looks_does_everything_once_wherever_it_is_cut_off() {
    let (mut recovered, mut looks, mut found) = (0, 0, 0);
    for last in 0..10 {
        for death in [Death::Before, Death::After] {
            let tools = Arc::new(Lines::default());
            let Some(state) = interrupted(&tools, last, death).await else { continue };
            recovered += 1;
            let place = format!("{death:?} write {last}");
            assert_eq!(state.status, TaskStatus::Completed, "{place}");
            let said = format!("{:?}", state.messages());
            assert!(!said.contains("outcome unknown"), "{place}: {said}");
            let lines = tools.written.lock().expect("no panic").clone();
            let expected = ["a", "b", "c"].map(|line| json!({ "line": line }).to_string());
            assert_eq!(lines, expected, "{place}");
            found += said.matches("A look found that it had happened").count();
            looks += Lines::of(&tools.looked).len();
            // The same call has the same id in both processes, and each call has its own.
            let executed = Lines::of(&tools.executed);
            assert_eq!(executed.len(), 3, "{place}");
            assert!(Lines::of(&tools.looked).is_subset(&executed), "{place}");
            assert_eq!(Lines::of(&tools.settled), executed, "{place}");
        }
    }
    assert!(recovered >= 10 && looks >= 5 && found >= 2, "{recovered}, {looks}, {found}");
    assert!(found < looks, "some had not happened: {found} of {looks}");
}

#[tokio::test]
async fn what_is_known_comes_with_the_unknown_outcome_and_nothing_runs_twice() {
    let mut unknown = 0;
    for last in 0..10 {
        for death in [Death::Before, Death::After] {
            let tools = Arc::new(Lines { blind: true, ..Lines::default() });
            let Some(state) = interrupted(&tools, last, death).await else { continue };
            let said = format!("{:?}", state.messages());
            let lines: BTreeSet<String> =
                tools.written.lock().expect("no panic").iter().cloned().collect();
            assert_eq!(lines.len(), tools.count(), "{death:?} write {last}: {lines:?}");
            let looks = Lines::of(&tools.looked).len();
            assert_eq!(said.matches("outcome unknown").count(), looks, "{said}");
            assert_eq!(said.matches(" lines").count(), looks, "{said}");
            unknown += looks;
        }
    }
    assert!(unknown >= 5, "{unknown}");
}

#[tokio::test]
async fn a_note_costs_no_append_and_one_that_is_too_long_is_not_recorded() {
    let mut appends = Vec::new();
    for note_bytes in [0, START_NOTE_BYTES_MAX] {
        let tools = Arc::new(Lines { note_bytes, ..Lines::default() });
        let memory = Arc::new(MemoryJournal::new());
        let journal = Arc::new(Mortal::new(&memory, usize::MAX, Death::After));
        let orchestrator = process(journal.clone(), &tools);
        let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
        orchestrator.wait(&task_id).await.expect("an end");
        appends.push(journal.0.appends.load(Ordering::SeqCst));
        let started = events(&*memory).await.into_iter().filter_map(|event| {
            let EventBody::ToolStarted(started) = event.body else { return None };
            Some(started.note.is_some())
        });
        assert_eq!(started.collect::<Vec<_>>(), [note_bytes == 0; 3]);
    }
    // Without notes at all.
    let memory = Arc::new(MemoryJournal::new());
    let journal = Arc::new(Mortal::new(&memory, usize::MAX, Death::After));
    let script = SCRIPT.replace("\"note\"", "\"act\"");
    let plain = world(journal.clone(), &Arc::new(Counting::default()), &script);
    let plain = Orchestrator::new(plain);
    let task_id = plain.invoke(new_task("go")).await.expect("accepted").task_id;
    plain.wait(&task_id).await.expect("an end");
    appends.push(journal.0.appends.load(Ordering::SeqCst));
    assert!(appends.iter().all(|count| *count == appends[0]), "{appends:?}");
}
