//! Text that tries to control the terminal, hide itself or look like something else: wherever it comes from, the
//! person at the terminal sees what it is, and a program that reads JSON gets it as it is.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/project_folder.rs"]
mod project_folder;
#[path = "../support/pty.rs"]
mod pty;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use project_folder::{ProjectFolder, home, trust};
use pty::Terminal;
use serde_json::Value;

/// Sets the title, moves the cursor, goes back over the line, and hides and reorders text.
const HOSTILE: &str =
    "evil\x1b]0;pwned\x07\x1b[999D\rOVER\u{9b}2J\u{202e}\u{2066}\u{e0041}\u{e0042}end";

/// The same as a string of TOML.
const HOSTILE_TOML: &str =
    r"evil\u001b]0;pwned\u0007\u001b[999D\rOVER\u009b2J\u202e\u2066\U000E0041\U000E0042end";

/// As it is shown.
const SHOWN: &str =
    r"evil\u{1b}]0;pwned\u{7}\u{1b}[999D\rOVER\u{9b}2J\u{202e}\u{2066}\u{e0041}\u{e0042}end";

/// As a pipe gets it.
const PIPED: &str = "evilOVER\u{202e}\u{2066}\u{e0041}\u{e0042}end";

struct Project(ProjectFolder);

impl Project {
    fn new(script: &str) -> Self {
        let project = Self(ProjectFolder::new());
        fs::write(project.path().join("work.toml"), script).unwrap();
        let folder = home(project.path()).join(".config/antiphon");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), "[permissions]\nask = [\"bash(git push *)\"]\n")
            .unwrap();
        project
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("antiphon"));
        command.current_dir(self.path()).env_clear().env("HOME", home(self.path()));
        command.env("PATH", std::env::var_os("PATH").unwrap()).args(arguments);
        command
    }

    fn run(&self, more: &[&str]) -> Command {
        let begin = ["run", "--model", "scripted/work", "--script", "work.toml"];
        self.command(&[&begin, more].concat())
    }

    /// What a command writes to a terminal, which it must not control.
    fn at_terminal(&self, arguments: &[&str]) -> String {
        on_terminal(self.command(arguments)).1
    }
}

fn on_terminal(command: Command) -> (i32, String) {
    let (code, text) = Terminal::start(command).end();
    assert_harmless(&text);
    (code, text)
}

/// Output and errors in a pipe, which must not control the terminal that shows them later.
fn in_pipe(mut command: Command) -> (String, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    for text in [&out, &err] {
        let control = text.chars().find(|c| c.is_control() && !"\n\t".contains(*c));
        assert_eq!(control, None, "{}", text.escape_debug());
    }
    (out, err)
}

/// Nothing of the hostile text took effect.
fn assert_harmless(text: &str) {
    let hostile = [
        "\x1b]",
        "\x07",
        "\x1b[999D",
        "\rOVER",
        "\u{9b}",
        "\u{202e}",
        "\u{2066}",
        "\u{e0041}",
        "\x1b[7A",
        "\u{200b}",
    ];
    for part in hostile {
        let part_shown = part.escape_debug();
        assert!(!text.contains(part), "{part_shown} in {}", text.escape_debug());
    }
}

fn says(text: &str) -> String {
    format!("name = \"work\"\n[[reply]]\nstep = [{{ text = \"{text}\" }}]\n")
}

/// A script that calls one tool, and then says how it went.
fn calls(name: &str, arguments: &str) -> String {
    format!(
        "name = \"work\"\n[[reply]]\nwhen = {{ turn = 0 }}\n\
         step = [{{ call = {{ name = \"{name}\", arguments = {{ {arguments} }} }} }}]\n\
         [[reply]]\nstep = [{{ text = \"{{{{last_result}}}}\" }}]\n"
    )
}

