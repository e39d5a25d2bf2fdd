//! The binary as a person meets it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/project_folder.rs"]
mod project_folder;

use std::fs;
use std::path::Path;

use assert_cmd::Command;

use project_folder::{ProjectFolder, home};

fn antiphon(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("antiphon").unwrap();
    command
        .current_dir(folder)
        .env_clear()
        .env("HOME", home(folder))
        .timeout(std::time::Duration::from_secs(20));
    command
}

struct Seen {
    code: i32,
    out: String,
    err: String,
}

fn seen(command: &mut Command) -> Seen {
    let output = command.output().unwrap();
    Seen {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn folder() -> ProjectFolder {
    ProjectFolder::new()
}

#[test]
fn a_prompt_is_answered_on_standard_output() {
    let folder = folder();
    let seen = seen(antiphon(folder.path()).args(["run", "what is this?"]));
    assert_eq!((seen.code, seen.err.as_str()), (0, ""));
    assert!(seen.out.contains("You wrote: what is this?"), "{}", seen.out);
}

#[test]
fn a_prompt_may_come_from_standard_input() {
    let folder = folder();
    let seen = seen(antiphon(folder.path()).args(["run"]).write_stdin("from a pipe"));
    assert!(seen.out.contains("You wrote: from a pipe"), "{}", seen.out);
}

#[test]
fn a_conversation_goes_on_from_its_file() {
    let folder = folder();
    let save = ["run", "--save", "talk.json", "--system", "Be brief.", "one"];
    assert_eq!(seen(antiphon(folder.path()).args(save)).code, 0);
    let first = seen(antiphon(folder.path()).args(["sessions", "show", "talk.json"]));
    let more = ["run", "--session", "talk.json", "two"];
    assert_eq!(seen(antiphon(folder.path()).args(more)).code, 0);
    let show = seen(antiphon(folder.path()).args(["sessions", "show", "talk.json"]));
    let id = |text: &str| text.split([' ', ',']).nth(1).unwrap().to_owned();
    assert_eq!(id(&show.out), id(&first.out), "it is the same conversation");
    for part in ["4 messages", "── system\nBe brief.", "── user\none", "── user\ntwo"] {
        assert!(show.out.contains(part), "{part}: {}", show.out);
    }
    let json = seen(antiphon(folder.path()).args(["sessions", "show", "--json", "talk.json"]));
    assert_eq!(json.out, fs::read_to_string(folder.path().join("talk.json")).unwrap());
}

#[test]
fn a_conversation_that_goes_on_from_its_file_keeps_when_it_began() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    assert_eq!(seen(antiphon(folder.path()).args(["run", "--save", "old.json", "one"])).code, 0);
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(path(name)).unwrap()).unwrap()
    };
    let mut old = read("old.json");
    old["created_at"] = "2020-02-02T02:02:02Z".into();
    fs::write(path("old.json"), old.to_string()).unwrap();
    for more in ["two", "three"] {
        let run = ["run", "--session", "old.json", more];
        assert_eq!(seen(antiphon(folder.path()).args(run)).code, 0);
        assert_eq!(read("old.json")["created_at"], "2020-02-02T02:02:02Z", "{more}");
    }
}

