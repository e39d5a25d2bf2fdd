//! A project with agents that answer offline, and the binary in it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::project_folder::{ProjectFolder, home, trust};

/// Repeats its message; hangs or waits when the message asks for it.
const SCRIPT: &str = r#"
name = "echo"
[[reply]]
when = { last_user_contains = "stall" }
steps = [{ stall = true }]
[[reply]]
when = { last_user_contains = "break down" }
steps = [{ error = { kind = "invalid_request", message = "broken" } }]
[[reply]]
when = { last_user_contains = "slow" }
chunk_chars = 1
delay_ms = 40
steps = [{ text = "Slowly: {{last_user}}" }]
[[reply]]
steps = [{ text = "Heard: {{last_user}}" }]
"#;

const CONFIG: &str = "[scripts]\necho = \"scripts/echo.toml\"\n";

/// How long something may take that comes by itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was seen of a command.
#[derive(Debug, PartialEq, Eq)]
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

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A project with the agents `echo` and `quiet`, who may talk to each other.
pub(crate) struct Project {
    folder: ProjectFolder,
}

impl Project {
    pub(crate) fn new() -> Self {
        Self::configured("")
    }

    /// With more in the user's configuration.
    pub(crate) fn configured(more: &str) -> Self {
        let project = Self { folder: ProjectFolder::new() };
        let config = project.home().join(".config/antiphon");
        fs::create_dir_all(config.join("scripts")).unwrap();
        fs::write(config.join("config.toml"), format!("{CONFIG}{more}")).unwrap();
        fs::write(config.join("scripts/echo.toml"), SCRIPT).unwrap();
        fs::create_dir_all(project.agents()).unwrap();
        project.define("echo", "agents: [quiet]");
        project.define("quiet", "agents: [echo]");
        project
    }

    /// With a model for agents that name none.
    pub(crate) fn with_model() -> Self {
        let project = Self::new();
        let config = project.home().join(".config/antiphon/config.toml");
        let with_model =
            format!("model = \"scripted/echo\"\n{}", fs::read_to_string(&config).unwrap());
        fs::write(&config, with_model).unwrap();
        project
    }

    pub(crate) fn define(&self, name: &str, fields: &str) {
        let text = format!(
            "---\ndescription: Repeats its message.\nmodel: scripted/echo\n{fields}\n---\nYou are {name}.\n"
        );
        fs::write(self.agents().join(format!("{name}.md")), text).unwrap();
        trust(self.folder.path());
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub(crate) fn agents(&self) -> PathBuf {
        self.path().join(".antiphon/agents")
    }

    pub(crate) fn home(&self) -> PathBuf {
        home(self.folder.path())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("antiphon"));
        command.current_dir(self.path()).env_clear().env("HOME", self.home());
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.args(arguments).stdin(Stdio::null());
        command
    }

    pub(crate) fn antiphon(&self, arguments: &[&str]) -> Seen {
        Seen::of(self.command(arguments).output().unwrap())
    }

    /// The same, with something on standard input.
    pub(crate) fn fed(&self, arguments: &[&str], input: &[u8]) -> Seen {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        // Who does not want to read it does not have to.
        let _ = process.stdin.take().unwrap().write_all(input);
        Seen::of(process.wait_with_output().unwrap())
    }

    /// Begins a command and does not wait for it.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Waits until everything that was sent to an agent before is read.
    pub(crate) fn caught_up(&self, agent: &str) {
        let seen = self.antiphon(&["send", agent, "--request", "are you there", "--wait"]);
        assert_eq!(seen.code, 0, "{seen:?}");
    }

    /// The newest task of an agent.
    pub(crate) fn task(&self, agent: &str) -> String {
        let listed = self.antiphon(&["tasks", "list", "--json", "--limit", "100"]).json();
        let tasks = listed.as_array().unwrap().iter();
        let mut own = tasks.filter(|task| task["agent"] == agent && task["resident"] == true);
        own.next().unwrap()["task_id"].as_str().unwrap().to_owned()
    }

    /// What was said in the conversation of an agent, by whom.
    pub(crate) fn said(&self, agent: &str) -> Vec<(String, String)> {
        let shown = self.antiphon(&["tasks", "show", &self.task(agent), "--json"]).json();
        let said = shown["conversation"].as_array().unwrap().iter().map(|message| {
            let text = message["content"][0]["text"].as_str().unwrap_or_default();
            (message["type"].as_str().unwrap().to_owned(), text.to_owned())
        });
        said.collect()
    }

    /// Looks again and again, until what is looked for is there.
    pub(crate) fn until<T>(&self, what: &str, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(Instant::now() < end, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn serve(&self) -> Server {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut said = String::new();
        while !said.contains("requests are read from") {
            assert!(out.read_line(&mut said).unwrap() > 0, "{said}");
        }
        Server { process, out, said }
    }
}

/// Writes a request the recommended way: to a temporary name, then renamed.
pub(crate) fn dropped(folder: &Path, name: &str, request: &Value) {
    let elsewhere = folder.join(format!(".{name}.tmp"));
    fs::write(&elsewhere, request.to_string()).unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(&elsewhere, folder.join(name)).unwrap();
}

/// A server that is at work. It is killed when it is dropped.
pub(crate) struct Server {
    process: Child,
    out: BufReader<ChildStdout>,
    /// What it said when it began.
    pub(crate) said: String,
}

impl Server {
    /// Ends in order.
    pub(crate) fn end(mut self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.out.read_to_string(&mut String::new()).unwrap();
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
