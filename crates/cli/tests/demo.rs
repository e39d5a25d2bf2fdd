//! `antiphon demo` as somebody meets it who has just built the binary: no key, no network, no terminal.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long what a demo started may take to be gone.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// Everything that is shown, in order.
const SCENES: [&str; 8] =
    ["plan", "fan_out", "steer", "approval", "kill", "recovery", "tests", "summary"];

/// A place for a demo, with nothing of the user's own.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
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

    /// Begins a demo and waits until it shows this scene.
    fn begin(&self, arguments: &[&str], scene: &str) -> Child {
        let mut command = self.demo(&[&["--json"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let wanted = format!("\"scene\":\"{scene}\"");
        assert!(lines.any(|line| line.unwrap().contains(&wanted)), "there was no {scene}");
        child
    }

    /// Processes of a demo that are left, after a while.
    fn processes_left(&self) -> Vec<String> {
        let until = Instant::now() + GONE_AFTER;
        loop {
            let left = processes_in(self.folder.path());
            if left.is_empty() || Instant::now() >= until {
                return left;
            }
            // Nobody tells when somebody else's process is gone.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What is in it, by name.
    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        entries.map(Result::unwrap).map(name).collect()
    }
}

/// Processes that work in a folder or have it in their environment.
fn processes_in(folder: &Path) -> Vec<String> {
    let name = folder.as_os_str().as_bytes();
    let about = |process: &Path| {
        let cwd = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        let told = fs::read(process.join("environ")).unwrap_or_default();
        let told = told.windows(name.len()).any(|part| part == name);
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        // What is dead and not waited for has no command line.
        ((cwd || told) && !line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned())
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

/// What stands in a text behind this, up to a blank.
fn behind<'a>(text: &'a str, mark: &str) -> &'a str {
    assert!(text.contains(mark), "no `{mark}` in:\n{text}");
    text.split_once(mark).unwrap().1.split_whitespace().next().unwrap()
}

fn objects(output: &Output) -> Vec<Value> {
    let lines = std::str::from_utf8(&output.stdout).unwrap().lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_team_mends_a_project_over_a_kill_and_what_is_left_can_be_looked_at() {
    let place = Place::new();
    let output = place.demo(&["--dir", "shown"]).output().unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{err}\n{out}");
    assert_eq!(err, "");
    assert!(out.contains("The model is a script"), "{out}");
    // Red, then green, in that order.
    let (red, green) = out.split_once("Red has become green").unwrap();
    assert!(red.contains("FAIL  10 pieces") && !green.contains("FAIL"), "{out}");
    assert!(green.contains("ok    10 pieces at 250 cents are 2250"), "{out}");
    // Two servers, and the first was killed.
    let first = behind(&out, "antiphon serve is process ");
    assert_eq!(behind(&out, "kill -9 "), first, "{out}");
    let second = behind(&out, "✓ process ");
    assert_ne!(second, first);
    assert!(out.contains("✓ heard it") && out.contains("the demo answered for you"), "{out}");
    assert!(out.contains("none was run again") && !green.contains('✗'), "{out}");
    let project = place.path("shown/project");
    let changes = fs::read_to_string(project.join("CHANGELOG.md")).unwrap();
    assert_eq!(changes.matches("(#42)").count(), 1, "{changes}");
    assert_eq!(place.processes_left(), [""; 0]);
    // What it says can be tried next works as it is printed.
    let (_, next) = out.split_once("What to try next:").unwrap();
    let commands = next.lines().map(|line| line.split("  #").next().unwrap().trim());
    let is_short = |line: &&str| line.starts_with("antiphon tasks") || line.contains(" run ");
    let commands: Vec<&str> = commands.filter(is_short).collect();
    assert_eq!(commands.len(), 3, "{next}");
    assert!(next.contains(&format!("cd {}", project.canonicalize().unwrap().display())), "{next}");
    for line in commands {
        let tried = place.command(Path::new("sh"), &["-c", line]).current_dir(&project).output();
        let tried = tried.unwrap();
        assert!(tried.status.success(), "{line}: {}", text(tried.stderr));
        assert!(!tried.stdout.is_empty(), "{line}");
    }
}

#[test]
fn as_json_the_scenes_come_in_order_and_the_last_line_sums_up() {
    let place = Place::new();
    // A script needs nothing of the user's own, be it as broken as it may.
    fs::create_dir_all(place.path("home/.config/antiphon")).unwrap();
    fs::write(place.path("home/.config/antiphon/config.toml"), "broken = [").unwrap();
    let output = place.demo(&["--json", "--rm"]).env("ANTIPHON_MODEL", "none").output().unwrap();
    assert!(output.status.success(), "{}", text(output.stderr));
    let objects = objects(&output);
    let scenes = objects.iter().filter(|object| object["type"] == "scene");
    let scenes: Vec<&str> = scenes.map(|object| object["scene"].as_str().unwrap()).collect();
    assert_eq!(scenes, SCENES);
    let summary = objects.last().unwrap();
    assert_eq!(summary["type"], "summary");
    for fact in ["killed", "steered", "tests_pass"] {
        assert_eq!(summary[fact], true, "{summary}");
    }
    assert_eq!(summary["asked"], 1, "{summary}");
    assert!(summary["down_ms"].as_u64().unwrap() < 10_000, "{summary}");
    let checks = summary["checks"].as_array().unwrap();
    assert!(checks.len() >= 6 && checks.iter().all(|check| check["holds"] == true), "{summary}");
    // It was asked to be removed.
    assert_eq!(place.entries(), ["home"]);
    assert_eq!(place.processes_left(), [""; 0]);
}

#[test]
fn ctrl_c_ends_everything_and_says_what_is_left() {
    let place = Place::new();
    let child = place.begin(&["--dir", "shown"], "approval");
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    let err = text(output.stderr);
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(err.contains("no process is left") && err.contains("antiphon tasks tree"), "{err}");
    assert_eq!(place.processes_left(), [""; 0]);
    assert!(place.path("shown/project/.antiphon/journal.db").exists());
    let child = place.begin(&["--rm"], "fan_out");
    signal(&child, "-TERM");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(place.processes_left(), [""; 0]);
    assert_eq!(place.entries(), ["shown"]);
}

#[test]
fn a_demo_that_is_killed_itself_takes_its_server_with_it() {
    let place = Place::new();
    let mut child = place.begin(&[], "fan_out");
    assert!(processes_in(place.folder.path()).len() > 1, "there is a server");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.processes_left(), [""; 0]);
}

#[test]
fn what_a_model_does_not_do_is_said() {
    let place = Place::new();
    // It says hello, and sends out nobody.
    let output = place.demo(&["--model", "scripted/hello"]).output().unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("the tests do not pass"), "{err}");
    for said in ["Nobody was sent out", "Nobody was steered", "Nothing was asked", "kill -9 "] {
        assert!(out.contains(said), "{said}: {out}");
    }
    assert!(out.contains("It is still red") && out.contains("none was run again"), "{out}");
    assert_eq!(place.processes_left(), [""; 0]);
}

#[test]
fn a_folder_or_a_model_that_cannot_be_used_is_told_before_anything_is_begun() {
    let place = Place::new();
    fs::create_dir(place.path("full")).unwrap();
    fs::write(place.path("full/mine"), "").unwrap();
    fs::write(place.path("file"), "").unwrap();
    let before = place.entries();
    for (arguments, said) in [
        (["--dir", "full"], "empty or not there yet with --dir"),
        (["--dir", "file"], "empty or not there yet with --dir"),
        (["--dir", "file/below"], "empty or not there yet with --dir"),
        (["--model", "anthropic/claude-sonnet-4-5"], "ANTHROPIC_API_KEY"),
        (["--model", "nobody/nothing"], "there is no provider `nobody`"),
    ] {
        let output = place.demo(&arguments).output().unwrap();
        let err = text(output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
        assert!(err.contains(said), "{arguments:?}: {err}");
        assert_eq!(text(output.stdout), "");
    }
    assert_eq!(place.entries(), before);
}
