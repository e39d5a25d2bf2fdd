//! kill -9 of the agent, and of the process that owns the journal, and an editor that goes away.

use std::process::Stdio;

use crate::editor::World;

const WAITS: &str = "[[reply]]\nwhen = { turn = 0 }\nsteps = [{ call = { name = \"bash\", arguments = { command = \"while [ ! -e go ]; do sleep 0.05; done\" } } }]\n\
    [[reply]]\nsteps = [{ text = \"went on\" }]\n";

#[test]
fn a_prompt_goes_on_after_the_owner_of_the_journal_was_killed() {
    let world = World::new(&[("waits", WAITS)]);
    let mut owner = world.editor("waits");
    let session = owner.new_session();
    owner.start_prompt(&session, "Own the journal");
    owner.until_update(|update| update["status"] == "in_progress");
    let mut editor = world.editor("waits");
    let session = editor.new_session();
    let prompt = editor.start_prompt(&session, "Wait");
    editor.until_update(|update| update["status"] == "in_progress");
    owner.kill();
    std::fs::write(world.path().join("go"), "").unwrap();
    let answer = editor.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(editor.text(), "went on");
}

#[test]
fn a_killed_agent_loses_nothing_and_the_next_prompt_goes_on_with_its_task() {
    let world = World::new(&[("waits", WAITS)]);
    let mut editor = world.editor("waits");
    let session = editor.new_session();
    editor.start_prompt(&session, "Wait");
    editor.until_update(|update| update["status"] == "in_progress");
    editor.kill();
    std::fs::write(world.path().join("go"), "").unwrap();
    let mut next = world.editor("waits");
    assert!(next.load(&session)["result"].is_object());
    let answer = next.prompt(&session, "Go on");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(next.text().ends_with("went on"), "{}", next.text());
    let tasks = world.json(&["tasks", "list", "--json"]);
    assert_eq!(tasks.as_array().unwrap().len(), 1, "the task went on: {tasks}");
}

#[test]
fn an_editor_that_closes_its_input_leaves_an_interrupted_task() {
    let world = World::new(&[("waits", WAITS)]);
    let mut editor = world.editor("waits");
    let session = editor.new_session();
    editor.start_prompt(&session, "Wait");
    editor.until_update(|update| update["status"] == "in_progress");
    assert_eq!(editor.close(), Some(0));
    let tasks = world.json(&["tasks", "list", "--json"]);
    assert_eq!(tasks[0]["status"], "input_required", "{tasks}");
    std::fs::write(world.path().join("go"), "").unwrap();
    let resume = ["run", "--resume", "last"];
    let resumed = world.command(&resume).stdout(Stdio::piped()).output().unwrap();
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
}
