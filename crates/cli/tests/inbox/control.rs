//! What a server does beside its connection, through the real binary: requests that are dropped as files,
//! schedules, and agents that are no longer defined.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::project::{Project, dropped};
use crate::project_folder::state;

/// A requester's private folder.
pub(crate) fn requester(project: &Project, name: &str) -> PathBuf {
    let folder = project.path().join(".antiphon/requests").join(name);
    project.until("the folder of requests is there", |_| fs::create_dir(&folder).ok());
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

/// Writes a request file, and waits for its response.
pub(crate) fn requested(project: &Project, name: &str, request: &Value) -> Value {
    let folder = project.path().join(".antiphon/requests/boss");
    dropped(&folder, &format!("{name}.json"), request);
    let response = folder.join(format!("{name}.response.json"));
    let text = project.until("it is answered", |_| fs::read_to_string(&response).ok());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_file_spawns_an_agent_talks_to_it_changes_it_and_stops_it() {
    let project = Project::configured("");
    let config = project.home().join(".config/antiphon/config.toml");
    let with_model = format!("model = \"scripted/echo\"\n{}", fs::read_to_string(&config).unwrap());
    fs::write(&config, with_model).unwrap();
    let server = project.serve();
    requester(&project, "boss");
    let spawn = json!({"action": "spawn_agent", "name": "scribe", "profile": "native",
        "context": "---\ntools: bash\n---\nYou write things down."});
    let spawned = requested(&project, "spawn", &spawn);
    let reported = (&spawned["ok"], &spawned["status"], &spawned["agent"]);
    assert_eq!(reported, (&json!(true), &json!("started"), &json!("scribe")), "{spawned}");
    assert_eq!(spawned["taskId"], json!(project.task("scribe")));
    let shown = project.antiphon(&["agents", "show", "scribe", "--json"]).json();
    assert_eq!(shown["context"], "---\ntools: bash\n---\nYou write things down.");
    assert_eq!(shown["description"], "Spawned by boss.");
    assert_eq!(shown["tools"].get("wanted"), None, "a context gives no tools");

    let message = json!({"action": "send", "name": "scribe", "message": "hello"});
    let sent = requested(&project, "send", &message);
    assert_eq!((&sent["status"], &sent["ok"]), (&json!("accepted"), &json!(true)), "{sent}");
    project.caught_up("scribe");
    let said = project.said("scribe");
    assert_eq!(said[0].1, "[MESSAGE from boss] hello");

    let update = json!({"action": "update_agent_context", "name": "scribe", "context": "Anew."});
    assert_eq!(requested(&project, "update", &update)["status"], "updated");
    let shown = project.antiphon(&["agents", "show", "scribe", "--json"]).json();
    assert_eq!(
        (&shown["context"], &shown["description"]),
        (&json!("Anew."), &json!("Spawned by boss."))
    );

    let stop = json!({"action": "stop_agent", "name": "scribe"});
    assert_eq!(requested(&project, "stop", &stop)["status"], "stopped");
    assert_eq!(requested(&project, "again", &stop)["status"], "not_running");
    for (name, request, code) in [
        ("b1", json!({"action": "stop_agent", "name": "nobody"}), "NOT_FOUND"),
        ("b2", json!({"action": "send", "name": "scribe", "message": "x"}), "CONFLICT"),
        ("b3", json!({"action": "send", "name": "nobody", "message": "x"}), "NOT_FOUND"),
        ("b4", json!({"action": "spawn_agent", "name": "x", "profile": "doom"}), "INVALID_REQUEST"),
        (
            "b5",
            json!({"action": "update_agent_context", "name": "nobody", "context": "x"}),
            "NOT_FOUND",
        ),
        ("b6", json!({"action": "cancel", "taskId": "none"}), "NOT_FOUND"),
        ("b7", json!({"action": "invoke", "prompt": "x", "name": "nobody"}), "NOT_FOUND"),
        ("b8", json!({"action": "delete_everything"}), "INVALID_REQUEST"),
    ] {
        let response = requested(&project, name, &request);
        let reported = (&response["ok"], &response["error"]["code"]);
        assert_eq!(reported, (&json!(false), &json!(code)), "{name}: {response}");
    }
    server.end();
}

#[test]
fn a_request_of_the_command_line_is_answered_the_same_alone_and_by_a_server() {
    let answers = |project: &Project| {
        let ask = |request: Value| {
            let seen = project.fed(&["request", "-", "--json"], request.to_string().as_bytes());
            let mut response: Value = serde_json::from_str(&seen.out).unwrap();
            let reported = response.as_object_mut().unwrap();
            for varying in
                ["request", "file", "time", "taskId", "interactionId", "digest", "setAside"]
            {
                reported.remove(varying);
            }
            (seen.code, seen.err, response)
        };
        [
            ask(json!({"action": "spawn_agent", "name": "echo", "profile": "native"})),
            ask(json!({"action": "spawn_agent", "name": "echo", "profile": "native"})),
            ask(json!({"action": "send", "name": "echo", "message": "hi"})),
            ask(json!({"action": "send", "name": "nobody", "message": "hi"})),
            ask(json!({"action": "invoke", "prompt": "hi", "model": "scripted/hello"})),
            ask(json!({"action": "stop_agent", "name": "echo"})),
            ask(json!({"action": "stop_agent"})),
        ]
    };
    let alone = Project::new();
    let expected = answers(&alone);
    assert_eq!(expected.each_ref().map(|(code, ..)| *code), [0, 0, 0, 2, 0, 0, 2], "{expected:#?}");
    assert_eq!(expected[1].2["status"], "already_running");
    let project = Project::new();
    let server = project.serve();
    assert_eq!(answers(&project), expected);
    server.end();
}

#[test]
fn an_agent_of_the_users_own_is_not_changed_from_a_project() {
    let project = Project::new();
    let own = project.home().join(".config/antiphon/agents");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("mine.md"), "Mine.\n").unwrap();
    let update = json!({"action": "update_agent_context", "name": "mine", "context": "Theirs."});
    let seen = project.fed(&["request", "-"], update.to_string().as_bytes());
    assert_eq!((seen.code, seen.out.as_str()), (3, ""), "{seen:?}");
    assert!(seen.err.contains("belongs to you, not to this project"), "{seen:?}");
    assert_eq!(fs::read_to_string(own.join("mine.md")).unwrap(), "Mine.\n");
}

#[test]
fn who_drops_a_file_cannot_pass_for_the_user() {
    let project = Project::new();
    let server = project.serve();
    let folder = requester(&project, "user");
    dropped(&folder, "a.json", &json!({"action": "send", "name": "echo", "message": "hi"}));
    let response = folder.join("a.response.json");
    let text = project.until("it is answered", |_| fs::read_to_string(&response).ok());
    let response: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(response["error"]["code"], "FORBIDDEN", "{response}");
    assert_eq!(project.antiphon(&["inbox", "list"]).out, "no queued interactions\n");
    server.end();
}

#[test]
fn a_profile_of_a_terminal_spawns_an_agent_in_one() {
    let project = Project::configured("[terminals.bash]\n");
    let server = project.serve();
    let spawn = json!({"action": "spawn_agent", "name": "shell", "profile": "bash"});
    let seen = project.fed(&["request", "-", "--json"], spawn.to_string().as_bytes());
    assert_eq!((seen.code, &seen.json()["status"]), (0, &json!("started")), "{seen:?}");
    let shown = project.antiphon(&["agents", "show", "shell", "--json"]).json();
    let terminal = json!([{"kind": "terminal", "config": {"profile": "bash"}}]);
    assert_eq!(shown["runtimes"], terminal);
    let stop = json!({"action": "stop_agent", "name": "shell"});
    let seen = project.fed(&["request", "-", "--json"], stop.to_string().as_bytes());
    assert_eq!((seen.code, &seen.json()["status"]), (0, &json!("stopped")), "{seen:?}");
    server.end();
}

/// Whether a control request of the command line was carried out, and the answer.
fn ask(project: &Project, request: &Value) -> (bool, Value) {
    let seen = project.fed(&["request", "-", "--json"], request.to_string().as_bytes());
    (seen.code == 0, seen.json())
}

fn agent_file(project: &Project, name: &str) -> PathBuf {
    project.path().join(format!(".antiphon/agents/{name}.md"))
}

#[test]
fn the_context_of_a_spawn_may_be_a_file_of_the_project() {
    let project = Project::with_model();
    let spawn = json!({"action": "spawn_agent", "name": "dev-backend", "profile": "Native",
        "context": "agents/dev-backend.md"});
    let (done, refused) = ask(&project, &spawn);
    assert_eq!((done, &refused["error"]["code"]), (false, &json!("INVALID_REQUEST")), "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("agents/dev-backend.md"));
    assert!(!agent_file(&project, "dev-backend").exists(), "nothing is left behind");
    fs::create_dir_all(project.path().join("agents")).unwrap();
    let file = "---\ntools: [bash]\n---\nYou build the back end.\n";
    fs::write(project.path().join("agents/dev-backend.md"), file).unwrap();
    let (done, started) = ask(&project, &spawn);
    assert_eq!((done, &started["status"]), (true, &json!("started")), "{started}");
    let shown = project.antiphon(&["agents", "show", "dev-backend", "--json"]).json();
    assert_eq!(shown["context"], "You build the back end.");
    assert_eq!(shown["tools"].get("wanted"), None, "a context gives no tools");
}

#[test]
fn a_spawn_that_is_refused_leaves_no_file_and_a_known_agent_keeps_its_profile() {
    let project = Project::configured("[terminals.bash]\n[terminals.ZSH]\ncommand = [\"zsh\"]\n");
    let server = project.serve();
    let spawn = |name: &str, profile: &str| json!({"action": "spawn_agent", "name": name, "profile": profile});
    // Without a model a native agent cannot start.
    let (done, refused) = ask(&project, &spawn("made", "native"));
    assert_eq!((done, &refused["error"]["code"]), (false, &json!("CONFLICT")), "{refused}");
    assert!(!agent_file(&project, "made").exists(), "nothing is left behind");
    for (name, profile) in [("Dev Backend", "bash"), ("Made", "bash"), ("status", "bash")] {
        let (_, refused) = ask(&project, &spawn(name, profile));
        assert_eq!(refused["error"]["code"], "INVALID_REQUEST", "{name}: {refused}");
        assert!(!agent_file(&project, name).exists());
        let made = project.antiphon(&["agents", "new", name]);
        assert_eq!(made.code, 2, "{name}: {made:?}");
    }
    let (done, started) = ask(&project, &spawn("shell", "BASH"));
    assert_eq!((done, &started["status"]), (true, &json!("started")), "{started}");
    let text = fs::read_to_string(agent_file(&project, "shell")).unwrap();
    assert!(text.contains(r#""profile":"bash""#), "{text}");
    for profile in ["native", "zsh"] {
        let (_, refused) = ask(&project, &spawn("shell", profile));
        assert_eq!(refused["error"]["code"], "CONFLICT", "{refused}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("`bash`"), "{message}");
    }
    let (done, again) = ask(&project, &spawn("shell", "Bash"));
    assert_eq!((done, &again["status"]), (true, &json!("already_running")), "{again}");
    server.end();
}

#[test]
fn an_agent_in_a_terminal_answers_requests_with_a_command_or_a_file() {
    let project = Project::configured("[terminals.bash]\n");
    let server = project.serve();
    let (done, started) =
        ask(&project, &json!({"action": "spawn_agent", "name": "shell", "profile": "bash"}));
    assert!(done, "{started}");
    let send = || {
        let sent = project.antiphon(&["send", "shell", "--request", "review", "--json"]).json();
        sent["id"].as_str().unwrap().to_owned()
    };
    let state = |id: &str| {
        let shown = project.antiphon(&["inbox", "show", id, "--json"]).json();
        (shown["state"].clone(), shown["result"].clone())
    };
    let first = send();
    for agent in ["echo", "quiet"] {
        let seen = project.antiphon(&["reply", &first, "mine", "--agent", agent]);
        assert_eq!(seen.code, 2, "only the agent that was asked answers: {seen:?}");
        assert!(seen.err.contains("no open request"), "{seen:?}");
    }
    assert_eq!(project.antiphon(&["reply", &first, "mine"]).code, 2, "an agent must be named");
    let seen = project.antiphon(&["reply", &first, "all good", "--agent", "shell"]);
    assert_eq!(seen.code, 0, "{seen:?}");
    assert_eq!(state(&first), (json!("completed"), json!("all good")));
    let again = project.antiphon(&["reply", &first, "all good", "--agent", "shell"]);
    assert_eq!(again.code, 0, "the same answer again: {again:?}");
    let other = project.antiphon(&["reply", &first, "no", "--agent", "shell"]);
    assert_eq!(other.code, 2, "a request has one answer: {other:?}");
    assert_eq!(state(&first), (json!("completed"), json!("all good")));
    let second = send();
    let folder = requester_folder(&project, "shell");
    let respond = json!({"action": "respond", "requestId": second, "status": "failed",
        "result": {"missing": "branch"}});
    dropped(&folder, "answer.json", &respond);
    let response = folder.join("answer.response.json");
    let text = project.until("it is answered", |_| fs::read_to_string(&response).ok());
    assert!(text.contains("\"answered\""), "{text}");
    assert_eq!(state(&second), (json!("failed"), json!({"missing": "branch"})));
    server.end();
}

fn requester_folder(project: &Project, name: &str) -> PathBuf {
    let folder = project.path().join(".antiphon/requests").join(name);
    if !folder.exists() {
        requester(project, name);
    }
    folder
}

/// Has an agent give a control order. Returns what its tool answered.
const LEADING: &str = r#"
name = "lead"
[[reply]]
when = { last_user_contains = "spawn", results_since_user = 0 }
steps = [{ call = { name = "control_request", arguments = { action = "spawn_agent", name = "helper", profile = "native", context = "You help." } } }]
[[reply]]
when = { last_user_contains = "stop", results_since_user = 0 }
steps = [{ call = { name = "control_request", arguments = { action = "stop_agent", name = "helper" } } }]
[[reply]]
when = { last_user_contains = "wrong", results_since_user = 0 }
steps = [{ call = { name = "control_request", arguments = { action = "send", name = "helper", message = "x" } } }]
[[reply]]
when = { last_user_contains = "n't" }
steps = [{ text = "ok" }]
[[reply]]
when = { results_since_user = 1 }
steps = [{ text = "{{last_result}}" }]
[[reply]]
steps = [{ text = "ok" }]
"#;

fn leading(config: &str) -> Project {
    let project =
        Project::configured(&format!("lead = \"scripts/lead.toml\"\n[terminals.bash]\n{config}"));
    let scripts = project.home().join(".config/antiphon/scripts");
    fs::write(scripts.join("lead.toml"), LEADING).unwrap();
    let file = project.home().join(".config/antiphon/config.toml");
    let text = format!("model = \"scripted/echo\"\n{}", fs::read_to_string(&file).unwrap());
    fs::write(&file, text).unwrap();
    for (name, tools) in [("lead", "tools: [control_request]\n"), ("plain", "")] {
        let text = format!(
            "---\ndescription: Leads.\nmodel: scripted/lead\n{tools}---\nYou are {name}.\n"
        );
        fs::create_dir_all(project.home().join(".config/antiphon/agents")).unwrap();
        fs::write(project.home().join(format!(".config/antiphon/agents/{name}.md")), text).unwrap();
    }
    project
}

fn control_order(project: &Project, agent: &str, what: &str) -> String {
    let seen = project.antiphon(&["send", agent, "--request", what, "--wait", "--json"]);
    seen.json()["result"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_native_agent_gives_control_orders_by_a_tool_that_its_file_names() {
    let project = leading("[permissions]\nallow = [\"control_request\"]\n");
    let server = project.serve();
    let spawned: Value = serde_json::from_str(&control_order(&project, "lead", "spawn")).unwrap();
    assert_eq!(
        (&spawned["ok"], &spawned["status"]),
        (&json!(true), &json!("started")),
        "{spawned}"
    );
    let shown = project.antiphon(&["agents", "show", "helper", "--json"]).json();
    let made = (&shown["context"], &shown["description"]);
    assert_eq!(made, (&json!("You help."), &json!("Spawned by lead.")));
    let stopped: Value = serde_json::from_str(&control_order(&project, "lead", "stop")).unwrap();
    assert_eq!(stopped["status"], "stopped", "{stopped}");
    let wrong = control_order(&project, "lead", "wrong");
    assert!(wrong.contains("unknown orchestrator action: send"), "{wrong}");
    let plain = control_order(&project, "plain", "spawn");
    assert!(plain.contains("there is no tool `control_request`"), "{plain}");
    server.end();
}

#[test]
fn an_agent_of_a_run_gives_control_orders_without_a_server() {
    let project = leading("[permissions]\nallow = [\"control_request\"]\n");
    let seen = project.antiphon(&["run", "--agent", "lead", "spawn a helper"]);
    assert_eq!(seen.code, 0, "{}", seen.err);
    assert!(seen.out.contains("\"status\":\"started\""), "{}", seen.out);
    assert!(agent_file(&project, "helper").exists());
}

#[test]
fn a_control_order_of_an_agent_is_asked_about() {
    let project = leading("");
    let server = project.serve();
    assert_eq!(project.antiphon(&["send", "lead", "--request", "spawn"]).code, 0);
    let asked = project.until("it is asked about", |project| {
        let asked = project.antiphon(&["approvals", "list", "--json"]).json();
        asked.as_array().and_then(|asked| asked.first().cloned())
    });
    assert_eq!(asked["tool_name"], "control_request", "{asked}");
    assert!(!agent_file(&project, "helper").exists(), "nothing happens before the answer");
    let id = asked["approval_id"].as_str().unwrap();
    assert_eq!(project.antiphon(&["approvals", "deny", id]).code, 0);
    project.caught_up("lead");
    assert!(!agent_file(&project, "helper").exists());
    server.end();
}

#[test]
fn a_request_waits_for_a_result_only_beside_a_server() {
    let project = Project::new();
    let invoke = json!({"action": "invoke", "prompt": "hi", "name": "echo", "wait": true});
    let alone = project.fed(&["request", "-"], invoke.to_string().as_bytes());
    assert_eq!((alone.code, alone.out.as_str()), (4, ""), "{alone:?}");
    assert!(alone.err.contains("start `antiphon serve`"), "{alone:?}");
    let server = project.serve();
    let done = project.fed(&["request", "-"], invoke.to_string().as_bytes());
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.starts_with("completed: echo, task ") && done.out.ends_with("Heard: hi\n"));
    server.end();
    for bad in ["", "[]", "{", "7", "{\"action\": \"a\"} x"] {
        let seen = project.fed(&["request", "-"], bad.as_bytes());
        assert_eq!((seen.code, seen.out.as_str()), (2, ""), "{bad}: {seen:?}");
    }
}

#[test]
fn requests_that_came_with_a_clone_are_answered_with_a_refusal() {
    let project = Project::new();
    for folder in [".antiphon/requests/evil", ".ideai/requests/evil"] {
        let folder = project.path().join(folder);
        fs::create_dir_all(&folder).unwrap();
        // As a clone leaves them.
        for opened in folder.ancestors().take(2) {
            fs::set_permissions(opened, fs::Permissions::from_mode(0o755)).unwrap();
        }
        dropped(
            &folder,
            "spawn.json",
            &json!({"action": "spawn_agent", "name": "echo",
            "profile": "native"}),
        );
    }
    let server = project.serve();
    assert_eq!(project.antiphon(&["send", "quiet", "hi"]).code, 0);
    project.caught_up("quiet");
    server.end();
    let status = project.antiphon(&["agents", "status", "--json"]).json();
    assert_eq!(status.as_array().unwrap().len(), 1, "{status}");
    for folder in [".antiphon", ".ideai"] {
        let response = project.path().join(folder).join("requests/evil/spawn.response.json");
        let response = fs::read_to_string(response).unwrap();
        assert!(response.contains("refused: not trusted. "), "{response}");
    }
}

#[test]
fn a_schedule_tells_its_agent_and_a_mistake_in_one_is_told_first() {
    let schedule =
        "[schedules.tick]\nagent = \"echo\"\nevery = \"1s\"\nbody = \"What time is it?\"\n";
    let project = Project::configured(schedule);
    let server = project.serve();
    assert!(server.said.contains("1 schedule;"), "{}", server.said);
    let said = project.until("it ticks twice", |project| {
        let ticking = state(&project.path()).join("schedules.json").exists();
        let started =
            ticking && !project.antiphon(&["agents", "status"]).out.starts_with("no live agents");
        let said = if started { project.said("echo") } else { Vec::new() };
        (said.len() >= 4).then_some(said)
    });
    assert_eq!(said[0].1, "[EVENT via tick] What time is it?");
    server.end();
    let bad = Project::configured("[schedules.tick]\nagent = \"echo\"\n");
    let seen = bad.antiphon(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(seen.code, 2, "{seen:?}");
    assert!(seen.err.contains("[schedules.tick]"), "{seen:?}");
}

#[test]
fn an_agent_hears_that_a_peer_of_its_is_no_longer_defined() {
    let project = Project::new();
    let server = project.serve();
    for agent in ["echo", "quiet"] {
        assert_eq!(project.antiphon(&["agents", "start", agent]).code, 0);
    }
    fs::remove_file(project.agents().join("quiet.md")).unwrap();
    let reported = project.until("it is told", |project| {
        let waiting = project.antiphon(&["inbox", "list", "echo", "--json"]).json();
        let rows = waiting.as_array().unwrap().iter();
        rows.map(|row| row["content"].clone())
            .find(|reported| reported["intent"] == "mob.peer_unwired")
    });
    assert_eq!(reported["params"], json!({"peer": "quiet"}));
    server.end();
}
