//! Calls that were cut off: a look shows whether they happened.

use antiphon_core::port::{CutOffCall, CutOffOutcome, START_NOTE_BYTES_MAX, ToolContext};
use antiphon_core::{RawJson, TaskId, ToolExecutor};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::world::{Outcome, World, context, text_of};

/// A call that the orchestrator starts, and that a kill may cut off anywhere.
struct Call {
    tool: &'static str,
    arguments: Value,
}

fn write(content: &str) -> Call {
    Call { tool: "write", arguments: json!({ "path": "a.txt", "content": content }) }
}

fn edit(old: &str, new: &str) -> Call {
    let edits = json!([{ "old": old, "new": new }]);
    Call { tool: "edit", arguments: json!({ "path": "a.txt", "edits": edits }) }
}

impl Call {
    fn json(&self) -> RawJson {
        RawJson::of(&self.arguments).unwrap()
    }

    /// What is recorded with the start.
    fn note(&self, world: &World) -> Option<Value> {
        let task = TaskId::parse("task").unwrap();
        world.block_on(world.toolbox.start_note(self.tool, &self.json(), &task))
    }

    fn run(&self, world: &World, note: Option<Value>) -> Outcome {
        let context = ToolContext { note, ..context("task", "call") };
        Outcome::of(world.block_on(world.toolbox.execute(self.tool, &self.json(), context)))
    }

    fn inspect_cut_off(&self, world: &World, note: Option<Value>) -> CutOffOutcome {
        let task_id = TaskId::parse("task").unwrap();
        let call = CutOffCall { task_id, call_uuid: Uuid::nil(), note };
        world.block_on(world.toolbox.inspect_cut_off(self.tool, &self.json(), &call))
    }
}

/// The tools after a restart: nothing is known of what tasks have read.
fn restart(world: &World) {
    world.block_on(world.toolbox.release(&TaskId::parse("task").unwrap()));
}

fn changes() -> [Call; 2] {
    [write("gamma\n"), edit("beta", "beta, beta")]
}

#[test]
fn a_change_that_happened_is_found_and_not_made_again() {
    for call in changes() {
        let world = World::new();
        world.read("a.txt").tool_output();
        let note = call.note(&world);
        assert!(note.as_ref().unwrap().to_string().len() <= START_NOTE_BYTES_MAX);
        call.run(&world, note.clone()).tool_output();
        let after = world.bytes("a.txt");
        restart(&world);
        let CutOffOutcome::Happened(result) = call.inspect_cut_off(&world, note) else {
            panic!("{}", call.tool)
        };
        let text = text_of(&result);
        let changed = text.starts_with("Overwrote `a.txt`") || text.starts_with("Edited `a.txt`");
        assert!(!result.is_error && changed, "{result:?}");
        assert_eq!(world.bytes("a.txt"), after);
        // The task knows what it wrote: it may overwrite it.
        world.write("a.txt", "and on\n").tool_output();
        world.is_unharmed();
    }
}

#[test]
fn a_change_that_did_not_happen_runs_although_the_reads_are_forgotten() {
    for call in changes() {
        let world = World::new();
        world.read("a.txt").tool_output();
        let note = call.note(&world);
        restart(&world);
        assert_eq!(call.inspect_cut_off(&world, note), CutOffOutcome::MayRun, "{}", call.tool);
        let again = call.note(&world);
        assert!(again.is_some(), "{}", call.tool);
        call.run(&world, again).tool_output();
        world.is_unharmed();
    }
}

#[test]
fn a_new_file_is_settled_too() {
    let world = World::new();
    let arguments = json!({ "path": "new/file", "content": "x" });
    let call = Call { tool: "write", arguments };
    let note = call.note(&world);
    assert_eq!(call.inspect_cut_off(&world, note.clone()), CutOffOutcome::MayRun);
    call.run(&world, note.clone()).tool_output();
    let CutOffOutcome::Happened(result) = call.inspect_cut_off(&world, note.clone()) else {
        panic!("not found")
    };
    assert!(text_of(&result).starts_with("Created `new/file`: 1 bytes"), "{result:?}");
    world.put("new/file", "of another program");
    let look = call.inspect_cut_off(&world, note);
    assert!(
        matches!(&look, CutOffOutcome::Unknown { known } if known.contains("new/file")),
        "{look:?}"
    );
}

#[test]
fn a_file_that_another_program_changed_is_unknown_and_stays_as_it_is() {
    for call in changes() {
        let world = World::new();
        world.read("a.txt").tool_output();
        let note = call.note(&world);
        for contents in ["beta\n", "", "alpha\nbeta, beta, beta\n"] {
            world.put("a.txt", contents);
            let look = call.inspect_cut_off(&world, note.clone());
            assert!(matches!(look, CutOffOutcome::Unknown { .. }), "{}: {look:?}", call.tool);
            assert_eq!(world.bytes("a.txt"), contents.as_bytes());
        }
        std::fs::remove_file(world.path("a.txt")).unwrap();
        let look = call.inspect_cut_off(&world, note);
        assert!(matches!(look, CutOffOutcome::Unknown { .. }), "{}: {look:?}", call.tool);
    }
}

#[test]
fn a_call_changes_only_the_state_that_its_note_describes() {
    for call in changes() {
        let world = World::new();
        world.read("a.txt").tool_output();
        let note = call.note(&world);
        // Between the note and the call: the edit would match here, too.
        world.put("a.txt", "beta\nand more\n");
        world.read("a.txt").tool_output();
        let reason = call.run(&world, note).failed();
        assert!(reason.contains("changed while this call worked on it"), "{reason}");
        assert_eq!(world.bytes("a.txt"), b"beta\nand more\n");
    }
}

#[test]
fn a_call_that_would_change_nothing_has_no_note() {
    let world = World::new();
    // Not read before; no match; not there; outside; protected.
    let path = |tool, path: &str| {
        let edits = json!([{ "old": "a", "new": "b" }]);
        let arguments = if tool == "write" {
            json!({ "path": path, "content": "x" })
        } else {
            json!({ "path": path, "edits": edits })
        };
        Call { tool, arguments }
    };
    let outside = world.outside.join("secret.txt").display().to_string();
    let calls = [
        write("gamma\n"),
        edit("nowhere", "x"),
        path("edit", "missing"),
        path("edit", &outside),
        path("write", &outside),
        path("write", ".git/config"),
        Call { tool: "write", arguments: json!({ "path": 1 }) },
    ];
    for call in calls {
        assert_eq!(call.note(&world), None, "{}", call.arguments);
    }
}

#[test]
fn a_look_stays_within_the_workspace_and_survives_any_note() {
    let world = World::new();
    let outside = world.outside.join("secret.txt").display().to_string();
    let arguments = json!({ "path": outside, "content": "x" });
    let call = Call { tool: "write", arguments };
    let inside = write("gamma\n");
    world.read("a.txt").tool_output();
    let note = inside.note(&world);
    let look = call.inspect_cut_off(&world, note);
    let CutOffOutcome::Unknown { known } = look else { panic!("{look:?}") };
    assert!(!known.contains(crate::world::SECRET), "{known}");
    for note in [None, Some(json!({})), Some(json!({ "before": 1, "after": [] })), Some(json!("x"))]
    {
        let look = inside.inspect_cut_off(&world, note.clone());
        assert!(matches!(look, CutOffOutcome::Unknown { .. }), "{note:?}: {look:?}");
    }
}
