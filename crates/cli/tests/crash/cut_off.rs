//! Calls that are cut off by a kill, each kind at each instant: before it ran, in the middle, and after it ran
//! and before its result was recorded.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use antiphon_core::{EventBody, Message};
use serde_json::Value;

use crate::kill::Kill;
use crate::project::{Exit, Project};

/// Longest wait for something that a running command does.
const SOON: Duration = Duration::from_secs(30);

/// Overwrites a file that it has read, and then adds to it twice: no change is idempotent. The file is read in the
/// same answer, because after a restart a task must read a file again before it begins to overwrite it.
const FILES: &str = r#"
name = "files"
[[reply]]
when = { turn = 0 }
step = [
    { call = { name = "read", arguments = { path = "notes.txt" } } },
    { call = { name = "write", arguments = { path = "notes.txt", content = "one\n" } } },
    { call = { name = "edit", arguments = { path = "notes.txt", edits = [{ old = "one", new = "one, one" }] } } },
]
[[reply]]
when = { turn = 1 }
step = [{ call = { name = "edit", arguments = { path = "notes.txt", edits = [{ old = "one\n", new = "one, one\n" }] } } }]
[[reply]]
step = [{ text = "That was all." }]
"#;

const BASH: &str = r#"
name = "bash"
[[reply]]
when = { turn = 0 }
step = [{ call = { name = "bash", arguments = { command = "echo a >> log; echo output of $ANTIPHON_CALL_ID" } } }]
[[reply]]
step = [{ text = "That was all." }]
"#;

/// Writes its id to a file, and hangs.
const HANGS: &str = r#"
name = "hangs"
[[reply]]
when = { turn = 0 }
step = [{ call = { name = "bash", arguments = { command = "echo first line; printf 'half a'; echo $ANTIPHON_CALL_ID >> ids; sleep 60" } } }]
[[reply]]
step = [{ text = "That was all." }]
"#;

const SERVER: &str = r#"
import json, os, sys, time

def tool(name, annotations):
    return {"name": name, "description": name, "inputSchema": {"type": "object"}, "annotations": annotations}

