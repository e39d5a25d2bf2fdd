//! The first five minutes, measured from a home folder without settings. `UPDATE=1` writes the table of
//! `docs/first-run.md`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::pty::Terminal;
use crate::world::{ANSWER, KEY, Server, World};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/first-run.md");

const BEGIN: &str = "| case | step | second |\n|---|---|---|\n";

/// Seconds that a step may take, on a machine that is busy with other tests.
const SECONDS_MAX: f64 = 20.0;

/// Steps of a case, each with its second since the command was entered.
struct Case {
    name: &'static str,
    terminal: Terminal,
    started: Instant,
    rows: Vec<String>,
}

impl Case {
    fn start(name: &'static str, mut command: Command) -> Self {
        command.env("TERM", "xterm");
        let started = Instant::now();
        Self { name, terminal: Terminal::start(command), started, rows: Vec::new() }
    }

    /// Waits for a text, and notes when it came.
    fn until(&mut self, text: &str, step: &str) {
        self.terminal.until(text);
        let seconds = self.started.elapsed().as_secs_f64();
        assert!(seconds < SECONDS_MAX, "{}: {step}: {seconds}", self.name);
        self.rows.push(format!("| {} | {step} | {seconds:.1} |\n", self.name));
    }

    /// Presses the key that chooses the line with this text.
    fn choose(&mut self, text: &str) {
        let shown = self.terminal.text();
        let line = shown.lines().rev().find(|line| line.contains(text)).unwrap().to_owned();
        self.terminal.press(&format!("{}\n", line.split_whitespace().next().unwrap()));
    }

    fn end(self) -> Vec<String> {
        let (code, text) = self.terminal.end();
        assert_eq!(code, 0, "{}: {text}", self.name);
        self.rows
    }
}

fn no_key() -> Vec<String> {
    let world = World::new();
    let mut case = Case::start("no key", world.command(&["run", "hi"]));
    case.until("[1]: ", "`antiphon run \"…\"` asks what to use");
    case.choose("from a script");
    case.until("You wrote: hi", "the script is chosen: it answers");
    case.end()
}

fn key() -> Vec<String> {
    let (world, server) = (World::new(), Server::anthropic());
    let mut command = world.command(&["run", "hi"]);
    command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", server.server.url());
    let mut case = Case::start("a key in the environment", command);
    case.until("using anthropic/", "`ANTHROPIC_API_KEY=… antiphon run \"…\"` names the model");
    case.until(ANSWER, "the answer is complete");
    case.end()
}

fn pasted_key() -> Vec<String> {
    let (world, server) = (World::new(), Server::anthropic());
    let mut command = world.command(&["run", "hi"]);
    command.env("ANTHROPIC_BASE_URL", server.server.url());
    let mut case = Case::start("a key is pasted", command);
    case.until("[1]: ", "`antiphon run \"…\"` asks what to use");
    case.terminal.press("1\n");
    case.terminal.until("Paste the key");
    case.terminal.press(&format!("{KEY}\n"));
    case.until(
        "tasks use anthropic/",
        "the key is pasted: its provider accepts it, and it is stored",
    );
    case.until(ANSWER, "the answer is complete");
    case.end()
}

fn local_server() -> Vec<String> {
    let (world, server) = (World::new(), Server::local());
    let mut command = world.command(&["run", "hi"]);
    command.env("OLLAMA_HOST", server.server.url().trim_start_matches("http://"));
    let mut case = Case::start("a local server", command);
    case.until("[1]: ", "`antiphon run \"…\"` finds it and asks what to use");
    case.choose("Ollama at");
    case.until("Which model of Ollama?", "it is chosen: its models are listed");
    case.terminal.press("1\n");
    case.until(ANSWER, "a model is chosen: the answer is complete");
    case.end()
}

/// A repository with an agent and a skill of Claude Code, and a server of MCP.
fn repository() -> Vec<String> {
    let (world, server) = (World::new(), Server::anthropic());
    let store = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/tools/store.py");
    let servers = serde_json::json!({ "mcpServers": {
        "store": { "command": "python3", "args": [Path::new(store).canonicalize().unwrap()] },
    }});
    for (path, text) in [
        (
            ".claude/agents/reviewer.md",
            "---\nname: reviewer\ndescription: Reviews.\n---\nReview.\n",
        ),
        (".claude/skills/brew/SKILL.md", "---\nname: brew\ndescription: Brews tea.\n---\nBoil.\n"),
        (".mcp.json", &servers.to_string()),
    ] {
        let path = world.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let mut command = world.command(&["run", "--agent", "reviewer", "hi"]);
    command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", server.server.url());
    let mut case = Case::start("a repository with `.claude/` and `.mcp.json`", command);
    case.until("[y/n]", "`antiphon run --agent reviewer \"…\"` shows what it brings, and asks whether it is trusted");
    case.terminal.press("y\n");
    case.until(ANSWER, "yes: the server has started, and the agent's answer is complete");
    let rows = case.end();
    let requests = server.server.requests();
    let asked = requests.iter().find(|request| request.method == "POST").unwrap();
    let body = asked.json().to_string();
    for part in ["mcp__store__count", "\"name\":\"skill\"", "Brews tea.", "Review."] {
        assert!(body.contains(part), "{part}: {body}");
    }
    // Like every agent of a file that names no agents, it calls none.
    for part in ["call_agent", "run_skill"] {
        assert!(!body.contains(part), "{part}: {body}");
    }
    rows
}

#[test]
fn the_steps_of_the_first_five_minutes_are_those_of_the_page() {
    let rows = [no_key(), key(), pasted_key(), local_server(), repository()].concat();
    let page = fs::read_to_string(PAGE).unwrap();
    let begin = page.find(BEGIN).unwrap() + BEGIN.len();
    let end = begin + page[begin..].find("\n\n").unwrap() + 1;
    if std::env::var_os("UPDATE").is_some() {
        fs::write(PAGE, format!("{}{}{}", &page[..begin], rows.concat(), &page[end..])).unwrap();
        return;
    }
    // The seconds differ from run to run.
    let steps = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.rsplitn(3, '|').last().unwrap().to_owned()).collect()
    };
    assert_eq!(steps(&page[begin..end]), steps(&rows.concat()), "write it with UPDATE=1");
}
