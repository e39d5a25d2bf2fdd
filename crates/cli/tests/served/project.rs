//! A project with a task that asks, and the binary in it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;

use crate::project_folder::{ProjectFolder, home, state};

/// Asks before it pushes; then does what the message asks for: hangs, or repeats it.
const SCRIPT: &str = r#"
name = "work"
[[reply]]
when = { turn = 0 }
step = [{ call = { name = "bash", arguments = { command = "touch pushed; git push origin main" } } }]
[[reply]]
when = { last_user_contains = "hang" }
step = [{ stall = true }]
[[reply]]
step = [{ text = "Heard: {{last_user}}" }]
"#;

/// What was seen of a command.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Seen {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A project whose only task waits for an answer.
pub(crate) struct Project {
    folder: ProjectFolder,
}

impl Project {
    pub(crate) fn that_asks(prompt: &str) -> Self {
        let folder = ProjectFolder::new();
        let project = Self { folder };
        fs::write(project.path().join("work.toml"), SCRIPT).unwrap();
        let config = home(project.path()).join(".config/antiphon");
        fs::create_dir_all(&config).unwrap();
        let rules = "model = \"scripted/hello\"\n[permissions]\nask = [\"bash(git push *)\"]\n";
        fs::write(config.join("config.toml"), rules).unwrap();
        let script = ["--model", "scripted/work", "--script", "work.toml", "--ask", "wait"];
        let seen = project.antiphon(&[&["run", prompt], &script[..]].concat());
        assert_eq!(seen.code, 3, "{seen:?}");
        project
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("antiphon"));
        command.current_dir(self.path()).env_clear().env("HOME", home(self.path()));
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.args(arguments).stdin(Stdio::null());
        command
    }

    pub(crate) fn antiphon(&self, arguments: &[&str]) -> Seen {
        Seen::of(self.command(arguments).output().unwrap())
    }

    /// Runs a command in another folder, through the server of this project.
    pub(crate) fn antiphon_from(&self, folder: &Path, arguments: &[&str]) -> Seen {
        Seen::of(self.command_from(folder, arguments).output().unwrap())
    }

    /// A command in another folder, through the server of this project.
    pub(crate) fn command_from(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = self.command(arguments);
        command.current_dir(folder).env("ANTIPHON_SERVER", self.url());
        command.arg("--token-file").arg(state(self.path()).join("token"));
        command
    }

    /// Address of the server of this project.
    pub(crate) fn url(&self) -> String {
        let record = fs::read_to_string(state(self.path()).join("server.json")).unwrap();
        let record: Value = serde_json::from_str(&record).unwrap();
        record["url"].as_str().unwrap().to_owned()
    }

    /// Runs a command through the server at `url`, with this token.
    pub(crate) fn antiphon_at(&self, url: &str, token: &str, arguments: &[&str]) -> Seen {
        let mut command = self.command(arguments);
        command.env("ANTIPHON_SERVER", url).env("ANTIPHON_TOKEN", token);
        Seen::of(command.output().unwrap())
    }

    /// Begins a command and does not wait for it.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The id of the task.
    pub(crate) fn last(&self) -> String {
        let listed = self.antiphon(&["tasks", "list", "--json"]).out;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        listed[0]["task_id"].as_str().unwrap().to_owned()
    }

    /// The id of the oldest task.
    pub(crate) fn first(&self) -> String {
        let listed = self.antiphon(&["tasks", "list", "--json"]).out;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        listed.as_array().unwrap().last().unwrap()["task_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn serve(&self) -> Server {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on "), "{line}");
        Server { process, out }
    }
}

/// A server that is at work. It is killed when it is dropped.
pub(crate) struct Server {
    process: Child,
    out: BufReader<ChildStdout>,
}

impl Server {
    /// Ends in order. Returns what it printed since it began to listen.
    pub(crate) fn end(mut self) -> String {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let mut out = String::new();
        self.out.read_to_string(&mut out).unwrap();
        assert!(self.process.wait().unwrap().success());
        out
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