TOOLS = [tool("put", {"idempotentHint": True}), tool("look", {"readOnlyHint": True}), tool("add", {})]
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if "id" not in message:
        continue
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "marks", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        with open("calls", "a") as calls:
            calls.write(message["params"]["name"] + "\n")
        if os.path.exists("hang"):
            time.sleep(60)
        result = {"content": [{"type": "text", "text": "done"}]}
    elif method == "ping":
        result = {}
    else:
        error = {"code": -32601, "message": "Method not found"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

fn run(script: &str) -> Vec<String> {
    let model = format!("scripted/{script}");
    ["run", "go", "--model", &model, "--script", "script.toml"].map(str::to_owned).into()
}

/// Results of the tool calls, in order.
fn results(project: &Project) -> Vec<String> {
    let result = |body: EventBody| {
        let EventBody::MessageAppended(appended) = body else { return None };
        let Message::ToolResult(result) = &*appended.message else { return None };
        Some(format!("{:?}", result.content))
    };
    project.events().into_iter().filter_map(|event| result(event.body)).collect()
}

fn starts(project: &Project) -> usize {
    let is_start = |body: &EventBody| matches!(body, EventBody::ToolStarted(_));
    project.events().iter().filter(|event| is_start(&event.body)).count()
}

fn resume(project: &Project) {
    let listed = project.output(&["tasks", "list", "--json"]);
    let tasks: Value = serde_json::from_slice(&listed).unwrap_or_default();
    if tasks[0]["status"] != "completed" {
        assert_eq!(project.start(&["run", "--resume", "last"], None), Exit::Completed);
    }
}

/// Runs `arguments` in new projects, killed at every write to the journal, before and after it, and resumed.
/// `check` gets each project and the kill.
fn killed_at_every_write(
    files: &[(&str, &str)],
    arguments: &[String],
    check: impl Fn(&Project, &str),
) {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (mut kills, mut at) = (0, 1);
    loop {
        let (mut completed, mut accepted) = (false, false);
        for kill in [Kill::Before(at), Kill::After(at)] {
            let project = Project::new(files);
            completed |= project.start(&arguments, Some(kill)) == Exit::Completed;
            let listed = project.output(&["tasks", "list", "--json"]);
            let tasks: Value = serde_json::from_slice(&listed).unwrap_or_default();
            if tasks[0].is_object() {
                accepted = true;
                kills += 1;
                resume(&project);
                check(&project, &format!("{kill:?}"));
            }
        }
        if completed {
            break;
        }
        // The first writes make the journal, before there is a task.
        at += if accepted { 1 } else { 10 };
    }
    assert!(kills >= 10, "{kills} kills");
    println!("{kills} kills");
}

#[test]
fn write_and_edit_settle_at_whichever_write_they_are_cut_off() {
    let files = [("script.toml", FILES), ("notes.txt", "a note\n")];
    let found = std::cell::Cell::new((0, 0));
    killed_at_every_write(&files, &run("files"), |project, kill| {
        assert_eq!(project.text("notes.txt"), "one, one, one\n", "{kill}");
        let results = results(project);
        assert_eq!(results.len(), 4, "{kill}: {results:?}");
        let (mut happened, mut again) = found.get();
        for result in &results {
            assert!(!result.contains("outcome unknown"), "{kill}: {result}");
            assert!(!result.contains("was not"), "{kill}: {result}");
            happened += usize::from(result.contains("A look found that it had happened"));
        }
        again += starts(project) - 4;
        found.set((happened, again));
    });
    let (happened, again) = found.get();
    assert!(happened >= 3 && again >= 3, "{happened} had happened, {again} ran again");
}

#[test]
fn bash_runs_once_and_its_result_or_what_is_known_survives_a_kill_at_any_write() {
    let found = std::cell::Cell::new((0, 0));
    killed_at_every_write(&[("script.toml", BASH)], &run("bash"), |project, kill| {
        let results = results(project);
        let [result] = results.as_slice() else { panic!("{kill}: {results:?}") };
        let ran = project.text("log").lines().count();
        let (mut happened, mut unknown) = found.get();
        if result.contains("outcome unknown") {
            assert!(ran <= 1 && result.contains("ANTIPHON_CALL_ID: "), "{kill}: {result}");
            unknown += 1;
        } else {
            assert!(ran == 1 && result.contains("output of "), "{kill}: {result}");
            happened += usize::from(result.contains("A look found that it had happened"));
        }
        found.set((happened, unknown));
        // What was kept is gone once the result is recorded.
        let kept = project.state().join("results/.calls");
        assert_eq!(fs::read_dir(kept).unwrap().count(), 0, "{kill}");
    });
    let (happened, unknown) = found.get();
    assert!(happened >= 1 && unknown >= 1, "{happened} had happened, {unknown} are unknown");
}

/// Starts a task and kills it when `reached` is true.
fn kill_when(project: &Project, arguments: &[String], reached: impl Fn() -> bool) {
    let mut process = project.antiphon().args(arguments).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while !reached() && process.try_wait().unwrap().is_none() && began.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(1));
    }
    let was_reached = reached();
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(was_reached);
}

#[test]
fn a_command_that_is_cut_off_in_the_middle_leaves_its_output_its_time_and_its_id() {
    let project = Project::new(&[("script.toml", HANGS)]);
    let wait = Duration::from_millis(1_500);
    let began = Instant::now();
    let since = std::cell::Cell::new(None);
    kill_when(&project, &run("hangs"), || {
        if since.get().is_none() && project.text("ids").ends_with('\n') {
            since.set(Some(began.elapsed()));
        }
        since.get().is_some_and(|since| began.elapsed() > since + wait)
    });
    let kept = project.state().join("results/.calls");
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 1);
    resume(&project);
    let ids = project.text("ids");
    assert_eq!(ids.lines().count(), 1, "it ran once: {ids}");
    let results = results(&project);
    let [result] = results.as_slice() else { panic!("{results:?}") };
    for part in
        ["outcome unknown", &format!("ANTIPHON_CALL_ID: {}]", ids.trim()), "first line\\nhalf a"]
    {
        assert!(result.contains(part), "{part} is not in {result}");
    }
    let ran = result.contains("[It ran for ") && !result.contains("[It ran for 0.");
    assert!(ran, "{result}");
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 0);
    assert_eq!(project.processes_left(), Vec::<String>::new());
}

