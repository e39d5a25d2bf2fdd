//! MCP servers are those of the process that asked, not of the owner.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::project::{Project, Run, is_running, until};

/// A server with one tool that tells the value of `SHOP` in its environment, and writes its process id to `pid-SHOP`.
const SERVER: &str = r#"
import json, os, sys
shop = os.environ.get("SHOP", "none")
open(f"pid-{shop}", "w").write(str(os.getpid()))
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("id") is None:
        continue
    result = {}
    if asked["method"] == "initialize":
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "shop", "version": "1"}}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": "name", "inputSchema": {"type": "object"}}]}
    elif asked["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": shop}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

const SCRIPT: &str = r#"
name = "shop"
[[reply]]
when = { turn = 0 }
steps = [{ call = { name = "mcp__shop__name", arguments = {} } }]
[[reply]]
steps = [{ text = "The shop is {{last_result}}." }]
"#;

fn project() -> Project {
    let project = Project::new();
    for (name, text) in [("shop.py", SERVER), ("shop.toml", SCRIPT)] {
        fs::write(project.path().join(name), text).unwrap();
    }
    let config = "[mcp.shop]\ncommand = \"python3\"\nargs = [\"shop.py\"]\ncwd = \".\"\ninherit_env = [\"SHOP\"]\n";
    fs::write(project.path().join("shops.toml"), config).unwrap();
    project.script("owner", &["until [ -e go ]; do sleep 0.02; done"]);
    project
}

/// What a run with the servers of this shop says.
fn ask(project: &Project, shop: &str) -> String {
    let allow = ["--allow", "mcp__shop__name"];
    let mut command =
        project.command(&["run", "--model", "scripted/shop", "--script", "shop.toml"]);
    command.args(allow).arg("Which shop?");
    command.env("ANTIPHON_CONFIG", "shops.toml").env("SHOP", shop);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn server(project: &Project, shop: &str) -> u32 {
    project.read(&format!("pid-{shop}")).parse().unwrap()
}

#[test]
fn a_client_has_its_own_servers_beside_an_owner_without_any() {
    let project = project();
    let mut owner = project.run("owner");
    owner.until_event("tool_started");
    project.wait_for_owner();
    for shop in ["bakery", "smithy"] {
        assert_eq!(ask(&project, shop).trim(), format!("The shop is {shop}."));
        // Its task has ended.
        until("the end of the server", || !is_running(server(&project, shop)));
    }
    fs::write(project.path().join("go"), "").unwrap();
    owner.end().assert_whole();
}

/// Settings with a server that never answers.
fn silent_server(project: &Project) {
    let config = "[mcp.silent]\ncommand = \"sleep\"\nargs = [\"600\"]\n";
    fs::write(project.path().join("silent.toml"), config).unwrap();
}

#[test]
fn an_owner_whose_server_is_slow_delays_no_other_process() {
    let project = project();
    silent_server(&project);
    let begun = Instant::now();
    let mut command = project.run_command("owner", &["--mode", "full"]);
    command.env("ANTIPHON_CONFIG", "silent.toml");
    let mut owner = Run::start(command);
    project.wait_for_owner();
    project.script("second", &[]);
    project.run("second").end().assert_whole();
    project.script("third", &["sleep 600"]);
    let mut third = project.run("third");
    third.until_event("tool_started");
    let task = third.printed()[0]["task_id"].as_str().unwrap().to_owned();
    project.succeed(&["tasks", "cancel", &task]);
    assert_eq!(third.child.wait().unwrap().code(), Some(130));
    // The tools of the owner's own task are still awaited.
    assert!(begun.elapsed() < Duration::from_secs(18), "{:?}", begun.elapsed());
    assert!(owner.printed().is_empty(), "{:?}", owner.printed());
    owner.until_event("tool_started");
    fs::write(project.path().join("go"), "").unwrap();
    let ended = owner.end();
    ended.assert_whole();
    assert!(ended.said.contains("silent"), "{}", ended.said);
}

#[test]
fn a_client_whose_server_is_slow_takes_over_at_once() {
    let project = project();
    silent_server(&project);
    let mut owner = project.run("owner");
    owner.until_event("tool_started");
    project.wait_for_owner();
    project.script("client", &["until [ -e go ]; do sleep 0.02; done"]);
    let mut command = project.run_command("client", &["--mode", "full"]);
    command.env("ANTIPHON_CONFIG", "silent.toml");
    let mut client = Run::start(command);
    client.until_event("tool_started");
    let before = project.owner();
    let killed = Instant::now();
    owner.kill();
    until("the next owner", || project.owner() != before && is_running(project.owner()));
    project.wait_for_owner();
    project.script("second", &[]);
    project.run("second").end().assert_whole();
    assert!(killed.elapsed() < Duration::from_secs(8), "{:?}", killed.elapsed());
    fs::write(project.path().join("go"), "").unwrap();
    client.end().assert_whole();
}

#[test]
fn processes_with_the_same_servers_share_them_and_others_do_not() {
    let project = project();
    let mut command = project.run_command("owner", &["--mode", "full"]);
    command.env("ANTIPHON_CONFIG", "shops.toml").env("SHOP", "bakery");
    let mut owner = Run::start(command);
    owner.until_event("tool_started");
    project.wait_for_owner();
    let first = server(&project, "bakery");
    assert_eq!(ask(&project, "bakery").trim(), "The shop is bakery.");
    assert_eq!(server(&project, "bakery"), first, "no second server was started");
    assert_eq!(ask(&project, "smithy").trim(), "The shop is smithy.");
    assert!(is_running(first));
    fs::write(project.path().join("go"), "").unwrap();
    owner.end().assert_whole();
    until("the end of the server", || !is_running(first));
}

#[test]
fn a_client_is_told_of_a_server_that_does_not_start() {
    let project = project();
    let mut owner = project.run("owner");
    owner.until_event("tool_started");
    project.wait_for_owner();
    let broken = "model = \"scripted/hello\"\n[mcp.broken]\ncommand = \"/nowhere\"\n";
    fs::write(project.path().join("broken.toml"), broken).unwrap();
    let mut command: Command = project.command(&["run", "hello"]);
    let output = command.env("ANTIPHON_CONFIG", "broken.toml").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("MCP server `broken` is unavailable"),
        "{said}"
    );
    fs::write(project.path().join("go"), "").unwrap();
    owner.end().assert_whole();
}
