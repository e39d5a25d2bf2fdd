//! What a server does beside its connection, through the real binary: requests that are dropped as files,
//! schedules, and agents that are no longer defined.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::project::{Project, dropped};

/// A requester's private folder.
pub(crate) fn requester(project: &Project, name: &str) -> PathBuf {
    let folder = project.path().join(".antiphon/requests").join(name);
    project.until("the folder of requests is there", |_| fs::create_dir(&folder).ok());
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

/// Drops a request by hand, and waits for its response.
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
            ask(json!({"action": "invoke", "prompt": "hi"})),
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
fn requests_that_came_with_a_clone_are_left_alone() {
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
        assert!(!response.exists());
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
        let ticking = project.path().join(".antiphon/schedules.json").exists();
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