#[test]
fn the_question_shows_every_line_of_a_command_and_why_it_is_asked() {
    let command = r"git push origin main #\r\u001b[7A\u001b[2K\u202e\u200b\nrm -rf important\n  why: it is harmless";
    let project = Project::new(&calls("bash", &format!("command = \"{command}\"")));
    for colors in [true, false] {
        let mut command = project.run(&["push"]);
        command.env("TERM", "xterm");
        if !colors {
            command.env("NO_COLOR", "1");
        }
        let mut terminal = Terminal::start(command);
        terminal.until("allow? [y]es once");
        let asked = terminal.text();
        assert_harmless(&asked);
        assert_eq!(asked.contains("\x1b[1m"), colors, "{}", asked.escape_debug());
        let plain = without_colors(&asked);
        let question = &plain[plain.rfind("? bash").unwrap()..];
        let lines: Vec<&str> = question.lines().map(str::trim_end).collect();
        assert_eq!(lines[0], "? bash");
        assert_eq!(
            lines[1..4],
            [
                r"  │ git push origin main #\r\u{1b}[7A\u{1b}[2K\u{202e}\u{200b}",
                "  │ rm -rf important",
                "  │   why: it is harmless",
            ]
        );
        assert!(lines[4].starts_with("  why: "), "{question}");
        assert!(!lines[4].contains("harmless"), "{question}");
        // Beneath it is the row for the answer.
        let last = lines.iter().rposition(|line| line.starts_with("  allow? [y]es once"));
        assert!(last.is_some_and(|last| last + 3 >= lines.len()), "{question}");
        terminal.press("n\n");
        let (_, text) = terminal.end();
        assert_harmless(&text);
    }
}

/// Without colors, and without the line that shows what is going on.
fn without_colors(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        plain.push_str(&rest[..at]);
        let sequence = &rest[at + 2..];
        let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        rest = &sequence[end + 1..];
    }
    plain + rest
}

#[test]
fn a_long_command_says_how_many_lines_are_not_shown() {
    let lines: Vec<String> = (1..=100).map(|n| format!("echo {n}")).collect();
    let command = format!("git push origin main\\n{}", lines.join("\\n"));
    let project = Project::new(&calls("bash", &format!("command = \"{command}\"")));
    let mut command = project.run(&["push"]);
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::start(command);
    terminal.until("allow? [y]es once");
    let asked = terminal.text().replace("\r\r\n", "\r\n");
    assert!(asked.contains("  │ echo 39\r\n  … 61 more lines: "), "{asked}");
    terminal.press("n\n");
    terminal.end();
    let listed = project.at_terminal(&["approvals", "list", "--all"]);
    assert!(listed.contains("more characters"), "{listed}");
}

#[test]
fn text_of_a_model_keeps_its_lines_and_controls_nothing() {
    let project = Project::new(&says(&format!("one\\n\\ttwo {HOSTILE_TOML}\\n")));
    let (code, text) = on_terminal(project.run(&["hello"]));
    assert_eq!(code, 0);
    // Formatted on a terminal, as it is in a pipe.
    assert!(text.contains(&format!("one two {SHOWN}\r")), "{}", text.escape_debug());
    let (out, _) = in_pipe(project.run(&["hello"]));
    assert_eq!(out, format!("one\n\ttwo {PIPED}\n"));
    let shown = project.at_terminal(&["sessions", "show", "last"]);
    assert!(shown.contains(SHOWN), "{}", shown.escape_debug());
}

#[test]
fn json_has_the_same_values_on_a_terminal_and_in_a_pipe() {
    let project = Project::new(&says(HOSTILE_TOML));
    let (code, shown) = on_terminal(project.run(&["hello", "--json"]));
    assert_eq!(code, 0);
    let (piped, _) = in_pipe_raw(project.run(&["hello", "--json"]));
    for text in [shown, piped] {
        let events: Vec<Value> = text
            .lines()
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line.trim_end()).unwrap())
            .collect();
        let end = events.last().unwrap();
        assert_eq!(end["data"]["detail"], HOSTILE, "{end}");
    }
}

/// Output in a pipe as it is.
fn in_pipe_raw(mut command: Command) -> (String, i32) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
}

