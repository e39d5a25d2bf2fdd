//! A server in a project.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test binary uses a part; a test fails by panicking"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::project_folder::{ProjectFolder, home, state};

/// How long a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A project whose model answers from `script`.
pub(crate) fn project(script: &str) -> ProjectFolder {
    let folder = ProjectFolder::new();
    let config = home(folder.path()).join(".config/antiphon");
    fs::create_dir_all(&config).unwrap();
    let settings = "model = \"scripted/test\"\n[scripts]\ntest = \"test.toml\"\n";
    fs::write(config.join("config.toml"), settings).unwrap();
    fs::write(config.join("test.toml"), script).unwrap();
    folder
}

/// A script that runs one command in each step, and then ends.
pub(crate) fn commands(commands: &[&str]) -> String {
    let step = |(turn, command): (usize, &&str)| {
        format!(
            "[[reply]]\nwhen = {{ turn = {turn} }}\nstep = [{{ call = {{ name = \"bash\", \
             arguments = {{ command = \"{command}\" }} }} }}]\n"
        )
    };
    let steps: String = commands.iter().enumerate().map(step).collect();
    format!("name = \"test\"\n{steps}[[reply]]\nstep = [{{ text = \"That was all.\" }}]\n")
}

pub(crate) fn antiphon(folder: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("antiphon"));
    with_environment(&mut command, folder);
    command
}

pub(crate) fn with_environment(command: &mut Command, folder: &Path) {
    command.current_dir(folder).env_clear().env("HOME", home(folder));
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command.stdin(Stdio::null());
}

/// Repeats `check` until it returns something.
pub(crate) fn until<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    // After a longer outage the pauses are longer too.
    let outage_s: Option<f64> = std::env::var("OUTAGE_S").ok().and_then(|text| text.parse().ok());
    let end =
        Instant::now() + PATIENCE + Duration::from_secs_f64(outage_s.unwrap_or_default() * 3.0);
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A running server. It is killed when it is dropped.
pub(crate) struct Server {
    pub(crate) process: Child,
    out: BufReader<ChildStdout>,
    pub(crate) address: String,
    token: String,
}

impl Server {
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = antiphon(folder);
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments);
        if !arguments.contains(&"--mode") {
            command.args(["--mode", "full"]);
        }
        let token = state(folder).join("token");
        Self::spawn(command, |_| token)
    }

    /// `token` is where the token is, once the process runs.
    pub(crate) fn spawn(mut command: Command, token: impl FnOnce(u32) -> PathBuf) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let Some(address) = line.trim().strip_prefix("listening on http://") else {
            let mut error = String::new();
            process.stderr.take().unwrap().read_to_string(&mut error).unwrap();
            panic!("{line}{error}");
        };
        let token = text(&token(process.id())).trim().to_owned();
        Self { address: address.to_owned(), out, token, process }
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        let (address, token, length) = (&self.address, &self.token, body.len());
        let head = format!(
            "{method} {path} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).unwrap();
        socket.write_all(body.as_bytes()).unwrap();
        let mut received = String::new();
        socket.read_to_string(&mut received).unwrap();
        let (head, body) = received.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// Starts a task. Returns its path.
    pub(crate) fn task(&self) -> String {
        let answer = self.ask("POST", "/v1/tasks", r#"{"message":"go"}"#);
        assert_eq!(answer.status, 201, "{answer:?}");
        format!("/v1/tasks/{}", answer.json()["task_id"].as_str().unwrap())
    }

    pub(crate) fn status(&self, task: &str) -> String {
        self.ask("GET", task, "").json()["status"].as_str().unwrap().to_owned()
    }

    pub(crate) fn completed(&self, task: &str) {
        until("the task completes", || (self.status(task) == "completed").then_some(()));
    }

    /// The sample of a metric.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let scrape = self.ask("GET", "/metrics", "");
        assert_eq!(scrape.status, 200, "{scrape:?}");
        let line = scrape.body.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} in {}", scrape.body)).trim().parse().unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.process.id(), name);
    }

    /// Waits for the end. Returns the exit status and what was on standard error.
    pub(crate) fn ended(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        let mut error = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        (self.process.wait().unwrap(), error)
    }
}

pub(crate) fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
