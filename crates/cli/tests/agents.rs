//! `antiphon agents` as a person meets it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A project, and a user's configuration beside it.
struct RuntimeDeps {
    folder: TempDir,
}

struct Seen {
    code: i32,
    out: String,
    err: String,
}

impl RuntimeDeps {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for path in ["project/.antiphon/agents", "config/antiphon/agents"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        Self { folder }
    }

    fn path(&self, path: &str) -> PathBuf {
        // As the program sees it.
        fs::canonicalize(self.folder.path()).unwrap().join(path)
    }

    fn project(&self, name: &str) -> PathBuf {
        self.path("project/.antiphon/agents").join(name)
    }

    fn user(&self, name: &str) -> PathBuf {
        self.path("config/antiphon/agents").join(name)
    }

    fn antiphon(&self, arguments: &[&str]) -> Seen {
        let mut command = Command::cargo_bin("antiphon").unwrap();
        command
            .args(arguments)
            .current_dir(self.path("project"))
            .env_clear()
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("ANTIPHON_MODEL", "scripted/hello")
            .env("XDG_STATE_HOME", self.path("state"))
            .timeout(std::time::Duration::from_secs(20));
        let output = command.output().unwrap();
        Seen {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The user made what is in the project.
    fn trust(&self) {
        assert_eq!(self.antiphon(&["trust", "--yes"]).code, 0);
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let seen = self.antiphon(arguments);
        assert_eq!(seen.code, 0, "{}", seen.err);
        serde_json::from_str(&seen.out).unwrap()
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

const REVIEWER: &str = "\
---
description: |
  Reviews a change.
  Thoroughly.
model: [anthropic/claude-sonnet-4-5, openai/gpt-5]
tools: read, grep, frobnicate
agents: [tester]
runtimes:
  - sandbox
  - kind: loopback
    config: {peer: office}
limits: {turns: 20, cost_usd: 0.5}
silent_intents: [ping]
output_schema: {type: object}
---
You review changes.
";

#[test]
fn agents_are_listed_with_where_they_are_from_and_what_is_wrong() {
    let world = RuntimeDeps::new();
    write(&world.project("reviewer.md"), "Evil.");
    write(&world.user("reviewer.md"), REVIEWER);
    write(&world.user("scribe.md"), "# Writes things down\n\nYou write.");
    write(&world.project("bad.md"), "---\ndescription: d\nmodle: a/b\n---\nx");
    world.trust();
    let list = world.antiphon(&["agents", "list"]);
    assert_eq!((list.code, list.err.as_str()), (0, ""));
    let lines: Vec<&str> = list.out.lines().collect();
    assert!(lines[0].starts_with("AGENT     MODEL "), "{}", list.out);
    assert!(
        lines[1].starts_with("reviewer  anthropic/claude-sonnet-4-5  user, shadows the project's")
    );
    assert!(lines[1].ends_with("  Reviews a change."), "{}", lines[1]);
    assert!(lines[2].contains("scribe    the caller's") && lines[2].ends_with("things down"));
    let problem =
        format!("problem: {}:3: there is no field `modle`", world.project("bad.md").display());
    assert!(lines[3].starts_with(&problem), "{}", lines[3]);
    assert_eq!(lines.len(), 4);

    let json = world.json(&["agents", "list", "--json"]);
    assert_eq!(json["agents"][0]["name"], "reviewer");
    assert_eq!(json["agents"][0]["origin"], "user");
    assert_eq!(json["agents"][0]["fallbacks"][0], "openai/gpt-5");
    assert_eq!(json["agents"][0]["shadows"][0], world.project("reviewer.md").to_str().unwrap());
    assert_eq!(json["agents"][1]["path"], world.user("scribe.md").to_str().unwrap());
    assert_eq!(json["agents"].as_array().unwrap().len(), 2);
    assert_eq!(json["problems"][0]["line"], 3);
}

#[test]
fn one_agent_is_shown_with_everything_about_it() {
    let world = RuntimeDeps::new();
    write(&world.project("reviewer.md"), REVIEWER);
    write(&world.project("plain.md"), "You work.");
    world.trust();
    let shown = world.antiphon(&["agents", "show", "reviewer"]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    for part in [
        "Reviews a change.\nThoroughly.\n",
        &format!("{} (project)", world.project("reviewer.md").display()),
        "anthropic/claude-sonnet-4-5, openai/gpt-5\n",
        "read, grep; not available: frobnicate\n",
        "tester\n",
        "sandbox, loopback {\"peer\":\"office\"}\n",
        "20 turns, $0.5000 in total\n",
        "ping\n",
        "{\"type\":\"object\"}\n",
        "\nYou review changes.\n",
    ] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    let json = world.json(&["agents", "show", "reviewer", "--json"]);
    assert_eq!(json["tools"]["here"], serde_json::json!(["read", "grep"]));
    assert_eq!(json["tools"]["missing"], serde_json::json!(["frobnicate"]));
    assert_eq!(json["agents"], serde_json::json!({"only": ["tester"]}));
    assert_eq!(json["limits"]["turns_max"], 20);
    assert_eq!(json["runtimes"][1]["config"]["peer"], "office");
    assert_eq!(json["context"], "You review changes.");
    let plain = world.json(&["agents", "show", "plain", "--json"]);
    let here = plain["tools"]["here"].as_array().unwrap();
    assert!(here.contains(&Value::from("write")), "{plain}");
}

#[test]
fn what_cannot_be_shown_is_exit_code_2_and_says_why() {
    let world = RuntimeDeps::new();
    let none = world.antiphon(&["agents", "show", "reviewer"]);
    assert_eq!(none.code, 2);
    assert!(none.err.contains("create one with `antiphon agents new NAME`"), "{}", none.err);
    write(&world.project("good.md"), "You work.");
    write(&world.user("bad.md"), "---\n\nlimits: {turns: 0}\n---\nx");
    write(&world.project("bad.md"), "Theirs.");
    world.trust();
    let bad = world.antiphon(&["agents", "show", "bad"]);
    assert_eq!((bad.code, bad.out.as_str()), (2, ""));
    let place = format!("{}:3: `turns` takes", world.user("bad.md").display());
    assert!(bad.err.contains(&place), "{}", bad.err);
    let other = world.antiphon(&["agents", "show", "nobody"]);
    assert_eq!(other.code, 2);
    assert!(other.err.contains("there is no agent `nobody`; available: good"), "{}", other.err);
}

#[test]
fn a_new_agent_is_there_at_once_and_never_written_over() {
    let world = RuntimeDeps::new();
    fs::remove_dir_all(world.path("project/.antiphon")).unwrap();
    fs::remove_dir_all(world.path("config/antiphon")).unwrap();
    let new =
        ["agents", "new", "reviewer", "--description", "Reviews: everything.", "--model", "a/b"];
    let made = world.antiphon(&new);
    assert_eq!((made.code, made.err.as_str()), (0, ""));
    assert_eq!(made.out, format!("{}\n", world.project("reviewer.md").display()));
    let mine = world.antiphon(&["agents", "new", "scribe", "--user"]);
    assert_eq!(mine.out, format!("{}\n", world.user("scribe.md").display()));
    let json = world.json(&["agents", "list", "--json"]);
    assert_eq!(json["problems"], serde_json::json!([]));
    assert_eq!(json["agents"][0]["description"], "Reviews: everything.");
    assert_eq!(json["agents"][0]["model"], "a/b");
    assert_eq!(json["agents"][1]["origin"], "user");
    let before = fs::read_to_string(world.project("reviewer.md")).unwrap();
    let again = world.antiphon(&["agents", "new", "reviewer"]);
    assert_eq!(again.code, 2);
    assert!(again.err.contains("reviewer.md exists already"), "{}", again.err);
    assert_eq!(fs::read_to_string(world.project("reviewer.md")).unwrap(), before);
    for name in ["user", "../x", "a/b", "Bad Name", "Reviewer", "two words"] {
        assert_eq!(world.antiphon(&["agents", "new", name]).code, 2, "{name}");
    }
    let bad = world.antiphon(&["agents", "new", "Bad Name"]).err;
    assert!(bad.contains("no spaces: use `bad-name`"), "{bad}");
    let unknown = "there is no agent `nobody`; available: reviewer, scribe";
    for order in [
        &["run", "--agent", "nobody", "hello"][..],
        &["send", "nobody", "hello"],
        &["agents", "start", "nobody"],
        &["agents", "stop", "nobody"],
        &["agents", "show", "nobody"],
    ] {
        let seen = world.antiphon(order);
        assert_eq!((seen.code, seen.err), (2, format!("antiphon: {unknown}\n")), "{order:?}");
    }
}

#[test]
fn live_agents_are_those_whose_task_has_not_ended() {
    let world = RuntimeDeps::new();
    assert_eq!(world.antiphon(&["agents", "status"]).code, 2, "nothing was ever done here");
    assert_eq!(world.antiphon(&["run", "hello"]).code, 0);
    let rest = world.antiphon(&["agents", "status"]);
    assert_eq!((rest.code, rest.out.as_str()), (0, "no live agents\n"));
    write(&world.path("config/antiphon/config.toml"), "[permissions]\nask = [\"glob\"]\n");
    let script = "name = \"x\"\n[[reply]]\n\
                  step = [{ call = { name = \"glob\", arguments = { pattern = \"*\" } } }]\n";
    write(&world.path("project/x.toml"), script);
    let waiting = ["run", "--ask", "wait", "--model", "scripted/x", "--script", "x.toml", "go"];
    let waiting = world.antiphon(&waiting);
    assert_eq!(waiting.code, 3, "it waits for an answer: {}", waiting.err);
    let live = world.json(&["agents", "status", "--json"]);
    let live = live.as_array().unwrap();
    assert_eq!(live.len(), 1, "{live:?}");
    for field in ["agent", "task_id", "id", "state", "last_activity", "messages_processed"] {
        assert!(live[0].get(field).is_some(), "{field}: {live:?}");
    }
    let table = world.antiphon(&["agents", "status"]);
    let short = &live[0]["task_id"].as_str().unwrap()[24..32];
    assert!(table.out.contains(short), "{}", table.out);
}
