//! The terminal program at a terminal.

use std::fs;

use antiphon_model_server::ModelServer;

use crate::anthropic_wire;
use crate::project::{Project, Run, until};
use crate::pty::Terminal;

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const ESC: &str = "\x1b";
const ENTER: &str = "\r";
const TAB: &str = "\t";
const BACKSPACE: &str = "\x7f";

fn chat(project: &Project, script: &str) -> Terminal {
    let (model, file) = (format!("scripted/{script}"), format!("{script}.toml"));
    let mut command = project.command(&["chat", "--model", &model, "--script", &file]);
    // Without colors a row is one piece of text.
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    let mut terminal = Terminal::start(command);
    terminal.until("Ask anything");
    terminal
}

#[test]
fn an_answer_is_formatted_and_the_next_prompt_continues_the_conversation() {
    let project = Project::new();
    let text = "# Title\\n\\n| a | b |\\n|---|---|\\n| one | two |\\n\\nSaid {{last_user}}, turn {{turn}}.";
    let script = format!("name = \"t\"\n[[reply]]\nsteps = [{{ text = \"{text}\" }}]\n");
    fs::write(project.path().join("t.toml"), script).unwrap();
    let mut terminal = chat(&project, "t");
    terminal.press("hello there");
    terminal.press(ENTER);
    terminal.until("one │ two");
    terminal.until("Said hello there, turn 0.");
    terminal.press("again");
    terminal.press(ENTER);
    terminal.until("Said again, turn 1.");
    terminal.press(CTRL_D);
    let (code, shown) = terminal.end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("antiphon -c"), "{shown}");
    assert_eq!(project.tasks().len(), 2);
}

/// The terminal program with a provider of a configuration file and its key, which no other process has.
fn chat_with_provider(project: &Project, url: &str, key: &str) -> Terminal {
    let config = project.path().join("models.toml");
    let provider = "kind = \"anthropic\"\napi_key_env = \"OWN_KEY\"\nbase_url";
    fs::write(&config, format!("[providers.own]\n{provider} = \"{url}\"\n")).unwrap();
    let mut command = project.command(&["chat", "--model", "own/model-1"]);
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    command.env("ANTIPHON_CONFIG", config).env("OWN_KEY", key);
    let mut terminal = Terminal::start(command);
    terminal.until("Ask anything");
    terminal
}

