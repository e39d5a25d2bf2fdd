//! Tasks on a peer, with the real program on both sides.

#[path = "../support/project_folder.rs"]
mod project_folder;
#[path = "../support/two_servers.rs"]
mod two_servers;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use two_servers::{TALK, TwoServers, commands, until};

/// Longer than a command here may take, and much shorter than a wait for the peer.
const AT_ONCE: Duration = Duration::from_secs(4);

const TEAM: &str = r#"
name = "test"
[[reply]]
when = { system_contains = "You are remote.", tool_results = 0 }
step = [{ call = { name = "call_agent", arguments = { join = "all", targets = [
    { agent = "worker", prompt = "one" },
    { agent = "worker", prompt = "two" },
] } } }]
[[reply]]
step = [{ text = "Done." }]
"#;

/// A model there that runs a long command and then writes a file.
fn long() -> String {
    commands(&["echo begin >> log; sleep 30; echo end >> log", "echo next >> log"])
}

fn begun(servers: &TwoServers) {
    until("the command runs", || servers.there.text("log").contains("begin").then_some(()));
}

#[test]
fn the_tree_here_has_the_tasks_of_the_peer_and_says_where_each_runs() {
    let mut servers = TwoServers::start(TEAM, TALK);
    let task = servers.here.task("remote", "go");
    servers.here.until_status(&task, "completed");
    let detail = servers.here.get(&format!("/v1/tasks/{task}"));
    assert_eq!(detail["runs_on"], json!({ "runner": "loopback", "peer": "office" }));
    let own = servers.here.task("quick", "hi");
    let own = servers.here.get(&format!("/v1/tasks/{own}"));
    assert_eq!(own["runs_on"], json!({ "runner": "local" }));
    // Also without the peer.
    servers.there.kill();
    let tree = servers.here.get(&format!("/v1/tasks/{task}/tree"));
    let tasks = tree["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 3, "{tree}");
    for child in &tasks[1..] {
        assert_eq!(child["parent"], json!(task), "{child}");
        assert_eq!(child["root"], json!(task), "{child}");
        assert_eq!(child["runs_on"]["peer"], "office", "{child}");
        assert_eq!((&child["agent"], &child["status"]), (&json!("worker"), &json!("completed")));
    }
    let printed = servers.here.antiphon(&["tasks", "tree", &task, "--json"]);
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(printed["children"].as_array().unwrap().len(), 2, "{printed}");
    assert_eq!(printed["children"][0]["title"], "one", "{printed}");
    let drawn = servers.here.antiphon(&["tasks", "tree", &task]);
    let drawn = String::from_utf8(drawn.stdout).unwrap();
    assert_eq!(drawn.matches("@office").count(), 3, "{drawn}");
    let shown = servers.here.antiphon(&["tasks", "show", &task]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("runs on peer office\n"), "{shown}");
    // A diff of the tree reads only what the journal has.
    let diff = servers.here.get(&format!("/v1/tasks/{task}/diff?below=true"));
    assert_eq!(diff["changes"], json!([]));
}

#[test]
fn a_cancel_while_the_peer_is_dead_is_delivered_when_it_is_back_and_the_task_does_no_more() {
    let mut servers = TwoServers::start(&long(), TALK);
    let task = servers.here.task("remote", "go");
    begun(&servers);
    let remote = servers.remote_task();
    servers.there.kill();
    let began = Instant::now();
    let (status, body) = servers.here.ask("POST", &format!("/v1/tasks/{task}/cancel"), "");
    assert_eq!((status, &body["status"]), (200, &json!("canceled")), "{body}");
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let order = servers.here.tops("orders").pop().unwrap();
    servers.here.until_status(&order, "running");
    let shown = servers.here.antiphon(&["tasks", "show", &order]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("is delivered when the peer answers: the peer `office`"), "{shown}");
    // Also after a kill here.
    servers.here.kill();
    servers.there.start();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(servers.there.status(&remote), "running");
    servers.here.start();
    servers.there.until_status(&remote, "canceled");
    let order = servers.here.tops("orders").pop().unwrap();
    servers.here.until_status(&order, "completed");
    assert_eq!(servers.there.text("log"), "begin\n", "nothing more was done");
}

#[test]
fn a_task_on_a_peer_can_be_canceled_without_a_server() {
    let mut servers = TwoServers::start(&long(), TALK);
    let task = servers.here.task("remote", "go");
    begun(&servers);
    let remote = servers.remote_task();
    servers.here.kill();
    let canceled = servers.here.antiphon(&["tasks", "cancel", &task]);
    let said = String::from_utf8(canceled.stdout).unwrap();
    assert!(canceled.status.success(), "{said}");
    assert!(said.contains("`office` gets the cancellation when `antiphon serve` runs"), "{said}");
    assert_eq!(servers.there.status(&remote), "running");
    servers.here.start();
    servers.there.until_status(&remote, "canceled");
    assert_eq!(servers.there.text("log"), "begin\n");
}

#[test]
fn a_stopped_peer_does_not_delay_a_join_of_any() {
    let here = r#"
name = "test"
[[reply]]
when = { system_contains = "You are lead.", tool_results = 0 }
step = [{ call = { name = "call_agent", arguments = { join = "any", targets = [
    { agent = "remote", prompt = "slow" },
    { agent = "quick", prompt = "fast" },
] } } }]
[[reply]]
when = { system_contains = "You are quick." }
step = [{ delay_ms = 8000 }, { text = "Quick." }]
[[reply]]
step = [{ text = "Enough." }]
"#;
    let servers = TwoServers::start(&long(), here);
    let began = Instant::now();
    let task = servers.here.task("lead", "go");
    begun(&servers);
    let remote = servers.remote_task();
    servers.there.signal("-STOP");
    servers.here.until_status(&task, "completed");
    let took = began.elapsed();
    servers.there.signal("-CONT");
    assert!(took < Duration::from_secs(8) + AT_ONCE, "{took:?}");
    servers.there.until_status(&remote, "canceled");
    assert_eq!(servers.there.text("log"), "begin\n");
}

#[test]
fn a_message_to_a_task_on_a_peer_crosses_over_or_is_refused() {
    let script = commands(&["echo begin >> log; sleep 3", "echo next >> log"]);
    let mut servers = TwoServers::start(&script, TALK);
    let task = servers.here.task("remote", "go");
    begun(&servers);
    let remote = servers.remote_task();
    let messages = format!("/v1/tasks/{task}/messages");
    let body = r#"{"text":"Over HTTP.","mode":"steer"}"#;
    for _ in 0..2 {
        let (status, answer) = servers.here.try_ask("POST", &messages, Some("once"), body).unwrap();
        assert_eq!(status, 202, "{answer}");
    }
    let sent = servers.here.antiphon(&["tasks", "send", &task, "From the terminal.", "--steer"]);
    assert!(sent.status.success(), "{sent:?}");
    servers.there.kill();
    let (status, refused) = servers.here.ask("POST", &messages, r#"{"text":"Lost?"}"#);
    assert_eq!((status, &refused["details"]["cause"]), (503, &json!("peer")), "{refused}");
    let refused = servers.here.antiphon(&["tasks", "send", &task, "Lost?"]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && error.contains("`office`"), "{error}");
    servers.there.start();
    servers.here.until_status(&task, "completed");
    for (side, task) in [(&servers.here, &task), (&servers.there, &remote)] {
        let events = side.events(task);
        let read = |text: &str| {
            let said = |event: &&Value| {
                event["type"] == "message_appended" && event.to_string().contains(text)
            };
            events.iter().filter(said).count()
        };
        let counts = [read("Over HTTP."), read("From the terminal."), read("Lost?")];
        assert_eq!(counts, [1, 1, 0], "{events:?}");
    }
}
