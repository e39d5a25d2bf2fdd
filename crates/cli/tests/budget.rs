//! Usage, budgets and lists, as a person meets them in the binary.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/project_folder.rs"]
mod project_folder;

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

use project_folder::{ProjectFolder, home};

/// Two answers, of two tenths of a cent each.
const TWO: &str = r#"
name = "work"
[[reply]]
when = { turn = 0 }
step = [{ call = { name = "glob", arguments = { pattern = "*" } } }]
usage = { input_tokens = 1000, output_tokens = 1000 }
[[reply]]
step = [{ text = "Done." }]
usage = { input_tokens = 1000, output_tokens = 1000 }
"#;

fn project(budget: &str) -> ProjectFolder {
    let folder = ProjectFolder::new();
    fs::write(folder.path().join("work.toml"), TWO).unwrap();
    let config =
        format!("{budget}\n[models.\"scripted/work\"]\nprice = {{ input = 1.0, output = 1.0 }}\n");
    fs::create_dir_all(home(folder.path()).join(".config/antiphon")).unwrap();
    fs::write(home(folder.path()).join(".config/antiphon/config.toml"), config).unwrap();
    folder
}

struct Seen {
    code: i32,
    out: String,
    err: String,
}

impl Seen {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

fn antiphon(folder: &Path, arguments: &[&str]) -> Seen {
    let mut command = Command::cargo_bin("antiphon").unwrap();
    let output = command
        .current_dir(folder)
        .env_clear()
        .env("HOME", home(folder))
        .env("PATH", std::env::var_os("PATH").unwrap())
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
fn a_task_waits_for_the_budget_and_goes_on_when_more_is_allowed() {
    let folder = project("[budget]\ndaily_usd = 0.002");
    let folder = folder.path();
    let seen = run(folder, &[]);
    assert_eq!(seen.code, 3, "{}", seen.err);
    assert!(seen.err.contains("the budget is spent: $0.0020 of $0.0020"), "{}", seen.err);
    assert!(seen.err.contains("antiphon budget allow USD"), "{}", seen.err);
    let seen = antiphon(folder, &["tasks", "resume", "last"]);
    assert_eq!(seen.code, 3, "{}", seen.err);
    let seen = antiphon(folder, &["approvals", "list"]);
    assert!(seen.err.contains("1 task waiting for it"), "{}", seen.err);
    let shown = antiphon(folder, &["budget", "show"]);
    assert!(shown.out.contains("1 task waiting for budget"), "{}", shown.out);
    let listed = antiphon(folder, &["tasks", "list"]);
    assert!(listed.out.contains("budget"), "{}", listed.out);

    for bad in ["0", "-1", "nan", "1e30"] {
        assert_eq!(antiphon(folder, &["budget", "allow", "--", bad]).code, 2, "{bad}");
    }
    let none = antiphon(folder, &["budget", "allow", "1", "--key", "tR7xQ2pL"]);
    assert_eq!(none.code, 2, "{}", none.err);
    let seen = antiphon(folder, &["budget", "allow", "1", "--comment", "go on"]);
    assert_eq!(seen.code, 0, "{}", seen.err);
    let shown = antiphon(folder, &["budget", "show", "--json"]).json();
    assert_eq!(shown["total"]["day"]["limit_nano_usd"], 1_002_000_000);
    let seen = antiphon(folder, &["run", "--resume", "last"]);
    assert_eq!((seen.code, seen.out.trim()), (0, "Done."), "{}", seen.err);
    // What is kept of the order is not among the tasks.
    let listed = antiphon(folder, &["tasks", "list", "--json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
}

#[test]
fn usage_is_told_in_tokens_and_money() {
    let folder = project("");
    let folder = folder.path();
    assert_eq!(run(folder, &[]).code, 0);
    let reported = antiphon(folder, &["usage", "--by", "model,agent,payer", "--json"]).json();
    let row = &reported["rows"][0];
    assert_eq!((&row["model"], &row["calls"]), (&"scripted/work".into(), &2.into()));
    assert_eq!((&row["cost_nano_usd"], &row["payer"]), (&4_000_000.into(), &Value::Null));
    assert_eq!(reported["totals"]["input_tokens"], 2000);
    let table = antiphon(folder, &["usage", "--by", "payer"]).out;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(lines[0].starts_with("PAYER") && lines[1].starts_with("owner"), "{table}");
    assert!(lines[2].ends_with("$0.0040"), "{table}");
    let nothing = antiphon(folder, &["usage", "--from", "2020-01-01", "--to", "2020-01-02"]);
    assert_eq!(nothing.out, "nothing was spent from 2020-01-01 to 2020-01-02\n");
    for bad in [&["--by", "weather"][..], &["--from", "soon"], &["--from", "2999-01-01"]] {
        assert_eq!(antiphon(folder, &[&["usage"], bad].concat()).code, 2, "{bad:?}");
    }
}

#[test]
fn tasks_are_listed_by_status_and_agent_and_page_by_page() {
    let folder = project("");
    let folder = folder.path();
    for _ in 0..3 {
        assert_eq!(run(folder, &[]).code, 0);
    }
    let ids = |more: &[&str]| -> Vec<String> {
        let seen = antiphon(folder, &[&["tasks", "list", "--json"], more].concat());
        assert_eq!(seen.code, 0, "{}", seen.err);
        let ids = seen.json();
        let ids = ids.as_array().unwrap().iter();
        ids.map(|task| task["task_id"].as_str().unwrap().to_owned()).collect()
    };
    let all = ids(&[]);
    assert_eq!(all.len(), 3);
    assert_eq!(ids(&["--status", "completed,failed"]), all);
    assert_eq!(ids(&["--status", "failed"]), [""; 0]);
    assert_eq!(ids(&["--agent", "nobody"]), [""; 0]);
    let first = antiphon(folder, &["tasks", "list", "--limit", "2"]);
    let short = &all[1][24..32];
    assert!(first.err.contains(&format!("--cursor {short}\n")), "{}", first.err);
    for cursor in [short, &all[1]] {
        assert_eq!(ids(&["--cursor", cursor]), all[2..]);
    }
    for bad in [&["--status", "done"][..], &["--status", "failed", "--unfinished"]] {
        assert_eq!(antiphon(folder, &[&["tasks", "list"], bad].concat()).code, 2, "{bad:?}");
    }
}

#[test]
fn a_key_has_a_budget_of_its_own_and_a_budget_is_an_amount() {
    let folder = project("");
    let folder = folder.path();
    let new = ["keys", "new", "--name", "ci", "--daily-usd", "2", "--monthly-usd", "20", "--json"];
    let made = antiphon(folder, &new).json();
    assert_eq!(made["spend"]["daily_nano_usd_max"], 2_000_000_000);
    assert_eq!(made["spend"]["monthly_nano_usd_max"], 20_000_000_000_u64);
    let listed = antiphon(folder, &["keys", "list"]).out;
    assert!(listed.contains("$2.0000 a day, $20.0000 a month"), "{listed}");
    let shown = antiphon(folder, &["budget", "show", "--json"]).json();
    assert_eq!(shown["keys"][0]["key_id"], made["id"]);
    let id = made["id"].as_str().unwrap();
    assert_eq!(antiphon(folder, &["budget", "allow", "1", "--key", id]).code, 0);
    let bad = ["keys", "new", "--name", "bad", "--daily-usd", "0"];
    assert_eq!(antiphon(folder, &bad).code, 2);
    for budget in ["daily_usd = 0", "daily_usd = -1.0", "monthly_usd = nan", "weekly_usd = 1"] {
        let folder = project(&format!("[budget]\n{budget}"));
        let seen = run(folder.path(), &[]);
        assert_eq!(seen.code, 2, "{budget}: {}", seen.err);
    }
}