fn prompt(terminal: &mut Terminal, text: &str, answer: &str) {
    terminal.press(text);
    terminal.press(ENTER);
    terminal.until(answer);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_prompt_has_the_configuration_and_the_keys_of_the_process() {
    const KEY: &str = "key-of-the-terminal";
    let model = ModelServer::start(|_, number| match number {
        2 => anthropic_wire::held_text("Never all of it."),
        _ => anthropic_wire::text(&format!("Answer {number}.")),
    });
    let model = model.await.unwrap();
    let url = model.url();
    tokio::task::spawn_blocking(move || {
        let project = Project::new();
        let mut terminal = chat_with_provider(&project, &url, KEY);
        prompt(&mut terminal, "one", "Answer 0.");
        prompt(&mut terminal, "two", "Answer 1.");
        // Another process resumes a task of this one, with its own key, and ends.
        prompt(&mut terminal, "three", "Never");
        terminal.press(ESC);
        terminal.until("Enter resumes the task");
        let mut other = project.command(&["run", "--json", "--resume", "last"]);
        other.env("ANTIPHON_CONFIG", project.path().join("models.toml")).env("OWN_KEY", "another");
        let ended = Run::start(other).end();
        assert_eq!(ended.code, Some(0), "{}", ended.said);
        terminal.until("Answer 3.");
        prompt(&mut terminal, "four", "Answer 4.");
        terminal.press(CTRL_D);
        assert_eq!(terminal.end().0, 0);
        let requests = model.requests();
        let keys: Vec<_> = requests.iter().map(|request| request.header("x-api-key")).collect();
        assert_eq!(keys, [Some(KEY), Some(KEY), Some(KEY), Some("another"), Some(KEY)]);
    })
    .await
    .unwrap();
}

#[test]
fn a_question_is_answered_with_a_key() {
    let project = Project::new();
    project.script("q", &["source x.sh"]);
    let mut terminal = chat(&project, "q");
    terminal.press("go");
    terminal.press(ENTER);
    terminal.until("allow? [y]es once");
    terminal.until("y once, t for this task");
    terminal.press("y");
    terminal.until("allowed once");
    terminal.until("done");
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn a_key_that_comes_with_the_question_answers_nothing() {
    let project = Project::new();
    project.script("q", &["echo effect >> effects; source x.sh"]);
    let mut terminal = chat(&project, "q");
    terminal.press("go");
    terminal.press(ENTER);
    terminal.until("allow? [y]es once");
    terminal.press("y");
    terminal.until("Nothing is answered: `y` came within a second");
    terminal.until("› y");
    // The text was typed at the moment of the question: Enter at once does not send it as an answer.
    terminal.press(ENTER);
    terminal.until("Nothing is sent: a question appeared while you typed");
    assert_eq!(project.json(&["approvals", "list", "--json"])[0]["status"], "pending");
    terminal.press(BACKSPACE);
    terminal.until("y once, t for this task");
    terminal.press("a");
    terminal.until("Always? y allows it for good");
    terminal.press("a");
    terminal.until("Not allowed: the answer");
    terminal.press(" is refused");
    terminal.press(ENTER);
    terminal.until("denied");
    terminal.until("done");
    assert_eq!(project.read("effects"), "");
    terminal.press(CTRL_D);
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn always_is_confirmed_with_another_key() {
    let project = Project::new();
    project.script("q", &["source x.sh; echo one >> effects", "source x.sh; echo two >> effects"]);
    let mut terminal = chat(&project, "q");
    terminal.press("go");
    terminal.press(ENTER);
    terminal.until("y once, t for this task");
    terminal.press("a");
    terminal.until("Always? y allows it for good");
    assert_eq!(project.read("effects"), "");
    terminal.press("y");
    terminal.until("allowed always");
    until("the first call", || project.read("effects").starts_with("one\n"));
    terminal.press(CTRL_C);
    terminal.press(CTRL_D);
    drop(terminal);
}

#[test]
fn escape_interrupts_and_enter_resumes() {
    let project = Project::new();
    project.script("s", &["echo one >> effects; sleep 60", "echo two >> effects"]);
    let mut terminal = chat(&project, "s");
    terminal.press("/help");
    terminal.press(ENTER);
    terminal.until("write the prompt in your editor");
    terminal.press("go");
    terminal.press(ENTER);
    until("the call", || project.read("effects") == "one\n");
    terminal.press("afterwards");
    terminal.press(TAB);
    terminal.until("queued: afterwards");
    terminal.press(ESC);
    terminal.until("Enter resumes the task");
    assert_eq!(project.tasks()[0]["waiting_for"], "resume");
    terminal.press(ENTER);
    until("the next call", || project.read("effects") == "one\ntwo\n");
    terminal.until("› afterwards");
    terminal.press(CTRL_C);
    terminal.press(CTRL_D);
    drop(terminal);
}

#[test]
fn the_end_of_a_terminal_that_sends_no_signal_interrupts_the_task() {
    let project = Project::new();
    project.script("s", &["echo one >> effects; sleep 60"]);
    let mut terminal = chat(&project, "s");
    terminal.press("go");
    terminal.press(ENTER);
    until("the call", || project.read("effects") == "one\n");
    // It is not the controlling terminal of the program, so the kernel sends nothing.
    terminal.hang_up();
    assert_eq!(project.tasks()[0]["waiting_for"], "resume");
}

#[test]
fn the_program_goes_on_when_the_owner_is_killed() {
    let project = Project::new();
    project.script("owner", &["sleep 30"]);
    project.script("client", &["sleep 0.5; echo one >> effects", "echo two >> effects"]);
    let mut owner = project.run("owner");
    owner.until_event("tool_started");
    project.wait_for_owner();
    let mut terminal = chat(&project, "client");
    terminal.press("go");
    terminal.press(ENTER);
    until("the first call", || project.read("effects") == "one\n");
    owner.kill();
    terminal.until("this one goes on");
    until("the second call", || project.read("effects") == "one\ntwo\n");
    terminal.press(CTRL_D);
    drop(terminal);
}

#[test]
fn without_a_terminal_the_program_says_what_to_use() {
    let project = Project::new();
    let output = project.output(&["chat"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("antiphon run"), "{said}");
}
