//! Two projects with a server each: `here`, and its peer `office`. Either can be killed and started again.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test binary uses a part; a test fails by panicking"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::project_folder::{ProjectFolder, home, state, trust};

/// How long a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// Repeats `check` until it returns something.
pub(crate) fn until<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// One project and its server.
pub(crate) struct Side {
    pub(crate) folder: ProjectFolder,
    port: u16,
    process: Option<Child>,
}

impl Side {
    /// A project whose model answers from `script`, with these agents and settings.
    fn new(script: &str, agents: &[(&str, &str)], settings: &str) -> Self {
        let folder = ProjectFolder::new();
        let config = home(folder.path()).join(".config/antiphon");
        fs::create_dir_all(&config).unwrap();
        let settings =
            format!("model = \"scripted/test\"\n[scripts]\ntest = \"test.toml\"\n{settings}");
        fs::write(config.join("config.toml"), settings).unwrap();
        fs::write(config.join("test.toml"), script).unwrap();
        let place = folder.path().join(".antiphon/agents");
        fs::create_dir_all(&place).unwrap();
        for (name, text) in agents {
            fs::write(place.join(format!("{name}.md")), text).unwrap();
        }
        trust(folder.path());
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { folder, port, process: None }
    }

    fn token_file(&self) -> PathBuf {
        state(self.folder.path()).join("token")
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("antiphon"));
        let folder = self.folder.path();
        command.current_dir(folder).env_clear().env("HOME", home(folder));
        command.env("PATH", std::env::var_os("PATH").unwrap()).stdin(Stdio::null());
        command
    }

    /// Runs a command of the program.
    pub(crate) fn antiphon(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// Starts the server, unless it runs.
    pub(crate) fn start(&mut self) {
        if self.process.is_some() {
            return;
        }
        let mut command = self.command();
        let address = format!("127.0.0.1:{}", self.port);
        command.args(["serve", "--listen", &address, "--mode", "full"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if !line.starts_with("listening on ") {
            let mut error = String::new();
            process.stderr.take().unwrap().read_to_string(&mut error).unwrap();
            panic!("{line}{error}");
        }
        self.process = Some(process);
    }

    pub(crate) fn signal(&self, name: &str) {
        let process = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([name, &process]).status().unwrap().success());
    }

    /// Id of the process of the server, which runs.
    pub(crate) fn process_id(&self) -> u32 {
        self.process.as_ref().unwrap().id()
    }

    /// Kills the server with SIGKILL, if it runs.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// The text of a file in the project; empty when it is missing.
    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.folder.path().join(path)).unwrap_or_default()
    }

    /// Status and body of a response, or `None` when the server does not answer.
    pub(crate) fn try_ask(
        &self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &str,
    ) -> Option<(u16, Value)> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        socket.set_read_timeout(Some(PATIENCE)).ok()?;
        let token = fs::read_to_string(self.token_file()).ok()?;
        let (port, token, length) = (self.port, token.trim(), body.len());
        let key = key.map_or(String::new(), |key| format!("idempotency-key: {key}\r\n"));
        let head = format!(
            "{method} {path} HTTP/1.0\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n{key}\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        socket.write_all(head.as_bytes()).ok()?;
        let mut received = String::new();
        socket.read_to_string(&mut received).ok()?;
        let (head, body) = received.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, serde_json::from_str(body).unwrap_or_default()))
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        self.try_ask(method, path, None, body).unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask("GET", path, "");
        assert_eq!(status, 200, "{body}");
        body
    }

    /// Starts a task of an agent. Returns its id.
    pub(crate) fn task(&self, agent: &str, message: &str) -> String {
        let body = json!({ "agent": agent, "message": message }).to_string();
        let (status, answer) = self.ask("POST", "/v1/tasks", &body);
        assert_eq!(status, 201, "{answer}");
        answer["task_id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn status(&self, task: &str) -> String {
        self.get(&format!("/v1/tasks/{task}"))["status"].as_str().unwrap().to_owned()
    }

    /// Waits until a task has this status.
    pub(crate) fn until_status(&self, task: &str, wanted: &str) {
        until(wanted, || (self.status(task) == wanted).then_some(()));
    }

    /// Ids of the tasks without a parent whose agent has this name, the newest first.
    pub(crate) fn tops(&self, agent: &str) -> Vec<String> {
        let list = self.get(&format!("/v1/tasks?tops=true&all=true&agent={agent}"));
        let id = |task: &Value| task["task_id"].as_str().unwrap().to_owned();
        list["tasks"].as_array().unwrap().iter().map(id).collect()
    }

    /// The events of a task that has ended.
    pub(crate) fn events(&self, task: &str) -> Vec<Value> {
        let page = self.get(&format!("/v1/journal?task_id={task}&limit=1000"));
        page["events"].as_array().unwrap().clone()
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A server here, whose agent `remote` runs on the peer `office`.
pub(crate) struct TwoServers {
    pub(crate) here: Side,
    pub(crate) there: Side,
}

/// The only peer needs no name.
const REMOTE: &str = "---\ndescription: Works at the office.\nagents: [worker]\nruntimes:\n  - kind: loopback\n---\nYou are remote.\n";

impl TwoServers {
    /// Both servers, running. The model there answers from `script`; `here_script` is the model here.
    pub(crate) fn start(script: &str, here_script: &str) -> Self {
        let worker = "---\ndescription: Works.\n---\nYou are worker.\n";
        let mut there = Side::new(script, &[("worker", worker)], "");
        there.start();
        let token = there.token_file();
        let peer = format!(
            "[peers.office]\nurl = \"http://127.0.0.1:{}\"\ntoken_file = \"{}\"\n",
            there.port,
            token.display()
        );
        let lead = "---\ndescription: Leads.\nagents: [remote, quick]\n---\nYou are lead.\n";
        let quick = "---\ndescription: Answers.\n---\nYou are quick.\n";
        let agents = [("remote", REMOTE), ("lead", lead), ("quick", quick)];
        let mut here = Side::new(here_script, &agents, &peer);
        here.start();
        Self { here, there }
    }

    /// Both servers, running. The agent `remote` here is the one of that name there, over A2A.
    pub(crate) fn start_a2a(script: &str, here_script: &str) -> Self {
        let remote = "---\ndescription: Works.\n---\nYou are remote.\n";
        let mut there = Side::new(script, &[("remote", remote)], "");
        there.start();
        let settings = format!(
            "[a2a.remote.remote]\ncard = \"http://127.0.0.1:{}/a2a/remote/.well-known/agent-card.json\"\n\
             token_file = \"{}\"\n",
            there.port,
            there.token_file().display()
        );
        let mut here = Side::new(here_script, &[], &settings);
        here.start();
        Self { here, there }
    }

    /// Id of the only task without a parent there.
    pub(crate) fn remote_task(&self) -> String {
        until("the peer has the task", || {
            let list = self.there.get("/v1/tasks?tops=true&all=true");
            let first = list["tasks"].as_array().unwrap().first()?;
            Some(first["task_id"].as_str().unwrap().to_owned())
        })
    }
}

/// The replies of a model that runs one command in each step, and then ends.
pub(crate) fn commands(commands: &[&str]) -> String {
    let step = |(turn, command): (usize, &&str)| {
        format!(
            "[[reply]]\nwhen = {{ system_contains = \"You are remote.\", tool_results = {turn} }}\n\
             step = [{{ call = {{ name = \"bash\", arguments = {{ command = \"{command}\" }} }} }}]\n"
        )
    };
    let steps: String = commands.iter().enumerate().map(step).collect();
    format!("name = \"test\"\n{steps}[[reply]]\nstep = [{{ text = \"That was all.\" }}]\n")
}

/// A model that only says something.
pub(crate) const TALK: &str = "name = \"test\"\n[[reply]]\nstep = [{ text = \"Hello.\" }]\n";
