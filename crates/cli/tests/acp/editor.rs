//! An editor: it starts `antiphon acp`, writes lines and reads lines. Everything on standard output has to be JSON.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::project_folder::{ProjectFolder, antiphon, home};

/// How long something may take that comes by itself.
const PATIENCE: Duration = Duration::from_secs(40);

/// A project whose agents answer from scripts.
pub(crate) struct World {
    folder: ProjectFolder,
}

/// Lines of the agent that wait to be read.
const LINES_MAX: usize = 10_000;

impl World {
    /// Each script answers with these replies, in the form of docs/scripted.md.
    pub(crate) fn new(scripts: &[(&str, &str)]) -> Self {
        let folder = ProjectFolder::new();
        let settings = home(folder.path()).join(".config/antiphon");
        fs::create_dir_all(&settings).unwrap();
        let mut config = "model = \"scripted/hello\"\n[permissions]\nask = [\"bash(touch asked*)\"]\n[scripts]\n".to_owned();
        for (name, replies) in scripts {
            writeln!(config, "{name} = \"{name}.toml\"").unwrap();
            let script = format!("name = \"{name}\"\n{replies}");
            fs::write(settings.join(format!("{name}.toml")), script).unwrap();
        }
        fs::write(settings.join("config.toml"), config).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = antiphon(self.path());
        command.args(arguments).stdin(Stdio::null());
        command
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// An editor whose tasks use this script. It has initialized.
    pub(crate) fn editor(&self, script: &str) -> Editor {
        let mut editor = self.uninitialized(script);
        let version = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        let answer = editor.ask("initialize", &version);
        assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
        editor
    }

    pub(crate) fn uninitialized(&self, script: &str) -> Editor {
        let mut command = antiphon(self.path());
        command.args(["acp", "--model", &format!("scripted/{script}")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = sync_channel(LINES_MAX);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line)
                    .unwrap_or_else(|error| json!({ "not_json": format!("{error}: {line}") }));
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let cwd = self.path().display().to_string();
        let (updates, asked, answers) = (Vec::new(), Vec::new(), Vec::new());
        Editor { child, input, lines, next_id: 1, cwd, updates, asked, answers }
    }
}

/// A running `antiphon acp`. It is killed when it is dropped.
pub(crate) struct Editor {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    next_id: u64,
    cwd: String,
    /// Updates of sessions so far.
    pub(crate) updates: Vec<Value>,
    /// Requests of the agent that have no answer yet.
    pub(crate) asked: Vec<Value>,
    /// Answers of the agent that came while something else was waited for.
    answers: Vec<Value>,
}

impl Editor {
    pub(crate) fn write(&mut self, line: &str) {
        self.write_part(&format!("{line}\n"));
    }

    /// Writes a part of a line.
    pub(crate) fn write_part(&mut self, part: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(part.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn send(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.write(&line.to_string());
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// The next line, whatever it is; updates and requests of the agent are kept.
    pub(crate) fn line(&mut self) -> Value {
        let line = match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("no line comes: {:#?}", self.updates),
            Err(RecvTimeoutError::Disconnected) => panic!("the agent has ended"),
        };
        assert_eq!(line["jsonrpc"], "2.0", "{line}");
        match line["method"].as_str() {
            Some("session/update") => self.updates.push(line["params"]["update"].clone()),
            Some(_) if line.get("id").is_some() => self.asked.push(line.clone()),
            Some(_) | None => {}
        }
        line
    }

    /// The answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        if let Some(place) = self.answers.iter().position(|answer| answer["id"] == id) {
            return self.answers.remove(place);
        }
        loop {
            let line = self.line();
            if line.get("method").is_none() && line["id"] == id {
                return line;
            }
            self.keep_answer(line);
        }
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    pub(crate) fn new_session(&mut self) -> String {
        let params = json!({ "cwd": self.cwd, "mcpServers": [] });
        let answer = self.ask("session/new", &params);
        assert_eq!(self.updates, Vec::<Value>::new(), "nothing precedes the answer");
        let id = answer["result"]["sessionId"].as_str();
        id.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub(crate) fn load(&mut self, session: &str) -> Value {
        let params = json!({ "sessionId": session, "cwd": self.cwd, "mcpServers": [] });
        self.ask("session/load", &params)
    }

    pub(crate) fn start_prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.send("session/prompt", &json!({ "sessionId": session, "prompt": prompt }))
    }

    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> Value {
        let id = self.start_prompt(session, text);
        self.answer(id)
    }

    /// Waits until an update is so.
    pub(crate) fn until_update(&mut self, is_so: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = self.updates.iter().find(|update| is_so(update)) {
                return found.clone();
            }
            assert!(Instant::now() < end, "no such update: {:#?}", self.updates);
            let line = self.line();
            self.keep_answer(line);
        }
    }

    /// Waits until the agent asks something.
    pub(crate) fn until_asked(&mut self) -> Value {
        while self.asked.is_empty() {
            let line = self.line();
            self.keep_answer(line);
        }
        self.asked.remove(0)
    }

    fn keep_answer(&mut self, line: Value) {
        if line.get("method").is_none() {
            self.answers.push(line);
        }
    }

    /// The text of the agent's messages so far.
    pub(crate) fn text(&self) -> String {
        let of_agent = |update: &&Value| update["sessionUpdate"] == "agent_message_chunk";
        let chunks = self.updates.iter().filter(of_agent);
        chunks.map(|update| update["content"]["text"].as_str().unwrap()).collect()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes its input, and waits for its end.
    pub(crate) fn close(mut self) -> Option<i32> {
        drop(self.input.take());
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < end, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
