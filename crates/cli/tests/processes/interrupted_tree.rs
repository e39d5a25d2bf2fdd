//! Ctrl-C on a task whose agents work: the whole tree is interrupted, and resumes with its root.

use std::collections::HashSet;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::project::{Project, Run, is_running, until};
use crate::project_folder::trust;

/// A lead with two agents: the command of one does not end by itself, and the answer of the other stalls.
const SCRIPT: &str = r#"
name = "tree"
[[reply]]
when = { system_contains = "You are slow.", tool_results = 0 }
step = [{ call = { name = "bash", arguments = { command = "COMMAND" } } }]
[[reply]]
when = { system_contains = "You are slow.", tool_results = 1 }
step = [{ call = { name = "bash", arguments = { command = "echo after >> effects" } } }]
[[reply]]
when = { system_contains = "You are talker.", turn = 0 }
step = [{ text = "half" }, { stall = true }]
[[reply]]
when = { last_user_contains = "go tree", tool_results = 0 }
step = [{ call = { name = "call_agent", arguments = { join = "all", targets = [
    { AGENT, prompt = "work" },
    { system_prompt = "You are talker.", prompt = "talk" },
] } } }]
[[reply]]
step = [{ text = "done" }]
"#;

/// A project with the script, and its run once both agents work.
fn tree_at_work(project: &Project, command: &str) -> Run {
    let agent = "system_prompt = \"You are slow.\"";
    tree_at_work_with(project, command, agent, &["--mode", "full"])
}

/// The same with another definition of the agent with the command.
fn tree_at_work_with(project: &Project, command: &str, agent: &str, arguments: &[&str]) -> Run {
    let script = SCRIPT.replace("COMMAND", command).replace("AGENT", agent);
    fs::write(project.path().join("tree.toml"), script).unwrap();
    let run = Run::start(project.run_command("tree", arguments));
    until("a command", || project.path().join("started").exists());
    until("the other agent", || {
        let thinks =
            |line: &&Value| line["type"] == "state_changed" && line["data"]["to"] == "thinking";
        let printed = run.printed();
        let tasks: HashSet<&str> =
            printed.iter().filter(thinks).filter_map(|line| line["task_id"].as_str()).collect();
        tasks.len() == 3
    });
    run
}

fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}

fn statuses(project: &Project) -> Vec<(Value, Value)> {
    let tasks = project.json(&["tasks", "list", "--all", "--json"]);
    tasks
        .as_array()
        .unwrap()
        .iter()
        .map(|task| (task["status"].clone(), task["waiting_for"].clone()))
        .collect()
}

/// Resumes the root: the agents go on, and the tree ends as it would have.
fn resume(project: &Project) {
    assert_eq!(project.read("effects"), "");
    let ended = Run::start(project.command(&["run", "--json", "--resume", "last"])).end();
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_eq!(project.read("effects"), "after\n");
    assert_eq!(statuses(project), vec![("completed".into(), Value::Null); 3]);
}

const WORK: &str = "touch started; sleep 600";

/// Does not end at SIGTERM.
const STUBBORN: &str = "trap '' TERM; touch started; while true; do sleep 600; done";

#[test]
fn ctrl_c_interrupts_the_whole_tree_and_a_resume_continues_it() {
    let project = Project::new();
    let run = tree_at_work(&project, WORK);
    let worker = project.owner();
    interrupt(&run.child);
    let ended = run.end();
    assert_eq!(ended.code, Some(130), "{}", ended.said);
    until("its end", || !is_running(worker));
    assert_eq!(statuses(&project), vec![("input_required".into(), "resume".into()); 3]);
    resume(&project);
}

#[test]
fn a_second_ctrl_c_ends_the_tree_at_once_and_a_resume_continues_it() {
    let project = Project::new();
    let mut run = tree_at_work(&project, STUBBORN);
    let worker = project.owner();
    until("its end", || {
        interrupt(&run.child);
        std::thread::sleep(Duration::from_millis(20));
        run.child.try_wait().unwrap().is_some()
    });
    assert_eq!(run.end().code, Some(130));
    until("its end", || !is_running(worker));
    resume(&project);
}

#[test]
fn ctrl_c_reaches_an_agent_in_a_sandboxed_worker() {
    let project = Project::new();
    let agents = project.path().join(".antiphon/agents");
    fs::create_dir_all(&agents).unwrap();
    let boxed = "---\nname: boxed\ndescription: Works in a worker.\nruntimes:\n  - kind: sandbox\n---\nYou are slow.\n";
    fs::write(agents.join("boxed.md"), boxed).unwrap();
    trust(project.path());
    let run = tree_at_work_with(&project, WORK, "agent = \"boxed\"", &[]);
    let worker = project.owner();
    interrupt(&run.child);
    let ended = run.end();
    assert_eq!(ended.code, Some(130), "{}", ended.said);
    until("its end", || !is_running(worker));
    assert_eq!(statuses(&project), vec![("input_required".into(), "resume".into()); 3]);
    let text = serde_json::to_string(&ended.lines).unwrap();
    assert!(text.contains("a person stopped the turn"), "the call has ended: {text}");
    resume(&project);
}

#[test]
fn ctrl_c_beside_a_server_interrupts_the_whole_tree_there() {
    let project = Project::new();
    let mut serve = project.command(&["serve", "--listen", "127.0.0.1:0"]);
    let serve = serve.stdout(Stdio::null()).stderr(Stdio::null());
    let mut serve = serve.spawn().unwrap();
    project.wait_for_owner();
    let run = tree_at_work(&project, WORK);
    interrupt(&run.child);
    let ended = run.end();
    assert_eq!(ended.code, Some(130), "{}", ended.said);
    assert_eq!(statuses(&project), vec![("input_required".into(), "resume".into()); 3]);
    resume(&project);
    serve.kill().unwrap();
    serve.wait().unwrap();
}
