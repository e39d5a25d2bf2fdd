//! Tools, approvals, sessions, budgets and results, as a person meets them in the binary.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/project_folder.rs"]
mod project_folder;

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

use project_folder::{ProjectFolder, home, state};

const PUSHES: &str = r#"
name = "work"
[[reply]]
when = { turn = 0 }
step = [
    { text = "Pushing." },
    { call = { name = "bash", arguments = { command = "touch pushed; git push origin main" } } },
]
[[reply]]
step = [{ text = "{{last_result}}" }]
"#;

/// A project with a script, and a configuration that asks about pushing.
fn project(script: &str) -> ProjectFolder {
    let folder = ProjectFolder::new();
    fs::write(folder.path().join("work.toml"), script).unwrap();
    let config = "[permissions]\nask = [\"bash(git push *)\"]\n\
                  [models.\"scripted/work\"]\nprice = { input = 1.0, output = 1.0 }\n";
    fs::create_dir_all(home(folder.path()).join(".config/antiphon")).unwrap();
    fs::write(home(folder.path()).join(".config/antiphon/config.toml"), config).unwrap();
    folder
}

struct Seen {
    code: i32,
    out: String,
    err: String,
}

fn antiphon(folder: &Path, arguments: &[&str]) -> Seen {
    let mut command = Command::cargo_bin("antiphon").unwrap();
    let output = command
        .current_dir(folder)
        .env_clear()
        .env("HOME", home(folder))
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("ANTHROPIC_API_KEY", "sk-secret")
        .args(arguments)
        .timeout(std::time::Duration::from_secs(30))
        .output()
        .unwrap();
    Seen {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run(folder: &Path, more: &[&str]) -> Seen {
    let begin = ["run", "go", "--model", "scripted/work", "--script", "work.toml"];
    antiphon(folder, &[&begin, more].concat())
}

#[test]
fn tools_work_in_the_project_and_nowhere_else() {
    let script = r#"
name = "work"
[[reply]]
when = { turn = 0 }
step = [
    { call = { name = "bash", arguments = { command = "echo $ANTHROPIC_API_KEY; touch inside; touch ../outside; sed -n 'w .git/hook' work.toml; cat JOURNAL" } } },
    { call = { name = "write", arguments = { path = "made.txt", content = "made\n" } } },
    { call = { name = "write", arguments = { path = "../outside", content = "x" } } },
    { call = { name = "read", arguments = { path = "JOURNAL" } } },
]
[[reply]]
when = { turn = 1 }
step = [{ call = { name = "edit", arguments = { path = "made.txt", edits = [{ old = "made", new = "mended" }] } } }]
[[reply]]
step = [{ text = "Done." }]
"#;
    let folder = project(script);
    let inner = folder.path();
    fs::create_dir_all(inner.join(".git")).unwrap();
    let script = script.replace("JOURNAL", &state(inner).join("journal.db").display().to_string());
    fs::write(inner.join("work.toml"), script).unwrap();
    let mut command = Command::cargo_bin("antiphon").unwrap();
    let output = command
        .current_dir(inner)
        .env_clear()
        .env("HOME", home(inner))
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("ANTHROPIC_API_KEY", "sk-secret")
        .args(["run", "go", "--model", "scripted/work", "--script", "work.toml"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(inner.join("inside").exists());
    assert!(!inner.with_file_name("outside").exists());
    assert!(!inner.join(".git/hook").exists());
    assert_eq!(fs::read_to_string(inner.join("made.txt")).unwrap(), "mended\n");
    let shown = antiphon(inner, &["tasks", "show", "last"]);
    assert!(!shown.out.contains("sk-secret"), "{}", shown.out);
    assert!(!shown.out.contains("SQLite format"), "{}", shown.out);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(err.contains("-made\n+mended"), "the diff is shown: {err}");
    let diff = antiphon(inner, &["tasks", "diff"]);
    let expected = "--- /dev/null\n+++ made.txt\n@@ -0,0 +1 @@\n+made\n\
                    --- made.txt\n+++ made.txt\n@@ -1 +1 @@\n-made\n+mended\n";
    assert_eq!((diff.code, diff.out.as_str()), (0, expected), "{}", diff.err);
    assert!(diff.err.contains("2 changes") && diff.err.contains("commands"), "{}", diff.err);
    let diff = antiphon(inner, &["tasks", "diff", "last", "--below", "--json"]);
    let diff: Value = serde_json::from_str(&diff.out).unwrap();
    let paths: Vec<&Value> =
        diff["changes"].as_array().unwrap().iter().map(|change| &change["path"]).collect();
    assert_eq!(paths, ["made.txt", "made.txt"], "what was refused changed nothing");
}

#[test]
fn without_a_user_a_call_is_refused_and_the_rule_is_named() {
    let folder = project(PUSHES);
    let seen = run(folder.path(), &[]);
    assert_eq!(seen.code, 0, "{}", seen.err);
    assert!(seen.out.contains("bash(git push *)"), "{}", seen.out);
    assert!(!folder.path().join("pushed").exists());
}

#[test]
fn an_approval_waits_in_the_journal_until_a_user_answers() {
    let folder = project(PUSHES);
    let seen = run(folder.path(), &["--ask", "wait"]);
    assert_eq!(seen.code, 3, "{}", seen.err);
    assert!(seen.err.contains("antiphon approvals"), "{}", seen.err);
    let listed = antiphon(folder.path(), &["approvals", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(listed[0]["status"], "pending");
    assert_eq!(listed[0]["tool_name"], "bash");
    assert!(!folder.path().join("pushed").exists());
    let allowed = antiphon(folder.path(), &["approvals", "allow", "last"]);
    assert_eq!(allowed.code, 0, "{}", allowed.err);
    assert!(!folder.path().join("pushed").exists(), "allowing does not run it");
    let again = antiphon(folder.path(), &["approvals", "deny", "last"]);
    assert_eq!(again.code, 2, "{}", again.out);
    let resumed = antiphon(folder.path(), &["run", "--resume", "last"]);
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    assert!(folder.path().join("pushed").exists());
}

const ASKS: &str = r#"
name = "work"
[[reply]]
when = { turn = 0 }
step = [{ call = { name = "todo", arguments_json = '{"items":[{"text":"ask","status":"in_progress"}]}' } }]
[[reply]]
when = { turn = 1 }
step = [
    { call = { name = "ask_user", arguments_json = '''{"question":"Which\u001b[2J color?","choices":["Red","Blue"]}''' } },
]
[[reply]]
step = [{ text = "{{last_result}}" }]
"#;

#[test]
fn a_question_waits_in_the_journal_until_a_user_answers() {
    let folder = project(ASKS);
    let seen = run(folder.path(), &["--ask", "wait"]);
    assert_eq!(seen.code, 3, "{}", seen.err);
    assert!(seen.err.contains("0 of 1 done: ask"), "{}", seen.err);
    let listed = antiphon(folder.path(), &["approvals", "list"]).out;
    assert!(listed.contains(r"asks: Which\u{1b}[2J color?"), "{listed}");
    let shown = antiphon(folder.path(), &["approvals", "show", "last"]).out;
    assert!(shown.contains("  │ 2) Blue\nanswer: a number, your own answer"), "{shown}");
    let task = antiphon(folder.path(), &["tasks", "show", "last"]).out;
    assert!(task.contains("[~] ask"), "{task}");
    let missing = antiphon(folder.path(), &["approvals", "answer", "last"]);
    assert_eq!(missing.code, 2, "there is no default: {}", missing.out);
    let answered = antiphon(folder.path(), &["approvals", "answer", "last", "2"]);
    assert_eq!(answered.code, 0, "{}", answered.err);
    assert!(answered.out.starts_with("answered: "), "{}", answered.out);
    let resumed = antiphon(folder.path(), &["run", "--resume", "last"]);
    assert_eq!((resumed.code, resumed.out.trim()), (0, "The user chose: Blue"), "{}", resumed.err);
}

#[test]
fn without_a_user_a_question_is_for_the_model_to_decide() {
    let folder = project(ASKS);
    let seen = run(folder.path(), &[]);
    assert_eq!(seen.code, 0, "{}", seen.err);
    assert!(seen.out.contains("No person can be asked here."), "{}", seen.out);
}

const PLANS: &str = r#"
name = "work"
[[reply]]
when = { turn = 0 }
step = [{ call = { name = "write", arguments = { path = "early", content = "x" } } }]
[[reply]]
when = { turn = 1 }
step = [{ call = { name = "submit_plan", arguments = { plan = "1. Write a." } } }]
[[reply]]
when = { turn = 2 }
step = [{ call = { name = "write", arguments = { path = "late", content = "x" } } }]
[[reply]]
step = [{ text = "Done." }]
"#;

#[test]
fn a_task_that_plans_first_writes_nothing_before_its_plan_is_accepted() {
    let folder = project(PLANS);
    let rule = ["--plan", "--ask", "wait", "--allow", "write(**)", "--mode", "full"];
    let seen = run(folder.path(), &rule);
    assert_eq!(seen.code, 3, "{}", seen.err);
    assert!(!folder.path().join("early").exists(), "neither rule nor mode allows it");
    let shown = antiphon(folder.path(), &["tasks", "show", "last"]).out;
    assert!(shown.contains("plan, proposed\n  │ 1. Write a.\n"), "{shown}");
    fs::write(folder.path().join("changed.md"), "1. Write late.").unwrap();
    let accept = ["approvals", "allow", "last", "--plan", "changed.md"];
    let accepted = antiphon(folder.path(), &accept);
    assert_eq!(accepted.code, 0, "{}", accepted.err);
    let resumed = antiphon(folder.path(), &["run", "--resume", "last"]);
    assert_eq!((resumed.code, resumed.out.trim()), (0, "Done."), "{}", resumed.err);
    assert!(folder.path().join("late").exists() && !folder.path().join("early").exists());
    let shown = antiphon(folder.path(), &["tasks", "show", "last"]).out;
    assert!(shown.contains("plan, accepted\n  │ 1. Write late.\n"), "{shown}");
}

#[test]
fn what_is_allowed_always_is_kept_in_the_users_own_folder() {
    let folder = project(PUSHES);
    run(folder.path(), &["--ask", "wait"]);
    let allowed = antiphon(folder.path(), &["approvals", "allow", "--always", "last"]);
    assert_eq!(allowed.code, 0, "{}", allowed.err);
    let kept = home(folder.path()).join(".config/antiphon/permissions.toml");
    assert!(fs::read_to_string(kept).unwrap().contains("git push"));
    antiphon(folder.path(), &["run", "--resume", "last"]);
    let seen = run(folder.path(), &[]);
    assert!(!seen.out.contains("not allowed"), "{}", seen.out);
}

#[test]
fn a_denied_call_is_told_to_the_model() {
    let folder = project(PUSHES);
    run(folder.path(), &["--ask", "wait"]);
    let comment = ["approvals", "deny", "last", "--comment", "Use a branch."];
    assert_eq!(antiphon(folder.path(), &comment).code, 0);
    let resumed = antiphon(folder.path(), &["run", "--resume", "last"]);
    assert!(resumed.out.contains("Use a branch."), "{}", resumed.out);
}

#[test]
fn a_result_that_fits_its_schema_is_printed_alone() {
    let script = r#"
name = "work"
[[reply]]
when = { turn = 0 }
step = [{ text = "Let me think." }, { call = { name = "final", arguments_json = '{"result":{"n":"x"}}' } }]
[[reply]]
step = [{ call = { name = "final", arguments_json = '{"result":{"n":1}}' } }]
"#;
    let folder = project(script);
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    fs::write(folder.path().join("schema.json"), schema).unwrap();
    let seen = run(folder.path(), &["--output-schema", "schema.json"]);
    assert_eq!(seen.code, 0, "{}", seen.err);
    let result: Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(result, serde_json::json!({"n": 1}));
    fs::write(folder.path().join("bad.json"), r#"{"type":"nonsense"}"#).unwrap();
    let seen = run(folder.path(), &["--output-schema", "bad.json"]);
    assert_eq!(seen.code, 2, "{}", seen.err);
}

#[test]
fn a_budget_is_refused_when_it_is_spent() {
    let script = r#"
name = "work"
[[reply]]
step = [{ call = { name = "glob", arguments = { pattern = "*" } } }]
usage = { input_tokens = 1000, output_tokens = 1000 }
"#;
    let folder = project(script);
    let seen = run(folder.path(), &["--budget-usd", "0.005"]);
    assert_eq!(seen.code, 3, "{}", seen.err);
    assert!(seen.err.contains("$0.0050"), "{}", seen.err);
    for bad in ["0", "-1", "nan", "1e30"] {
        let bad = format!("--budget-usd={bad}");
        assert_eq!(run(folder.path(), &[&bad]).code, 2, "{bad}");
    }
}

#[test]
fn a_session_goes_on_forks_and_travels() {
    let script = "name = \"work\"\n[[reply]]\nstep = [{ text = \"{{turn}}\" }]\n";
    let folder = project(script);
    run(folder.path(), &[]);
    let more = ["run", "--session", "last", "more", "--script", "work.toml"];
    let seen = antiphon(folder.path(), &more);
    assert_eq!((seen.code, seen.out.trim()), (0, "1"), "{}", seen.err);
    let sessions = antiphon(folder.path(), &["sessions", "list", "--json"]);
    let sessions: Value = serde_json::from_str(&sessions.out).unwrap();
    assert_eq!(sessions[0]["tasks"], 2);
    assert_eq!(antiphon(folder.path(), &["sessions", "fork", "last"]).code, 0);
    let seen = antiphon(folder.path(), &more);
    assert_eq!(seen.out.trim(), "2", "a fork goes on from what was said: {}", seen.err);
    let out = folder.path().join("talk.json");
    let export = ["sessions", "export", "last", out.to_str().unwrap()];
    assert_eq!(antiphon(folder.path(), &export).code, 0);
    let other = project(script);
    let import = ["sessions", "import", out.to_str().unwrap()];
    let imported = antiphon(other.path(), &import);
    assert_eq!(imported.code, 0, "{}", imported.err);
    let seen = antiphon(other.path(), &[&more[..], &["--model", "scripted/work"]].concat());
    assert_eq!(seen.out.trim(), "3", "{}", seen.err);
    let again = antiphon(other.path(), &import);
    assert!(again.code == 2 && again.err.contains("fork it"), "{} {}", again.code, again.err);
}

#[test]
fn a_task_hears_what_was_said_while_it_rested() {
    let script = r#"
name = "work"
[[reply]]
when = { turn = 0 }
step = [{ call = { name = "bash", arguments = { command = "git push" } } }]
[[reply]]
step = [{ text = "Heard: {{last_user}}" }]
"#;
    let folder = project(script);
    run(folder.path(), &["--ask", "wait"]);
    let said = ["tasks", "send", "last", "--steer", "by the way"];
    assert_eq!(antiphon(folder.path(), &said).code, 0);
    antiphon(folder.path(), &["approvals", "deny", "last"]);
    let resumed = antiphon(folder.path(), &["run", "--resume", "last"]);
    assert!(resumed.out.contains("Heard: by the way"), "{} {}", resumed.out, resumed.err);
    let listed = antiphon(folder.path(), &["tasks", "list"]);
    assert!(listed.out.contains("completed"), "{}", listed.out);
    let gone = antiphon(folder.path(), &["tasks", "cancel", "last"]);
    assert_eq!(gone.code, 2, "{}", gone.out);
}

#[test]
fn rules_of_the_project_reach_the_model() {
    let folder = project("name = \"work\"\n[[reply]]\nstep = [{ text = \"ok\" }]\n");
    fs::write(folder.path().join("AGENTS.md"), "Never use tabs.").unwrap();
    run(folder.path(), &[]);
    let shown = antiphon(folder.path(), &["tasks", "show", "last"]);
    assert!(shown.out.contains("Never use tabs."), "{}", shown.out);
    run(folder.path(), &["--no-rules"]);
    let shown = antiphon(folder.path(), &["tasks", "show", "last"]);
    assert!(!shown.out.contains("Never use tabs."), "{}", shown.out);
}

/// The first column of a list, without its header.
fn first_column(list: &str) -> Vec<String> {
    list.lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_task_is_named_by_its_short_form_its_agent_or_last_wherever_a_task_is_named() {
    let folder =
        project("name = \"work\"\n[[reply]]\nstep = [{ text = \"Done with {{last_user}}\" }]\n");
    let inner = folder.path();
    for number in 1..=3 {
        let prompt = format!("prompt {number}");
        let ran =
            antiphon(inner, &["run", &prompt, "--model", "scripted/work", "--script", "work.toml"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
    let json = |arguments: &[&str]| -> Value {
        let seen = antiphon(inner, arguments);
        serde_json::from_str(&seen.out).unwrap_or_else(|_| panic!("{arguments:?}: {}", seen.err))
    };
    let whole = json(&["tasks", "list", "--json"]);
    let whole: Vec<&str> = (0..3).map(|n| whole[n]["task_id"].as_str().unwrap()).collect();
    let short = first_column(&antiphon(inner, &["tasks", "list"]).out);
    assert_eq!(short.len(), 3, "{short:?}");
    for (short, whole) in short.iter().zip(&whole) {
        assert!(short.len() == 8 && whole[24..].starts_with(short.as_str()), "{short} of {whole}");
        assert_eq!(json(&["tasks", "show", short, "--json"])["task_id"], *whole);
        assert_eq!(json(&["tasks", "tree", short, "--json"])["task_id"], *whole);
        assert_eq!(antiphon(inner, &["tasks", "diff", short]).code, 0);
        // A part of the short form that no other task shares does, too.
        assert_eq!(json(&["tasks", "show", &short[..6], "--json"])["task_id"], *whole);
    }
    let older = json(&["tasks", "list", "--json", "--cursor", &short[0]]);
    assert_eq!((older[0]["task_id"].as_str(), older[2].as_object()), (Some(whole[1]), None));
    let ids = antiphon(inner, &["tasks", "tree", &short[1], "--ids"]).out;
    assert!(ids.contains(&short[1]) && !ids.contains(whole[1]), "{ids}");
    // The first digits are the time, which the three may share.
    let time = antiphon(inner, &["tasks", "show", &whole[0][..4]]);
    assert_eq!(time.code, 2, "{}", time.out);
    assert!(time.err.contains("more than one task begins with"), "{}", time.err);
    assert_eq!(json(&["tasks", "show", "last", "--json"])["task_id"], whole[0]);
    assert_eq!(json(&["tasks", "show", "default", "--json"])["task_id"], whole[0]);
    let none = antiphon(inner, &["tasks", "show", "zzzz"]);
    assert!(none.code == 2 && none.err.contains("there is no task `zzzz` here"), "{}", none.err);
}

#[test]
fn resuming_when_everything_has_ended_says_so() {
    let folder = project("name = \"work\"\n[[reply]]\nstep = [{ text = \"Done.\" }]\n");
    let inner = folder.path();
    assert_eq!(run(inner, &[]).code, 0);
    for resume in [&["run", "--resume", "last"][..], &["tasks", "resume", "last"]] {
        let seen = antiphon(inner, resume);
        assert_eq!(seen.code, 2, "{resume:?}: {}", seen.err);
        assert!(seen.err.contains("there is no unfinished task here"), "{}", seen.err);
        assert!(seen.err.contains("antiphon run --session last"), "{}", seen.err);
    }
    for resume in [&["run", "--resume", "default"][..], &["tasks", "resume", "default"]] {
        let seen = antiphon(inner, resume);
        assert_eq!(seen.code, 2, "{resume:?}: {}", seen.err);
        let no_unfinished = "agent `default` has no unfinished task: its last one, ";
        assert!(seen.err.contains(no_unfinished), "{}", seen.err);
        assert!(seen.err.contains("is completed"), "{}", seen.err);
    }
}

#[test]
fn an_imported_session_keeps_its_times_and_a_bad_file_is_named() {
    let folder = project(PUSHES);
    let inner = folder.path();
    let file = |messages: &str| {
        format!(
            r#"{{"version":1,"id":"talk","system_prompt":"","created_at":"2025-01-02T03:04:05Z",
            "updated_at":"2025-02-03T04:05:06.007Z","messages":{messages}}}"#
        )
    };
    let user = r#"[{"type":"user","content":[{"type":"text","text":"Hi"}],"timestamp":"2025-01-02T03:04:05Z"}]"#;
    let import = |text: &str| {
        fs::write(inner.join("talk.json"), text).unwrap();
        antiphon(inner, &["sessions", "import", "talk.json"])
    };
    for (text, reason) in [
        ("[]".to_owned(), "not a session file: it is a list"),
        ("[1]".to_owned(), "not a session file: it is a list"),
        ("\"x\"".to_owned(), "not a session file: it is a text"),
        (file(r#"[{"type":"robot"}]"#), "messages[0]: unknown message type `robot`"),
        (file(r#"[{"type":"user"}]"#), "messages[0]: missing field `content`"),
    ] {
        let refused = import(&text);
        assert_eq!(refused.code, 2, "{text}: {}", refused.out);
        assert!(refused.err.contains(reason), "{text}: {}", refused.err);
    }
    assert_eq!(import(&file(user)).code, 0);
    let exported: Value =
        serde_json::from_str(&antiphon(inner, &["sessions", "export", "talk"]).out).unwrap();
    let listed: Value =
        serde_json::from_str(&antiphon(inner, &["sessions", "list", "--json"]).out).unwrap();
    for session in [&exported, &listed[0]] {
        assert_eq!(session["created_at"], "2025-01-02T03:04:05Z", "{session}");
        assert_eq!(session["updated_at"], "2025-02-03T04:05:06.007Z", "{session}");
    }
}
