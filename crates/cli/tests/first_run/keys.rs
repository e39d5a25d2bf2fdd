//! A key in the environment chooses the model; without one, a task says what to do.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::project_folder::{antiphon, give_to_owner};
use crate::pty::Terminal;
use crate::world::{ANSWER, KEY, Server, World};

const REMEDIES: [&str; 4] =
    ["ANTHROPIC_API_KEY", "antiphon init", "--model scripted/hello", "antiphon demo"];

#[test]
fn a_key_in_the_environment_chooses_the_model_and_is_named() {
    let (world, server) = (World::new(), Server::anthropic());
    let variables = [("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", &server.server.url())];
    let seen = world.seen(&["run", "hi"], &variables);
    assert_eq!(seen.code, 0, "{}", seen.err);
    assert!(seen.out.contains(ANSWER), "{}", seen.out);
    let model = server.asked_model();
    let note = format!("using anthropic/{model} (ANTHROPIC_API_KEY)");
    assert!(seen.err.contains(&note), "{}", seen.err);
    assert!(!seen.err.contains(KEY) && !seen.out.contains(KEY));
    let listed = world.seen(&["doctor", "--json"], &variables).out;
    assert!(listed.contains(&format!("\"default_model\": \"anthropic/{model}\"")), "{listed}");
}

#[test]
fn of_several_keys_the_first_of_a_fixed_order_is_used_and_the_others_are_named() {
    let (world, server) = (World::new(), Server::anthropic());
    let variables = [
        ("GEMINI_API_KEY", "AIza-x"),
        ("ANTHROPIC_API_KEY", KEY),
        ("ANTHROPIC_BASE_URL", &server.server.url()),
    ];
    let seen = world.seen(&["run", "hi"], &variables);
    assert_eq!(seen.code, 0, "{}", seen.err);
    let parts = ["using anthropic/", "a key for gemini too", "antiphon init"];
    assert!(parts.iter().all(|part| seen.err.contains(part)), "{}", seen.err);
}

#[test]
fn a_choice_of_the_user_counts_more_than_a_key() {
    let world = World::new();
    world.write_config("model = 'scripted/hello'\n");
    let seen = world.seen(&["run", "hi"], &[("ANTHROPIC_API_KEY", KEY)]);
    assert_eq!((seen.code, seen.err.as_str()), (0, ""));
    world.write_config("");
    let variables = [("ANTHROPIC_API_KEY", KEY), ("ANTIPHON_MODEL", "scripted/hello")];
    let seen = world.seen(&["run", "hi"], &variables);
    assert_eq!((seen.code, seen.err.as_str()), (0, ""));
}

#[test]
fn without_a_model_a_task_is_refused_and_told_what_to_do() {
    let world = World::new();
    assert_eq!(world.seen(&["agents", "new", "keeper"], &[]).code, 0);
    for arguments in [&["run", "hi"][..], &["run", "--agent", "keeper", "hi"]] {
        let seen = world.seen(arguments, &[]);
        assert_eq!(seen.code, 2, "{}", seen.err);
        for remedy in REMEDIES {
            assert!(seen.err.contains(remedy), "{remedy}: {}", seen.err);
        }
    }
    let scripted = world.seen(&["run", "--model", "scripted/hello", "hi"], &[]);
    assert_eq!(scripted.code, 0, "{}", scripted.err);
}

#[test]
fn a_server_and_lists_need_no_model() {
    let world = World::new();
    assert_eq!(world.seen(&["agents", "list"], &[]).code, 0);
    let doctor = world.seen(&["doctor"], &[]);
    assert!(doctor.out.contains("default model  none; set a key"), "{}", doctor.out);
    assert!(!doctor.err.contains("default model"), "{}", doctor.err);
    let mut server = antiphon(world.path());
    server.args(["serve", "--listen", "127.0.0.1:0"]);
    let mut server =
        server.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on http://"), "{line}");
    let seen = world.seen(&["run", "hi"], &[]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(seen.code, 2, "{}", seen.err);
}

#[test]
fn a_key_of_another_provider_is_not_sent_and_its_owner_is_named() {
    let world = World::new();
    let seen = world.seen(&["run", "hi"], &[("OPENAI_API_KEY", KEY)]);
    assert_eq!(seen.code, 2, "{}", seen.err);
    assert!(seen.err.contains("OPENAI_API_KEY looks like a key of anthropic"), "{}", seen.err);
    assert!(!seen.err.contains(KEY));
}

#[test]
fn a_key_that_the_provider_does_not_accept_is_named_by_its_variable() {
    let (world, server) = (World::new(), Server::anthropic());
    let address = server.server.url();
    let variables = [("ANTHROPIC_API_KEY", "sk-ant-wrong"), ("ANTHROPIC_BASE_URL", &*address)];
    let seen = world.seen(&["run", "hi"], &variables);
    assert_eq!(seen.code, 1, "{}", seen.err);
    for part in ["did not accept the key", "check ANTHROPIC_API_KEY", "antiphon init"] {
        assert!(seen.err.contains(part), "{part}: {}", seen.err);
    }
    assert!(!seen.err.contains("sk-ant-wrong"), "{}", seen.err);
}

#[test]
fn a_local_server_that_does_not_run_is_named_and_the_task_waits_for_it() {
    let world = World::new();
    world.write_config(
        "model = 'near/x'\n[providers.near]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:9/v1'\n\
         limits = { retries = 0 }\n",
    );
    let run = world.command(&["run", "hi"]);
    // With the terminal as its own, which turns Ctrl-C into a signal.
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait"]).arg(run.get_program()).args(run.get_args());
    command.current_dir(run.get_current_dir().unwrap()).env_clear();
    command.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("TERM", "xterm");
    if let Some(user) = give_to_owner(world.path()) {
        command.uid(user).gid(user);
    }
    let mut terminal = Terminal::start(command);
    // Wide enough for the reason on one line.
    terminal.resize(24, 160);
    terminal.until("127.0.0.1:9: nothing listens there; is the server running?");
    terminal.press("\x03");
    let (code, text) = terminal.end();
    assert_eq!(code, 130, "{text}");
    let listed = world.seen(&["tasks", "list", "--unfinished"], &[]).out;
    assert!(listed.contains("hi"), "{listed}");
}
