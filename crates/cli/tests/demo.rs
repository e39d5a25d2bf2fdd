//! `antiphon demo` in the environment of a new user: no key, no network, no terminal.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Time for the processes of a demo to end.
const EXIT_WAIT: Duration = Duration::from_secs(10);

/// The chapters in order, as JSON names them.
const CHAPTERS: [&str; 8] =
    ["plan", "fan_out", "steer", "approval", "kill", "recovery", "tests", "summary"];

/// A folder for a demo, without a user's configuration.
struct Environment {
    folder: tempfile::TempDir,
}

impl Environment {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn command(&self, program: &Path, arguments: &[&str]) -> Command {
        let own = Path::new(env!("CARGO_BIN_EXE_antiphon")).parent().unwrap().to_owned();
        let path = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths([own].into_iter().chain(std::env::split_paths(&path)));
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder.path()).env_clear();
        command.env("HOME", self.path("home")).env("PATH", path.unwrap());
        command.env("TMPDIR", self.folder.path()).stdin(Stdio::null());
        command
    }

    fn demo(&self, arguments: &[&str]) -> Command {
        let arguments = [&["demo", "--fast"], arguments].concat();
        self.command(Path::new(env!("CARGO_BIN_EXE_antiphon")), &arguments)
    }

    /// Starts a demo and waits until it shows this chapter.
    fn start_until(&self, arguments: &[&str], chapter: &str) -> Child {
        let mut command = self.demo(&[&["--json"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let wanted = format!("\"chapter\":\"{chapter}\"");
        assert!(lines.any(|line| line.unwrap().contains(&wanted)), "there was no {chapter}");
        child
    }

    /// The processes of a demo that are left after a while.
    fn processes_left(&self) -> Vec<String> {
        let until = Instant::now() + EXIT_WAIT;
        loop {
            let left = processes_in(self.folder.path());
            if left.is_empty() || Instant::now() >= until {
                return left;
            }
            // There is no notification for the end of a process that is not a child.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The names of its entries.
    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        entries.map(Result::unwrap).map(name).collect()
    }
}

/// Processes whose working folder or environment contains this folder.
fn processes_in(folder: &Path) -> Vec<String> {
    let name = folder.as_os_str().as_bytes();
    let about = |process: &Path| {
        let cwd = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        let environ = fs::read(process.join("environ")).unwrap_or_default();
        let mentions = environ.windows(name.len()).any(|part| part == name);
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        // A zombie has no command line.
        ((cwd || mentions) && !line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned())
    };
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes.filter_map(|process| about(&process.path())).collect()
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// The word behind this mark.
fn word_after<'a>(text: &'a str, mark: &str) -> &'a str {
    assert!(text.contains(mark), "no `{mark}` in:\n{text}");
    text.split_once(mark).unwrap().1.split_whitespace().next().unwrap()
}

fn objects(output: &Output) -> Vec<Value> {
    let lines = std::str::from_utf8(&output.stdout).unwrap().lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_team_fixes_a_project_despite_a_kill_and_the_suggested_commands_work() {
    let environment = Environment::new();
    let output = environment.demo(&["--dir", "shown"]).output().unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{err}\n{out}");
    assert_eq!(err, "");
    assert!(out.contains("The model is a script"), "{out}");
    let (before, after) = out.split_once("The tests pass now").unwrap();
    assert!(before.contains("FAIL  10 pieces") && !after.contains("FAIL"), "{out}");
    assert!(after.contains("ok    10 pieces at 250 cents are 2250"), "{out}");
    // There were two servers, and the first was killed.
    let first = word_after(&out, "antiphon serve is process ");
    assert_eq!(word_after(&out, "kill -9 "), first, "{out}");
    let second = word_after(&out, "✓ process ");
    assert_ne!(second, first);
    assert!(
        out.contains("✓ read your message") && out.contains("the demo answered for you"),
        "{out}"
    );
    assert!(out.contains("none was run again") && !after.contains('✗'), "{out}");
    let project = environment.path("shown/project");
    let changes = fs::read_to_string(project.join("CHANGELOG.md")).unwrap();
    assert_eq!(changes.matches("(#42)").count(), 1, "{changes}");
    assert_eq!(environment.processes_left(), [""; 0]);
    // The suggested commands work as they are printed.
    let (_, next) = out.split_once("What to try next:").unwrap();
    let commands = next.lines().map(|line| line.split("  #").next().unwrap().trim());
    let is_short = |line: &&str| line.starts_with("antiphon tasks") || line.contains(" run ");
    let commands: Vec<&str> = commands.filter(is_short).collect();
    assert_eq!(commands.len(), 3, "{next}");
    assert!(next.contains(&format!("cd {}", project.canonicalize().unwrap().display())), "{next}");
    let state = next.lines().find(|line| line.contains("export ANTIPHON_STATE=")).unwrap();
    let state = state.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    for line in commands {
        let script = format!("{state}\n{line}");
        let output =
            environment.command(Path::new("sh"), &["-c", &script]).current_dir(&project).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{line}: {}", text(output.stderr));
        assert!(!output.stdout.is_empty(), "{line}");
    }
}

#[test]
fn as_json_the_chapters_come_in_order_and_the_last_line_is_a_summary() {
    let environment = Environment::new();
    // A scripted demo does not read the user's configuration.
    fs::create_dir_all(environment.path("home/.config/antiphon")).unwrap();
    fs::write(environment.path("home/.config/antiphon/config.toml"), "broken = [").unwrap();
    let output =
        environment.demo(&["--json", "--rm"]).env("ANTIPHON_MODEL", "none").output().unwrap();
    assert!(output.status.success(), "{}", text(output.stderr));
    let objects = objects(&output);
    let chapters = objects.iter().filter(|object| object["type"] == "chapter");
    let chapters: Vec<&str> = chapters.map(|object| object["chapter"].as_str().unwrap()).collect();
    assert_eq!(chapters, CHAPTERS);
    let summary = objects.last().unwrap();
    assert_eq!(summary["type"], "summary");
    for fact in ["killed", "steered", "tests_pass"] {
        assert_eq!(summary[fact], true, "{summary}");
    }
    assert_eq!(summary["asked"], 1, "{summary}");
    assert!(summary["down_ms"].as_u64().unwrap() < 10_000, "{summary}");
    let checks = summary["checks"].as_array().unwrap();
    assert!(checks.len() >= 6 && checks.iter().all(|check| check["holds"] == true), "{summary}");
    assert_eq!(environment.entries(), ["home"]);
    assert_eq!(environment.processes_left(), [""; 0]);
}

#[test]
fn ctrl_c_ends_every_process_and_says_what_is_kept() {
    let environment = Environment::new();
    let child = environment.start_until(&["--dir", "shown"], "approval");
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    let err = text(output.stderr);
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(err.contains("no process is left") && err.contains("antiphon tasks tree"), "{err}");
    assert_eq!(environment.processes_left(), [""; 0]);
    assert!(environment.path("shown/state/projects").exists());
    let child = environment.start_until(&["--rm"], "fan_out");
    signal(&child, "-TERM");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(environment.processes_left(), [""; 0]);
    assert_eq!(environment.entries(), ["shown"]);
}

#[test]
fn a_killed_demo_ends_its_server() {
    let environment = Environment::new();
    let mut child = environment.start_until(&[], "fan_out");
    assert!(processes_in(environment.folder.path()).len() > 1, "there is a server");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(environment.processes_left(), [""; 0]);
}

#[test]
fn the_demo_says_which_parts_a_model_skipped() {
    let environment = Environment::new();
    // This model answers without a tool call.
    let output = environment.demo(&["--model", "scripted/hello"]).output().unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("the tests do not pass"), "{err}");
    for text in ["No agent was called", "No agent was steered", "No approval was", "kill -9 "] {
        assert!(out.contains(text), "{text}: {out}");
    }
    assert!(out.contains("The tests still fail") && out.contains("none was run again"), "{out}");
    assert_eq!(environment.processes_left(), [""; 0]);
}

#[test]
fn a_folder_or_a_model_that_cannot_be_used_is_refused_before_anything_is_started() {
    let environment = Environment::new();
    fs::create_dir(environment.path("full")).unwrap();
    fs::write(environment.path("full/mine"), "").unwrap();
    fs::write(environment.path("file"), "").unwrap();
    let before = environment.entries();
    for (arguments, expected) in [
        (["--dir", "full"], "Name an empty or new folder with --dir"),
        (["--dir", "file"], "Name an empty or new folder with --dir"),
        (["--dir", "file/below"], "Name an empty or new folder with --dir"),
        (["--model", "anthropic/claude-sonnet-4-5"], "ANTHROPIC_API_KEY"),
        (["--model", "nobody/nothing"], "there is no provider `nobody`"),
    ] {
        let output = environment.demo(&arguments).output().unwrap();
        let err = text(output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
        assert!(err.contains(expected), "{arguments:?}: {err}");
        assert_eq!(text(output.stdout), "");
    }
    assert_eq!(environment.entries(), before);
}
