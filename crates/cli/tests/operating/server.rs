//! A project with a server at work.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::project_folder::{ProjectFolder, antiphon, home, state};

/// A folder, and commands in it.
pub(crate) struct Project(ProjectFolder);

impl Project {
    pub(crate) fn new() -> Self {
        Self(ProjectFolder::new())
    }

    /// One for each user that the test can be.
    pub(crate) fn each() -> Vec<Self> {
        ProjectFolder::each().into_iter().map(Self).collect()
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The user's own configuration, beside the model that answers from a script.
    pub(crate) fn configure(&self, text: &str) {
        let text = format!("model = \"scripted/hello\"\n{text}");
        let folder = home(self.path()).join(".config/antiphon");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), text).unwrap();
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = antiphon(self.path());
        command.args(words);
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// What a command that works prints.
    pub(crate) fn out(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.out(words)).unwrap()
    }

    pub(crate) fn token(&self) -> String {
        let token = fs::read_to_string(state(self.path()).join("token")).unwrap();
        token.trim().to_owned()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path().join("log")).unwrap()
    }
}

/// A server that is at work. It is ended when it is dropped.
pub(crate) struct Server {
    process: Child,
    address: String,
}

impl Server {
    pub(crate) fn start(project: &Project) -> Self {
        Self::with(project, &[], &[])
    }

    pub(crate) fn with(project: &Project, words: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = project.command(&["serve", "--listen", "127.0.0.1:0"]);
        let log = File::create(project.path().join("log")).unwrap();
        command.args(words).envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(log);
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap().to_owned();
        Self { process, address }
    }

    /// With these arguments: it does not report where it listens.
    pub(crate) fn reported(project: &Project, words: &[&str]) -> (Self, String) {
        let log = File::create(project.path().join("log")).unwrap();
        let mut command = project.command(&["serve"]);
        let mut process = command.args(words).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let place = line.trim().strip_prefix("listening on ").unwrap_or_default().to_owned();
        (Self { process, address: String::new() }, place)
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// What is answered: the status and the body. `more` are further lines of the head.
    pub(crate) fn ask(&self, key: &str, line: &str, more: &str, body: &str) -> (u16, String) {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        let (address, length) = (&self.address, body.len());
        let request = format!(
            "{line} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n{more}\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Sends these bytes, and returns the connection.
    pub(crate) fn send(&self, text: &str) -> TcpStream {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.write_all(text.replace("ADDRESS", &self.address).as_bytes()).unwrap();
        socket
    }

    pub(crate) fn status(&self, key: &str, line: &str) -> u16 {
        self.ask(key, line, "", "").0
    }

    /// Has a task done, and waits until it is.
    pub(crate) fn work(&self, key: &str, more: &str) {
        let (status, body) = self.ask(key, "POST /v1/tasks", more, r#"{"message":"hello"}"#);
        assert_eq!(status, 201, "{body}");
        let task: Value = serde_json::from_str(&body).unwrap();
        let line = format!("GET /v1/tasks/{}/rest", task["task_id"].as_str().unwrap());
        let (status, body) = self.ask(key, &line, "", "");
        assert_eq!(status, 200, "{body}");
        assert!(body.contains(r#""status":"completed""#), "{body}");
    }

    /// Ends in order.
    pub(crate) fn end(mut self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
