//! The teams in `examples/teams`, run offline as their READMEs say, in a clone. What a README shows
//! is what comes out, killed in the middle or not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Beginning of a line that is cut off, which differs with how long the numbers before it are.
const CUT_CHARS: usize = 12;

/// A clone of an example.
struct Example {
    folder: TempDir,
    agent: &'static str,
    prompt: &'static str,
}

impl Example {
    fn new(name: &str, agent: &'static str, prompt: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(&source(name), &folder.path().join("theirs"));
        clone(&folder.path().join("theirs"), &folder.path().join("project"));
        // Not above the project: what is beside the configuration is hidden from commands.
        fs::create_dir(folder.path().join("config")).unwrap();
        fs::write(folder.path().join("config/config.toml"), "").unwrap();
        Self { folder, agent, prompt }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("project").join(path)
    }

    fn command(&self, program: &str) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_antiphon"));
        let mut path = vec![binary.parent().unwrap().to_owned()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        let mut command = Command::new(program);
        command
            .current_dir(self.path(""))
            .env_clear()
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .env("ANTIPHON_CONFIG", self.folder.path().join("config/config.toml"))
            .stdin(Stdio::null());
        command
    }

    /// The example's own command.
    fn run(&self) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_antiphon"));
        command.args(["run", "--trust", "--model", "scripted/team", "--script", "team.toml"]);
        command.args(["--agent", self.agent]);
        command
    }

    /// What comes out of the example.
    fn answer(&self) -> String {
        let output = self.run().arg(self.prompt).output().unwrap();
        let reported = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{reported}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.command(env!("CARGO_BIN_EXE_antiphon")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The agents of the tree, each with how it ended, and those below it.
    fn tree(&self) -> Value {
        fn shape(task: &Value) -> Value {
            let below = task["children"].as_array().map(Vec::as_slice).unwrap_or_default();
            let below: Vec<Value> = below.iter().map(shape).collect();
            json!([task["agent"], task["status"], below])
        }
        shape(&self.json(&["tasks", "tree", "last", "--json"]))
    }

    fn result(&self) -> Value {
        self.json(&["tasks", "show", "last", "--json"])["detail"].clone()
    }

    /// Kills it as soon as its journal has an event of this type, and lets it go on.
    fn killed_at(&self, event: &str) {
        let mut child =
            self.run().args(["--json", self.prompt]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = format!("\"type\":\"{event}\"");
        assert!(lines.any(|line| line.unwrap().contains(&wanted)), "there was no {event}");
        child.kill().unwrap();
        child.wait().unwrap();
        let left = self.json(&["tasks", "list", "--unfinished", "--json"]);
        assert!(!left.as_array().unwrap().is_empty(), "it was over before it was killed");
        let mut command = self.command(env!("CARGO_BIN_EXE_antiphon"));
        let output = command.args(["run", "--resume", "last"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/teams").join(name)
}

/// Copies a folder, without the journal that an earlier run left in its `.antiphon`.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (name, path) = (entry.file_name(), entry.path());
        let left_over = from.ends_with(".antiphon") && name != "agents";
        if path.is_dir() && !left_over {
            copy(&path, &to.join(name));
        } else if !left_over {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

/// Commits everything in a folder, and clones it, as a user gets the examples.
fn clone(from: &Path, to: &Path) {
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(from).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
        let done = command.output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "--all", "--force"]);
    git(&["commit", "--quiet", "--message", "all"]);
    git(&["clone", "--quiet", ".", to.to_str().unwrap()]);
}

fn reviewers() -> Example {
    Example::new("reviewers", "lead", "Review src/login.py")
}

fn map_reduce() -> Example {
    Example::new("map-reduce", "lead", "How many ships arrived?")
}

fn handover() -> Example {
    Example::new("handover", "triage", "You took my money twice for the lamps! M. Okafor")
}

fn researcher() -> Example {
    Example::new("researcher", "lead", "Fill the gaps in sign.txt")
}

fn reviewed() -> Value {
    let done = |agent: &str| json!([agent, "completed", []]);
    json!(["lead", "completed", [done("security"), done("tests"), done("readability")]])
}

fn counted() -> Value {
    json!(["reducer", "completed", vec![json!(["ad_hoc", "completed", []]); 12]])
}

fn researched() -> Value {
    json!(["lead", "completed", [["researcher", "completed", []]]])
}

#[test]
fn three_reviewers_look_at_once_and_the_lead_delivers_what_fits_its_schema() {
    let example = reviewers();
    let verdict: Value = serde_json::from_str(&example.answer()).unwrap();
    assert_eq!(verdict["verdict"], "reject");
    let source = fs::read_to_string(example.path("src/login.py")).unwrap();
    let lines: Vec<&str> = source.lines().collect();
    // What the script says of lines is true of the file.
    for (index, part) in [(0, "'%s'\" % n"), (1, "md5"), (2, "> 5"), (3, "n: str")] {
        let place = verdict["findings"][index]["where"].as_str().unwrap();
        let line: usize = place.strip_prefix("src/login.py:").unwrap().parse().unwrap();
        assert!(lines[line - 1].contains(part), "{place}: {}", lines[line - 1]);
    }
    assert_eq!(example.tree(), reviewed());
}

#[test]
fn what_is_counted_in_each_file_is_what_is_added_up() {
    let example = map_reduce();
    let log = example.path("harbor/06-june.txt");
    let more = format!("{}29 arrival    Eider from Hull\n", fs::read_to_string(&log).unwrap());
    fs::write(log, more).unwrap();
    let files = fs::read_dir(example.path("harbor")).unwrap();
    let logs = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let arrivals =
        |log: String| log.lines().filter(|line| line.split(' ').nth(1) == Some("arrival")).count();
    let (count, sum) = logs.map(arrivals).fold((0, 0), |(files, sum), n| (files + 1, sum + n));
    let answer = example.answer();
    assert!(answer.contains(&format!("\n{sum} arrivals in {count} files")), "{answer}");
    assert_eq!(example.tree(), counted());
}

#[test]
fn a_task_that_is_handed_over_stays_one_task_and_another_answers() {
    let example = handover();
    let answer = example.answer();
    assert!(answer.contains("\nDear M. Okafor, you are right: order 1042"), "{answer}");
    assert_eq!(example.tree(), json!(["billing", "completed", []]));
    let shown = example.json(&["tasks", "show", "last", "--json"]);
    assert!(shown["conversation"].to_string().contains("handed over to billing"), "{shown}");
}

#[test]
fn a_lead_that_waits_is_woken_by_the_report_of_the_one_it_sent_out() {
    let example = researcher();
    let answer = example.answer();
    let sign = "STONE BRIDGE\nBuilt in 1889 by Ada Lindqvist.\nCarts: walking pace.\n";
    assert!(answer.ends_with(sign), "{answer}");
    assert!(answer.contains("I wait for the researcher."), "{answer}");
    assert_eq!(example.tree(), researched());
    let conversation =
        example.json(&["tasks", "show", "last", "--json"])["conversation"].to_string();
    let reports = conversation.matches("from researcher: completed]").count();
    assert_eq!(reports, 1, "{conversation}");
}

#[test]
fn a_team_that_is_killed_in_the_middle_goes_on_and_delivers_the_same() {
    for (whole, killed, event, tree) in [
        (reviewers(), reviewers(), "dispatched", reviewed()),
        (handover(), handover(), "handed_over", json!(["billing", "completed", []])),
        (researcher(), researcher(), "dispatched", researched()),
    ] {
        whole.answer();
        killed.killed_at(event);
        assert_eq!(killed.result(), whole.result());
        assert_eq!(killed.tree(), tree);
    }
    let example = map_reduce();
    example.killed_at("dispatched");
    let result = example.result();
    assert!(result.as_str().unwrap().contains("72 arrivals in 12 files"), "{result}");
    assert_eq!(example.tree(), counted());
}

#[test]
fn every_agent_of_the_examples_is_understood_and_leaves_the_model_to_the_user() {
    for example in [reviewers(), map_reduce(), handover(), researcher()] {
        example.json(&["trust", "--yes", "--json"]);
        let listed = example.json(&["agents", "list", "--json"]);
        assert_eq!(listed["problems"], json!([]));
        let agents = listed["agents"].as_array().unwrap();
        assert!(agents.iter().any(|agent| agent["name"] == example.agent), "{listed}");
        for agent in agents {
            assert_eq!(agent.get("model"), None, "{agent}");
            let shown =
                example.json(&["agents", "show", agent["name"].as_str().unwrap(), "--json"]);
            assert_eq!(shown["tools"].get("missing").unwrap_or(&json!([])), &json!([]), "{shown}");
        }
    }
}

#[test]
fn what_the_readmes_show_is_what_comes_out() {
    for (name, example) in [
        ("reviewers", reviewers()),
        ("map-reduce", map_reduce()),
        ("handover", handover()),
        ("researcher", researcher()),
    ] {
        let readme = fs::read_to_string(source(name).join("README.md")).unwrap();
        let commands = commands(&readme);
        assert!(commands.len() >= 2, "{name}");
        for (command, shown) in commands {
            let script = format!("exec 2>&1; {command}");
            let output = example.command("sh").args(["-c", &script]).output().unwrap();
            let out = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{name}: {command}\n{out}");
            for line in shown {
                assert!(comes_out(line, &out), "{name}: {command}\nno line as\n{line}\nin\n{out}");
            }
        }
    }
}

/// The commands of the `console` blocks, each with the lines that it shows.
fn commands(readme: &str) -> Vec<(&str, Vec<&str>)> {
    let mut commands: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut console = false;
    for line in readme.lines() {
        if line.starts_with("```") {
            console = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| console) {
            commands.push((command, Vec::new()));
        } else if console && !line.is_empty() && line != "…" {
            commands.last_mut().unwrap().1.push(line);
        }
    }
    commands
}

/// Whether a line came out, but for numbers, ids, and where it is cut off. Agents that work side by
/// side are shown in any order.
fn comes_out(shown: &str, out: &str) -> bool {
    let wanted = plain(shown);
    let mut lines = out.lines().map(plain);
    match wanted.find("… ").or_else(|| wanted.strip_suffix('…').map(str::len)) {
        Some(end) => {
            let beginning: Vec<char> = wanted[..end].chars().collect();
            let sure = beginning.len().saturating_sub(CUT_CHARS);
            let sure: String = beginning[..sure].iter().collect();
            lines.any(|line| line.starts_with(&sure))
        }
        None => lines.any(|line| line == wanted),
    }
}

/// A line with `#` for every number and id, and single spaces.
fn plain(line: &str) -> String {
    let word = |word: &str| {
        let hex = |c: char| c.is_ascii_hexdigit() || c == '-' || c == ',';
        let is_short_id = word.len() == 8 && word.contains(|c: char| c.is_ascii_digit());
        if (word.len() >= 36 || is_short_id) && word.chars().all(hex) {
            return "#".to_owned();
        }
        let mut plain = String::new();
        for c in word.chars() {
            if !c.is_ascii_digit() {
                plain.push(c);
            } else if !plain.ends_with('#') {
                plain.push('#');
            }
        }
        plain
    };
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}
