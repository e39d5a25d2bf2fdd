//! Processes beside an owner that ends: its last calls may take long, and commands outlive it.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::project::{Project, until};

/// Longer than a process waits for an owner that is gone.
const LONG_CALL: Duration = Duration::from_secs(33);

/// Until the file `go` is there.
const WAIT: &str = "until [ -e go ]; do sleep 0.02; done; echo waited >> effects";

/// The line for a user who waits.
const TOLD: &str = "is about to end";

fn terminate(process: u32) {
    let id = process.to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
}

#[test]
fn an_owner_that_ends_is_waited_for_as_long_as_its_calls_take() {
    let project = Project::new();
    let agents = project.path().join(".antiphon/agents");
    fs::create_dir_all(&agents).unwrap();
    let reader = "---\ndescription: Reads.\nmodel: scripted/hello\ntools: []\n---\nRead.\n";
    fs::write(agents.join("reader.md"), reader).unwrap();
    project.script("owner", &[WAIT]);
    let mut owner = project.run("owner");
    owner.until_event("tool_started");
    project.wait_for_owner();
    let step = "until [ -e step ]; do sleep 0.02; done";
    project.script("between", &[step, "echo between >> effects"]);
    let mut between = project.run("between");
    between.until_event("tool_started");
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut serve = project.command(&["serve", "--listen", &address]);
    let mut serve = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the server", || TcpStream::connect(&address).is_ok());
    // The call ends, and no other step of its task starts at this owner.
    fs::write(project.path().join("step"), "").unwrap();
    project.script("new", &["echo new >> effects"]);
    let new = project.run("new");
    let mut send = project.command(&["send", "reader", "hello"]);
    let mut send = send.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let mut clients = [between, new];
    while begun.elapsed() < LONG_CALL {
        assert!(clients.iter_mut().all(|run| run.child.try_wait().unwrap().is_none()));
        assert!(send.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(project.read("effects"), "");
    fs::write(project.path().join("go"), "").unwrap();
    owner.end().assert_whole();
    for run in clients {
        let ended = run.end();
        ended.assert_whole();
        assert_eq!(ended.said.matches(TOLD).count(), 1, "{}", ended.said);
    }
    assert!(send.wait().unwrap().success());
    let effects = project.read("effects");
    let mut effects: Vec<&str> = effects.lines().collect();
    effects.sort_unstable();
    assert_eq!(effects, ["between", "new", "waited"]);
    terminate(serve.id());
    assert!(serve.wait().unwrap().success());
}

/// Owners come and go all the time, and each command is one process.
#[test]
fn commands_succeed_beside_owners_that_end() {
    let project = Project::new();
    project.succeed(&["run", "hello"]);
    let sessions = project.json(&["sessions", "list", "--json"]);
    let session = sessions[0]["session_id"].as_str().unwrap().to_owned();
    let stops = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stops.load(Ordering::Relaxed) {
                    project.output(&["run", "hello"]);
                }
            });
        }
        let failed = (0..40).find_map(|_| {
            let output = project.output(&["sessions", "fork", &session]);
            (!output.status.success()).then_some(output)
        });
        stops.store(true, Ordering::Relaxed);
        assert!(failed.is_none(), "{failed:?}");
    });
}

#[test]
fn a_tasks_message_arrives_once_when_the_owner_is_killed_meanwhile() {
    let project = Project::new();
    project.script("owner", &[WAIT]);
    let mut owner = project.run("owner");
    owner.until_event("tool_started");
    project.wait_for_owner();
    // The first call is cut off with its owner, and the second waits.
    let wait = "until [ -e go ]; do sleep 0.02; done";
    project.script("client", &[wait, wait]);
    let mut client = project.run("client");
    client.until_event("tool_started");
    let task = client.printed()[0]["task_id"].as_str().unwrap().to_owned();
    let id = project.owner().to_string();
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    };
    // The message is on its way when the owner dies.
    signal("-STOP");
    let mut send = project.command(&["tasks", "send", &task, "and then?"]);
    let send = send.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    owner.kill();
    signal("-KILL");
    let ended = send.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    fs::write(project.path().join("go"), "").unwrap();
    let ended = client.end();
    ended.assert_whole();
    let queued = ended.lines.iter().filter(|line| line["type"] == "message_queued").count();
    assert_eq!(queued, 1);
}
