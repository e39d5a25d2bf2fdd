//! The guided start at a terminal.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::pty::Terminal;
use crate::world::{ANSWER, KEY, Server, World, seen};

fn at_terminal(mut command: Command) -> Terminal {
    command.env("TERM", "xterm");
    Terminal::start(command)
}

#[test]
fn a_pasted_key_is_checked_and_stored_and_never_shown() {
    let (world, server) = (World::new(), Server::anthropic());
    let mut command = world.command(&["run", "hi"]);
    command.env("ANTHROPIC_BASE_URL", server.server.url());
    let mut terminal = at_terminal(command);
    terminal.until("Choose 1 to 2 [1]: ");
    terminal.press("1\n");
    terminal.until("Paste the key");
    terminal.press("sk-ant-wrong\n");
    terminal.until("anthropic does not accept this key");
    assert_eq!(world.config_text(), "", "a wrong key is not stored");
    terminal.press(&format!("{KEY}\n"));
    terminal.until("tasks use anthropic/");
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(ANSWER), "{text}");
    assert!(!text.contains(KEY) && !text.contains("sk-ant-wrong"), "{text}");
    let written = world.config_text();
    assert_eq!(written, format!("[providers.anthropic]\napi_key = \"{KEY}\"\n"));
    assert_eq!(fs::metadata(world.config()).unwrap().permissions().mode() & 0o777, 0o600);
    // The next run asks nothing.
    let again = seen(world.command(&["run", "hi"]).env("ANTHROPIC_BASE_URL", server.server.url()));
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(again.err.contains("(the key in your settings)"), "{}", again.err);
}

#[test]
fn a_local_server_is_offered_by_name_with_its_models() {
    let (world, server) = (World::new(), Server::local());
    let mut command = world.command(&["run", "hi"]);
    let address = server.server.url().trim_start_matches("http://").to_owned();
    command.env("OLLAMA_HOST", &address);
    let mut terminal = at_terminal(command);
    terminal.until(&format!("Ollama at {address}: qwen3:8b, llama4"));
    let shown = terminal.text();
    let line = shown.lines().find(|line| line.contains("Ollama")).unwrap();
    let number = line.split_whitespace().next().unwrap().to_owned();
    terminal.press(&format!("{number}\n"));
    terminal.until("Which model of Ollama?");
    terminal.press("2\n");
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(ANSWER), "{text}");
    assert_eq!(server.asked_model(), "llama4");
    assert!(world.config_text().contains("model = \"ollama/llama4\""), "{}", world.config_text());
}

#[test]
fn the_script_is_used_once_and_not_stored() {
    let world = World::new();
    let mut terminal = at_terminal(world.command(&["run", "hi"]));
    terminal.until("[1]: ");
    let shown = terminal.text();
    let line = shown.lines().find(|line| line.contains("from a script")).unwrap();
    terminal.press(&format!("{}\n", line.split_whitespace().next().unwrap()));
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("You wrote: hi"), "{text}");
    assert!(!world.config().exists());
}

#[test]
fn with_several_keys_the_user_is_asked_once() {
    let (world, server) = (World::new(), Server::anthropic());
    world.write_config("# mine\n[sandbox]\nnetwork = false\n");
    let command = || {
        let mut command = world.command(&["run", "hi"]);
        command.env("OPENAI_API_KEY", "sk-x").env("ANTHROPIC_API_KEY", KEY);
        command.env("ANTHROPIC_BASE_URL", server.server.url());
        command
    };
    let mut terminal = at_terminal(command());
    terminal.until("There are keys of several providers");
    terminal.until("[1]: ");
    terminal.press("\n");
    let (code, text) = terminal.end();
    assert_eq!(code, 0, "{text}");
    let written = world.config_text();
    assert!(written.contains("model = \"anthropic/") && written.contains("# mine\n"), "{written}");
    let (code, text) = at_terminal(command()).end();
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains("several providers"), "{text}");
}

#[test]
fn scripts_set_up_with_options() {
    let (world, server) = (World::new(), Server::anthropic());
    let init = |arguments: &[&str], key: &str| {
        let mut command = world.command(&["init"]);
        command.args(arguments).env("ANTHROPIC_BASE_URL", server.server.url());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(key.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, error) = init(&["--key-stdin"], "sk-ant-wrong\n");
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("does not accept") && !error.contains("sk-ant-wrong"), "{error}");
    assert_eq!(world.config_text(), "");
    let (code, error) = init(&["--provider", "anthropic", "--key-stdin"], KEY);
    assert_eq!(code, 0, "{error}");
    assert!(world.config_text().contains(KEY));
    let (code, error) = init(&["--model", "scripted/hello", "--agent", "helper"], "");
    assert_eq!(code, 0, "{error}");
    assert!(world.config_text().contains("model = \"scripted/hello\""));
    assert!(world.path().join(".antiphon/agents/helper.md").exists());
    let (code, error) = init(&[], "");
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("--key-stdin"), "{error}");
}