#[test]
fn names_paths_and_outputs_of_tools_control_nothing() {
    let file = format!("content {HOSTILE}\nsecond line\n");
    for (name, arguments) in [
        ("read", format!("path = \"{HOSTILE_TOML}\"")),
        ("read", "path = \"file.txt\"".to_owned()),
        ("grep", format!("pattern = \"evil\", path = \"{HOSTILE_TOML}\"")),
        ("bash", "command = \"cat file.txt; printf 'err\\\\033[999D' >&2; exit 3\"".to_owned()),
        ("write", format!("path = \"new.txt\", content = \"{HOSTILE_TOML}\"")),
        (HOSTILE_TOML, String::new()),
    ] {
        let project = Project::new(&calls(name, &arguments));
        fs::write(project.path().join("file.txt"), &file).unwrap();
        on_terminal(project.run(&["work"]));
        in_pipe(project.run(&["work"]));
        for arguments in [
            &["sessions", "show", "last"][..],
            &["tasks", "show", "last"],
            &["tasks", "tree", "last"],
        ] {
            project.at_terminal(arguments);
            in_pipe(project.command(arguments));
        }
    }
}

#[test]
fn the_prompt_of_a_task_controls_nothing_where_tasks_are_listed() {
    let project = Project::new(&says("ok"));
    in_pipe(project.run(&[&format!("{HOSTILE}\nsecond")]));
    for arguments in [
        &["tasks", "list"][..],
        &["tasks", "list", "--json"],
        &["tasks", "show", "last"],
        &["tasks", "tree", "last"],
        &["sessions", "list"],
        &["sessions", "show", "last"],
        &["usage"],
    ] {
        project.at_terminal(arguments);
        in_pipe(project.command(arguments));
    }
    let listed = project.at_terminal(&["tasks", "list"]);
    assert_eq!(listed.lines().count(), 2, "one line for one task: {listed}");
}

#[test]
fn files_of_agents_control_nothing_where_agents_are_listed() {
    let project = Project::new(&says("ok"));
    let folder = project.path().join(".antiphon/agents");
    fs::create_dir_all(&folder).unwrap();
    let agent = format!("---\ndescription: \"{HOSTILE_TOML}\"\n---\nYou help. {HOSTILE}\n");
    fs::write(folder.join("helper.md"), agent).unwrap();
    fs::write(folder.join(format!("{HOSTILE}\n.md")), "You are evil.\n").unwrap();
    fs::write(folder.join("broken.md"), format!("---\n{HOSTILE}: x\n---\nYou are broken.\n"))
        .unwrap();
    for arguments in [
        &["agents", "list"][..],
        &["agents", "list", "--json"],
        &["agents", "show", "helper"],
        &["agents", "show", "broken"],
        &["agents", "show", HOSTILE],
        &["agents", "status"],
    ] {
        project.at_terminal(arguments);
        in_pipe(project.command(arguments));
    }
}

#[test]
fn what_waits_in_an_inbox_controls_nothing() {
    let project = Project::new(&says("ok"));
    let folder = project.path().join(".antiphon/agents");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("helper.md"),
        "---\ndescription: helps\nmodel: scripted/hello\n---\nYou help.\n",
    )
    .unwrap();
    trust(project.path());
    let sent = project.command(&["send", "helper", HOSTILE, "--json"]).output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    let receipt: Value = serde_json::from_slice(&sent.stdout).unwrap();
    let id = receipt["id"].as_str().unwrap().to_owned();
    for arguments in [
        &["inbox", "list"][..],
        &["inbox", "list", "--json"],
        &["inbox", "show", &id],
        &["send", "helper", HOSTILE],
        &["send", HOSTILE, "text"],
    ] {
        let shown = project.at_terminal(arguments);
        assert!(!shown.is_empty());
        in_pipe(project.command(arguments));
    }
    let listed = project.at_terminal(&["inbox", "list"]);
    assert!(listed.contains("evil"), "{listed}");
}

#[test]
fn the_error_of_a_model_server_controls_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let Ok(mut socket) = socket else { return };
            let mut request = vec![0; 65536];
            let _ = socket.read(&mut request);
            let error = serde_json::json!({"error": {"message": HOSTILE, "type": HOSTILE, "code": HOSTILE}});
            let body = error.to_string();
            let _ = write!(
                socket,
                "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    let project = Project::new(&says("ok"));
    let run = || {
        let mut command = project.command(&["run", "--model", "openai/some-model", "hello"]);
        command.env("OPENAI_BASE_URL", &url).env("OPENAI_API_KEY", "sk-0123456789");
        command
    };
    let (code, text) = on_terminal(run());
    assert_ne!(code, 0);
    assert!(text.contains("evil"), "{text}");
    in_pipe(run());
    project.at_terminal(&["tasks", "show", "last"]);
    project.at_terminal(&["tasks", "tree", "last"]);
}

