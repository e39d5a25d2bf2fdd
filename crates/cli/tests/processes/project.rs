//! A project, and processes that work in it.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::project_folder::{ProjectFolder, home, state};

/// How long something may take that comes by itself.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A project and its home folder.
pub(crate) struct Project {
    folder: ProjectFolder,
}

impl Project {
    pub(crate) fn new() -> Self {
        Self { folder: ProjectFolder::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn state(&self) -> PathBuf {
        state(self.path())
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("antiphon"));
        command.current_dir(self.path()).env_clear().env("HOME", home(self.path()));
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// A shell that leads the session of its terminal; `$ANTIPHON` is the program.
    pub(crate) fn shell(&self, arguments: &[&str]) -> Command {
        let program = assert_cmd::cargo::cargo_bin!("antiphon");
        let mut command = Command::new("setsid");
        command.args(["--ctty", "bash", "--norc", "--noprofile", "--noediting"]).args(arguments);
        command.current_dir(self.path()).env_clear().env("HOME", home(self.path()));
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("TMPDIR", self.path());
        command.env("TERM", "xterm-256color").env("ANTIPHON", program);
        command
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The output of a command that succeeds and says nothing of another process.
    pub(crate) fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        assert!(!said.contains("in use by process"), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.succeed(arguments)).unwrap()
    }

    /// A script that runs these commands, one after the other, and then says `done`.
    pub(crate) fn script(&self, name: &str, commands: &[&str]) {
        let mut text = format!("name = \"{name}\"\n");
        for (turn, command) in commands.iter().enumerate() {
            let call =
                format!("{{ name = \"bash\", arguments = {{ command = '''{command}''' }} }}");
            let steps = format!("[{{ text = \"step {turn} \" }}, {{ call = {call} }}]");
            writeln!(text, "[[reply]]\nwhen = {{ turn = {turn} }}\nsteps = {steps}").unwrap();
        }
        text += "[[reply]]\nsteps = [{ text = \"done\" }]\n";
        fs::write(self.path().join(format!("{name}.toml")), text).unwrap();
    }

    /// `antiphon run` with a script.
    pub(crate) fn run_command(&self, script: &str, arguments: &[&str]) -> Command {
        let (model, file) = (format!("scripted/{script}"), format!("{script}.toml"));
        let mut command = self.command(&["run", "--json", "--model", &model, "--script", &file]);
        command.args(arguments).arg(format!("go {script}"));
        command
    }

    /// The same, started, with every permission.
    pub(crate) fn run(&self, script: &str) -> Run {
        Run::start(self.run_command(script, &["--mode", "full"]))
    }

    /// Waits until a process serves the project's socket.
    pub(crate) fn wait_for_owner(&self) {
        let socket = self.state().join("server.sock");
        until("an owner", || UnixStream::connect(&socket).is_ok());
    }

    /// The answer of the owner to a request on the project's socket; empty without an owner.
    pub(crate) fn ask_owner(&self, request: &str) -> String {
        let mut text = String::new();
        if let Ok(mut socket) = UnixStream::connect(self.state().join("server.sock")) {
            let _ = socket.write_all(request.as_bytes());
            let _ = socket.read_to_string(&mut text);
        }
        text
    }

    /// The process that holds the journal, as its lock says.
    pub(crate) fn owner(&self) -> u32 {
        let lock = fs::read_to_string(self.state().join("journal.db.lock")).unwrap();
        // It is empty for a moment while a process takes it.
        lock.trim().parse().unwrap_or_default()
    }

    pub(crate) fn tasks(&self) -> Vec<Value> {
        self.json(&["tasks", "list", "--json", "--limit", "1000"]).as_array().unwrap().clone()
    }
}

/// A running `antiphon run --json`. It is killed when it is dropped.
pub(crate) struct Run {
    pub(crate) child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
    reader: Option<JoinHandle<()>>,
    stderr: Option<ChildStderr>,
}

impl Run {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, stderr) = (child.stdout.take().unwrap(), child.stderr.take());
        let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = Arc::clone(&lines);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                kept.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, lines, reader: Some(reader), stderr }
    }

    /// What it has printed so far.
    pub(crate) fn printed(&self) -> Vec<Value> {
        self.lines.lock().unwrap().clone()
    }

    /// Waits for an event of this type.
    pub(crate) fn until_event(&mut self, kind: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.printed().iter().any(|line| line["type"] == kind) {
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("no `{kind}`, but {status}: {}", self.said());
            }
            assert!(Instant::now() < end, "no `{kind}`: {:#?}", self.printed());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn said(&mut self) -> String {
        let mut said = String::new();
        if let Some(mut stderr) = self.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        said
    }

    /// Waits for its end: the exit code, what it printed, and what it said on standard error.
    pub(crate) fn end(mut self) -> Ended {
        let end = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(Instant::now() < end, "it does not end: {:#?}", self.printed()),
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        self.reader.take().unwrap().join().unwrap();
        Ended { code: status.code(), lines: self.printed(), said: self.said() }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is left of a run.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) lines: Vec<Value>,
    pub(crate) said: String,
}

impl Ended {
    /// Its task has completed, and its stream has every event of the task once and in order.
    pub(crate) fn assert_whole(&self) {
        assert_eq!(self.code, Some(0), "{} {:#?}", self.said, self.lines.last());
        assert!(!self.said.contains("in use by process"), "{}", self.said);
        let first = self.lines.iter().find(|line| line["type"] == "task_created").unwrap();
        let of_task =
            |line: &&Value| line["task_id"] == first["task_id"] && line.get("seq").is_some();
        let seqs: Vec<u64> =
            self.lines.iter().filter(of_task).map(|line| line["seq"].as_u64().unwrap()).collect();
        let whole: Vec<u64> = (1..=seqs.len() as u64).collect();
        assert_eq!(seqs, whole, "a gap or a repetition");
        let last = self.lines.iter().rfind(of_task).unwrap();
        assert_eq!(last["data"]["status"], "completed", "{last}");
    }

    pub(crate) fn task_id(&self) -> String {
        let first = self.lines.iter().find(|line| line["type"] == "task_created").unwrap();
        first["task_id"].as_str().unwrap().to_owned()
    }
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what} does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether a process runs.
pub(crate) fn is_running(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit(')').next().unwrap_or_default().trim_start().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}