#[test]
fn bad_input_is_exit_code_2_and_says_what_to_do() {
    let folder = folder();
    fs::write(folder.path().join("bad.json"), r#"{"version": 9}"#).unwrap();
    fs::write(folder.path().join("bad.toml"), "name = 3").unwrap();
    let cases: [(&[&str], &str); 8] = [
        (&["run", " "], "the prompt is empty"),
        (&["run", "--model", "nope", "x"], "write PROVIDER/MODEL"),
        (&["run", "--model", "scripted/nope", "x"], "there is no built-in script `nope`"),
        (&["run", "--session", "none.json", "x"], "cannot read none.json"),
        (&["run", "--session", "bad.json", "x"], "bad.json: session file version 9"),
        (&["run", "--script", "bad.toml", "--model", "scripted/x", "x"], "bad.toml: line 1"),
        (&["sessions", "show", "."], ". is not a file"),
        (&["frobnicate"], "unrecognized subcommand"),
    ];
    for (arguments, expected) in cases {
        let seen = seen(antiphon(folder.path()).args(arguments).write_stdin(""));
        assert_eq!(seen.code, 2, "{arguments:?}: {}", seen.err);
        assert!(seen.err.contains(expected), "{arguments:?}: {}", seen.err);
    }
}

#[test]
fn a_model_that_fails_is_told_from_one_that_is_away() {
    let folder = folder();
    let script = |error: &str| {
        format!(
            "name = \"x\"\n[[reply]]\nstep = [{{ error = {{ kind = \"{error}\", message = \"m\" }} }}]\n"
        )
    };
    let run = ["run", "--retries", "0", "--model", "scripted/x", "--script", "x.toml", "hi"];
    fs::write(folder.path().join("x.toml"), script("authentication")).unwrap();
    assert_eq!(seen(antiphon(folder.path()).args(run)).code, 1);
    for error in ["overloaded", "connection"] {
        fs::write(folder.path().join("x.toml"), script(error)).unwrap();
        let seen = seen(antiphon(folder.path()).args(run).args(["--max-seconds", "1"]));
        assert_eq!(seen.code, 3, "{error}: {}", seen.err);
        assert!(seen.err.contains("waits for its model: the provider "), "{}", seen.err);
        assert!(seen.err.contains("(attempt 1 failed, the next is "), "{}", seen.err);
        assert!(seen.err.contains("may take 1 second; it waited for its model"), "{}", seen.err);
    }
}

#[test]
fn what_there_was_of_a_broken_answer_is_saved() {
    let folder = folder();
    let script = "name = \"x\"\n[[reply]]\nstep = [{ text = \"half\" }, { cut = true }]\n";
    fs::write(folder.path().join("x.toml"), script).unwrap();
    let run = ["run", "--model", "scripted/x", "--script", "x.toml", "--save", "s.json", "hi"];
    let run = seen(antiphon(folder.path()).args(run).args(["--max-seconds", "1"]));
    assert_eq!(run.code, 3, "{}", run.err);
    assert_eq!(run.out.lines().nth(1), Some("[The answer broke off here. It begins again.]"));
    let show = seen(antiphon(folder.path()).args(["sessions", "show", "--json", "s.json"]));
    let session: serde_json::Value = serde_json::from_str(&show.out).unwrap();
    assert_eq!(session["messages"][1]["content"][0]["text"], "half");
    assert_eq!(session["messages"][1]["stop_reason"], "error");
}

#[test]
fn a_recorded_answer_is_replayed_without_its_model() {
    let folder = folder();
    let script = "name = \"x\"\n[[reply]]\nstep = [{ text = \"from the model\" }]\n";
    fs::write(folder.path().join("x.toml"), script).unwrap();
    let record =
        ["run", "--model", "scripted/x", "--script", "x.toml", "--record", "r.jsonl", "hi"];
    let recorded = seen(antiphon(folder.path()).args(record));
    assert_eq!((recorded.code, recorded.out.as_str()), (0, "from the model\n"));
    let replay = ["run", "--model", "anthropic/x", "--replay", "r.jsonl"];
    let requested = |prompt: &str| {
        let mut command = antiphon(folder.path());
        seen(command.args(replay).arg(prompt))
    };
    let model = fs::read_to_string(folder.path().join("r.jsonl")).unwrap();
    assert!(model.contains("from the model"));
    let replayed = requested("hi");
    assert_eq!((replayed.code, replayed.out.as_str()), (0, "from the model\n"), "{}", replayed.err);
    let other = requested("ho");
    assert_eq!(other.code, 1);
    assert!(other.err.contains(r#"recorded "hi", asked "ho""#), "{}", other.err);
}

#[test]
fn links_in_a_clone_lead_nowhere() {
    let folder = folder();
    let (project, precious) = (folder.path(), folder.path().with_file_name("precious"));
    fs::create_dir_all(project.join(".antiphon")).unwrap();
    fs::write(&precious, "precious").unwrap();
    for name in ["journal.db.lock", "journal.db", "token", "mcp-tools.json", "results"] {
        let link = project.join(".antiphon").join(name);
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        let seen = seen(antiphon(project).args(["run", "hi"]));
        assert_eq!(seen.code, 0, "{}", seen.err);
        fs::remove_file(link).unwrap();
    }
    fs::remove_dir_all(project.join(".antiphon")).unwrap();
    let elsewhere = home(project).join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, project.join(".antiphon")).unwrap();
    let seen = seen(antiphon(project).args(["agents", "new", "x", "--description", "X."]));
    assert_eq!(seen.code, 2, "{}", seen.err);
    assert!(seen.err.contains("it is not a folder"), "{}", seen.err);
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(precious).unwrap(), "precious");
}

#[test]
fn a_key_in_a_configuration_with_a_mistake_is_not_printed() {
    let folder = folder();
    let cases = [
        "[providers.x]\nkind = \"openai\"\napi_key = sk-secret123",
        "[providers.x]\nkind = \"openai\"\napikey = \"sk-secret123\"",
    ];
    for config in cases {
        fs::write(folder.path().join("c.toml"), config).unwrap();
        let seen = seen(antiphon(folder.path()).env("ANTIPHON_CONFIG", "c.toml").arg("doctor"));
        assert_eq!(seen.code, 2);
        assert!(seen.err.contains("c.toml: line 3"), "{}", seen.err);
        assert!(!seen.err.contains("secret"), "{}", seen.err);
    }
}

#[test]
fn only_a_session_file_is_saved_over() {
    let folder = folder();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    std::os::unix::fs::symlink("notes.txt", folder.path().join("link")).unwrap();
    for path in ["notes.txt", "link", "."] {
        let seen = seen(antiphon(folder.path()).args(["run", "--save", path, "hi"]));
        assert_eq!((seen.code, seen.out.as_str()), (2, ""), "{path}: {}", seen.err);
        assert!(seen.err.contains("is not a session file"), "{}", seen.err);
    }
    assert_eq!(fs::read_to_string(folder.path().join("notes.txt")).unwrap(), "mine");
    for _ in 0..2 {
        assert_eq!(seen(antiphon(folder.path()).args(["run", "--save", "s.json", "hi"])).code, 0);
    }
}

#[test]
fn a_project_is_never_taken_for_the_users_own_configuration() {
    let folder = folder();
    fs::create_dir(folder.path().join("antiphon")).unwrap();
    let config =
        "[providers.anthropic]\nkind = \"anthropic\"\nbase_url = \"http://thief.invalid\"\n";
    fs::write(folder.path().join("antiphon/config.toml"), config).unwrap();
    for home in [None, Some("."), Some("")] {
        let mut command = antiphon(folder.path());
        if let Some(home) = home {
            command.env("HOME", home).env("XDG_CONFIG_HOME", home);
            command.env("XDG_STATE_HOME", crate::home(folder.path()));
        }
        let seen = seen(command.args(["doctor"]));
        assert!(!seen.out.contains("thief"), "{home:?}: {}", seen.out);
    }
}