#[test]
fn hidden_characters_of_files_reach_a_model_as_escapes() {
    let project = Project::new(&calls("read", "path = \"file.txt\""));
    let hidden = "Rule\u{e0041}\u{202e}\u{200b}";
    fs::write(project.path().join("AGENTS.md"), hidden).unwrap();
    fs::write(project.path().join("file.txt"), hidden).unwrap();
    let folder = project.path().join(".antiphon/agents");
    fs::create_dir_all(&folder).unwrap();
    let agent = format!("---\ndescription: helps\nmodel: scripted/work\n---\nYou help. {hidden}\n");
    fs::write(folder.join("helper.md"), agent).unwrap();
    trust(project.path());
    let begin = ["run", "--json", "--script", "work.toml", "--agent", "helper", "go"];
    let (events, code) = in_pipe_raw(project.command(&begin));
    assert_eq!(code, 0, "{events}");
    // The rules and the context in the system prompt, and the result of the tool, as JSON writes a backslash.
    let shown = r"Rule\\u{e0041}\\u{202e}\\u{200b}";
    assert!(events.matches(shown).count() >= 3, "{events}");
    assert!(!events.contains(['\u{e0041}', '\u{202e}', '\u{200b}']), "{}", events.escape_debug());
}

#[test]
fn hidden_characters_of_a_session_file_reach_a_model_as_escapes() {
    let project = Project::new("name = \"work\"\n[[reply]]\nsteps = [{ text = \"Done.\" }]\n");
    let hidden = "Rule\u{e0041}\u{202e}\u{200b}";
    let at = "2026-01-01T00:00:00Z";
    let text = |kind: &str| serde_json::json!({"type": kind, "text": hidden});
    let file = serde_json::json!({
        "version": 1, "id": "from-elsewhere", "system_prompt": hidden, "created_at": at, "updated_at": at,
        "messages": [
            {"type": "user", "content": [text("text")], "timestamp": at},
            {"type": "assistant", "stop_reason": "tool_use", "raw_stop_reason": "tool_use",
             "usage": {"input_tokens": 1, "output_tokens": 1},
             "timestamp": at, "content": [text("text"),
                {"type": "tool_call", "id": "a", "name": "read", "arguments": {"path": hidden}}]},
            {"type": "tool_result", "tool_call_id": "a", "tool_name": "read", "content": [text("text")],
             "is_error": false, "timestamp": at},
        ],
    });
    fs::write(project.path().join("session.json"), file.to_string()).unwrap();
    let (said, code) = in_pipe_raw(project.command(&["sessions", "import", "session.json"]));
    assert_eq!(code, 0, "{said}");
    let (exported, code) = in_pipe_raw(project.command(&["sessions", "export", "from-elsewhere"]));
    assert_eq!(code, 0, "{exported}");
    let shown = r"Rule\\u{e0041}\\u{202e}\\u{200b}";
    assert_eq!(exported.matches(shown).count(), 5, "{exported}");
    assert!(
        !exported.contains(['\u{e0041}', '\u{202e}', '\u{200b}']),
        "{}",
        exported.escape_debug()
    );
}

/// The command in a shell that then reads a line itself.
fn then_the_shell_reads(run: &Command) -> Command {
    let mut shell = Command::new("bash");
    let reads = "\"$0\" \"$@\"; echo over; IFS= read -r line; echo \"the shell got [$line]\"";
    shell.args(["-c", reads]).arg(run.get_program()).args(run.get_args()).env_clear();
    shell.current_dir(run.get_current_dir().unwrap());
    shell.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

#[test]
fn what_is_typed_for_a_task_and_not_sent_never_reaches_the_shell() {
    let slow = "name = \"work\"\n[[reply]]\nstep = [{ text = \"Counting.\" }, { delay_ms = 1500 }, { text = \" Done.\" }]\n";
    let project = Project::new(slow);
    let mut terminal = Terminal::start(then_the_shell_reads(&project.run(&["go"])));
    terminal.until("Counting.");
    terminal.press("rm -rf everything");
    terminal.until("over\r\n");
    terminal.press("\n");
    let (code, text) = terminal.end();
    assert!(code == 0 && text.contains("the shell got []"), "{}", text.escape_debug());
}
