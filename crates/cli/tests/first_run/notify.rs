//! `[notify]`: what the user is told when an agent needs an answer or is done.

use std::fs;

use crate::project_folder::home;
use crate::pty::Terminal;
use crate::world::{Server, World, seen};

/// The program writes title and text, and every variable that it has.
const COMMAND: &str = r#"command = ["sh", "-c", "echo \"$ANTIPHON_NOTIFY_TITLE|$ANTIPHON_NOTIFY_TEXT\" >> told; env >> variables"]"#;

fn told(world: &World) -> String {
    fs::read_to_string(home(world.path()).join("told")).unwrap_or_default()
}

#[test]
fn a_program_and_an_address_are_told_the_end_without_a_secret() {
    let (world, ntfy) = (World::new(), Server::local());
    world.write_config(&format!(
        "model = 'scripted/hello'\n[notify]\nafter_s = 0\nurl = '{}/topic'\ntoken_env = 'NTFY'\n{COMMAND}\n",
        ntfy.server.url()
    ));
    let variables = [("NTFY", "tk_right"), ("ANTHROPIC_API_KEY", "sk-ant-s3cret")];
    let seen = world.seen(&["run", "the s3cret word is lantern"], &variables);
    assert_eq!(seen.code, 0, "{}", seen.err);
    let told = told(&world);
    assert!(told.starts_with("Antiphon: ") && told.ends_with("|project: done\n"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    let requests = ntfy.server.requests();
    let posted = requests.iter().find(|request| request.path == "/topic").unwrap();
    assert_eq!(posted.header("authorization"), Some("Bearer tk_right"));
    assert!(posted.header("title").unwrap().starts_with("Antiphon: "));
    assert_eq!(String::from_utf8_lossy(&posted.body), "project: done");
    let variables = fs::read_to_string(home(world.path()).join("variables")).unwrap();
    for secret in ["s3cret", "tk_right", "lantern"] {
        assert!(!variables.contains(secret) && !told.contains(secret), "{secret}: {variables}");
    }
}

#[test]
fn a_question_is_told_and_a_short_task_is_not() {
    let world = World::new();
    let script = "[[reply]]\nwhen = { turn = 0 }\n\
                  steps = [{ call = { name = \"read\", arguments = { path = \"a.txt\" } } }]\n\
                  [[reply]]\nsteps = [{ text = \"done\" }]\n";
    fs::write(world.path().join("script.toml"), script).unwrap();
    world.write_config(&format!(
        "[permissions]\nask = ['read']\n[notify]\n{COMMAND}\n[scripts]\nreads = '{}'\n",
        world.path().join("script.toml").display()
    ));
    let run = ["run", "--model", "scripted/reads", "--ask", "wait", "Read it."];
    let seen = world.seen(&run, &[]);
    assert_eq!(seen.code, 3, "{}", seen.err);
    assert!(told(&world).ends_with("|project: `read` needs your answer\n"), "{}", told(&world));
    let short = world.seen(&["run", "--model", "scripted/hello", "hi"], &[]);
    assert_eq!(short.code, 0, "{}", short.err);
    assert_eq!(told(&world).lines().count(), 1, "{}", told(&world));
}

#[test]
fn run_writes_the_sequence_of_its_terminal() {
    let world = World::new();
    world.write_config("model = 'scripted/hello'\n[notify]\nafter_s = 0\nterminal = 'osc9'\n");
    let mut command = world.command(&["run", "hi"]);
    command.env("TERM", "xterm");
    let (code, text) = Terminal::start(command).end();
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("\x1b]9;Antiphon: the task has ended\x07"), "{text:?}");
    // As the terminal program finds out what fits.
    world.write_config("model = 'scripted/hello'\n[notify]\nafter_s = 0\nterminal = 'auto'\n");
    let mut command = world.command(&["run", "hi"]);
    command.env("TERM", "foot");
    let (_, text) = Terminal::start(command).end();
    assert!(text.contains("\x1b]777;notify;Antiphon;the task has ended\x07"), "{text:?}");
    // It does not know the focus: not without the setting.
    world.write_config("model = 'scripted/hello'\n[notify]\nafter_s = 0\n");
    let mut command = world.command(&["run", "hi"]);
    command.env("TERM", "foot");
    let (_, text) = Terminal::start(command).end();
    assert!(!text.contains("\x1b]777") && !text.contains('\x07'), "{text:?}");
    world.write_config("model = 'scripted/hello'\n[notify]\nafter_s = 0\nterminal = 'osc9'\n");
    // Not into a pipe.
    let piped = seen(&mut world.command(&["run", "hi"]));
    assert!(!piped.err.contains('\x1b') && !piped.out.contains('\x1b'), "{}", piped.err);
}

#[test]
fn a_project_cannot_set_it_and_what_cannot_work_is_refused() {
    let world = World::new();
    for (text, expected) in [
        ("[notify]\nurl = 'ntfy.example/topic'\n", "must begin with http:// or https://"),
        ("[notify]\ncommand = ['']\n", "the program is empty"),
        ("[notify]\ntoken_env = 'A'\n", "`notify.url`, which is not set"),
        ("[notify]\nwhen = ['always']\n", "unknown variant `always`"),
    ] {
        world.write_config(text);
        let seen = world.seen(&["run", "hi"], &[]);
        assert_eq!(seen.code, 2, "{}", seen.err);
        assert!(seen.err.contains(expected), "{expected}: {}", seen.err);
    }
    world.write_config("model = 'scripted/hello'\n");
    fs::create_dir_all(world.path().join(".antiphon")).unwrap();
    fs::write(world.path().join(".antiphon/antiphon.toml"), "[notify]\ncommand = ['sh']\n")
        .unwrap();
    let seen = world.seen(&["run", "--trust", "hi"], &[]);
    assert_eq!(seen.code, 2, "{}", seen.err);
    assert!(seen.err.contains("notify"), "{}", seen.err);
}