fn mcp_project(tool: &str) -> Project {
    let call = format!("{{ call = {{ name = \"mcp__marks__{tool}\", arguments = {{}} }} }}");
    let script = format!(
        "name = \"mcp\"\n[[reply]]\nwhen = {{ turn = 0 }}\nstep = [{call}]\n[[reply]]\nstep = [{{ text = \"Done.\" }}]\n"
    );
    let config = "[mcp.marks]\ncommand = \"python3\"\nargs = [\"server.py\"]\ncwd = \".\"\n";
    let files = [
        ("script.toml", script.as_str()),
        ("server.py", SERVER),
        ("hang", ""),
        (".config/antiphon/config.toml", config),
    ];
    Project::new(&files)
}

#[test]
fn an_mcp_call_that_is_cut_off_runs_again_only_if_its_server_declares_it_repeatable() {
    for (tool, runs) in [("put", 2), ("look", 2), ("add", 1)] {
        let project = mcp_project(tool);
        let mut arguments = run("mcp");
        arguments.extend(["--allow".to_owned(), format!("mcp__marks__{tool}")]);
        kill_when(&project, &arguments, || project.text("calls").ends_with('\n'));
        fs::remove_file(project.path().join("hang")).unwrap();
        resume(&project);
        assert_eq!(project.text("calls"), format!("{tool}\n").repeat(runs), "{tool}");
        let results = results(&project);
        let [result] = results.as_slice() else { panic!("{tool}: {results:?}") };
        assert_eq!(result.contains("outcome unknown"), runs == 1, "{tool}: {result}");
        assert_eq!(result.contains("done"), runs == 2, "{tool}: {result}");
    }
}

/// How often a run that repeats a command syncs, by what: the journal and anything else.
fn syncs(command: &str, calls: usize) -> (usize, Vec<String>) {
    let step = |turn: usize| {
        format!(
            "[[reply]]\nwhen = {{ turn = {turn} }}\nstep = [{{ call = {{ name = \"bash\", arguments = {{ command = \"{command}\" }} }} }}]\n"
        )
    };
    let steps: String = (0..calls).map(step).collect();
    let script = format!("name = \"syncs\"\n{steps}[[reply]]\nstep = [{{ text = \"Done.\" }}]\n");
    let project = Project::new(&[("script.toml", &script)]);
    let log = project.path().with_file_name("syncs");
    let mut command: Command = project.antiphon();
    command.args(run("syncs"));
    Kill::log_syncs(&mut command, &log);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(&log).unwrap();
    let of_journal = |path: &&str| {
        Path::new(path)
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("journal.db"))
    };
    let journal = text.lines().filter(of_journal).count();
    let others = text.lines().filter(|path| !of_journal(path)).map(str::to_owned).collect();
    (journal, others)
}

#[test]
fn what_is_kept_about_a_call_costs_no_sync() {
    let (one, others_of_one) = syncs("echo x", 1);
    let (five, others_of_five) = syncs("echo x", 5);
    assert_eq!(others_of_one.len(), others_of_five.len(), "{others_of_five:?}");
    assert!(others_of_five.iter().all(|path| !path.contains("results")), "{others_of_five:?}");
    // For each call: one with the answer and the start, one with the result.
    assert!(five - one <= 4 * 2, "{one} and {five} syncs");
}

#[test]
fn a_result_that_is_kept_aside_is_synced_with_its_folder() {
    let (_, others) = syncs("seq 200000", 1);
    let in_results = |path: &&String| path.contains("/results/") && !path.ends_with('/');
    assert!(others.iter().any(|path| in_results(&path)), "the file: {others:?}");
    assert!(others.iter().any(|path| path.ends_with("/results")), "its folder: {others:?}");
}
