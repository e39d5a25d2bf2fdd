//! A project with two agents that answer from scripts, and clients of its MCP server. Everything on standard output has
//! to be a JSON-RPC message.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use antiphon_core::port::{self, JournalLog as _};
use antiphon_core::{Event, Position};
use antiphon_sqlite::SqliteJournal;
use serde_json::{Value, json};

use crate::project_folder::{ProjectFolder, antiphon, home, state};

/// How long something may take that comes by itself.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Lines of a server that wait to be read.
const LINES_MAX: usize = 10_000;

/// What the agents do, by a word in their message.
pub(crate) const SCRIPT: &str = r#"
name = "test"
[[reply]]
when = { last_user_contains = "ask", turn = 0 }
step = [{ call = { name = "bash", arguments = { command = "touch asked.txt" } } }]
[[reply]]
when = { last_user_contains = "steps", turn = 0 }
step = [{ call = { name = "bash", arguments = { command = "touch asked.txt" } } }]
[[reply]]
when = { last_user_contains = "steps", turn = 1 }
step = [{ call = { name = "bash", arguments = { command = "touch asked-again.txt" } } }]
[[reply]]
when = { last_user_contains = "steps", turn = 2 }
step = [{ call = { name = "bash", arguments = { command = "touch written.txt" } } }]
[[reply]]
when = { last_user_contains = "stall" }
step = [{ text = "One moment" }, { stall = true }]
[[reply]]
when = { last_user_contains = "break" }
step = [{ error = { kind = "invalid_request", message = "it broke" } }]
[[reply]]
step = [{ text = "You said {{last_user}}" }]
"#;

/// A project.
pub(crate) struct World {
    folder: ProjectFolder,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    /// With these lines in the user's settings.
    pub(crate) fn with(settings: &str) -> Self {
        let folder = ProjectFolder::new();
        let config = home(folder.path()).join(".config/antiphon");
        fs::create_dir_all(config.join("agents")).unwrap();
        let mut text = "model = \"scripted/test\"\n[permissions]\nask = [\"bash(touch asked*)\"]\n\
             [scripts]\ntest = \"test.toml\"\n"
            .to_owned();
        writeln!(text, "{settings}").unwrap();
        fs::write(config.join("config.toml"), text).unwrap();
        fs::write(config.join("test.toml"), SCRIPT).unwrap();
        for name in ["helper", "task_get"] {
            let agent = format!(
                "---\nname: {name}\ndescription: The {name} of the tests.\ntools: [bash, read]\n---\nYou help.\n"
            );
            fs::write(config.join("agents").join(format!("{name}.md")), agent).unwrap();
        }
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

    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// All events of the journal.
    pub(crate) fn events(&self) -> Vec<Event> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let journal = state(self.path()).join("journal.db");
        let journal = SqliteJournal::open_read_only(&journal).unwrap();
        runtime.block_on(async {
            let (mut events, mut after) = (Vec::new(), Position(0));
            loop {
                let read = port::Read { task_id: None, after, limit: NonZeroUsize::MAX };
                let page = journal.read(read).await.unwrap();
                if page.events.is_empty() {
                    return events;
                }
                after = page.next;
                events.extend(page.events);
            }
        })
    }

    /// A client on standard input and output that has not begun.
    pub(crate) fn connect(&self, arguments: &[&str]) -> Client {
        let mut command = self.command(&["mcp", "serve"]);
        command.args(arguments);
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
        Client { child, input, lines, next_id: 1, notified: Vec::new(), asked: Vec::new() }
    }

    /// A client of 2025-11-25 with these capabilities that has initialized.
    pub(crate) fn client(&self, capabilities: &Value) -> Client {
        self.client_of(&[], capabilities)
    }

    /// The same, of a server that was started with these arguments.
    pub(crate) fn client_of(&self, arguments: &[&str], capabilities: &Value) -> Client {
        let mut client = self.connect(arguments);
        let result = client.ask("initialize", &initialize(capabilities));
        assert_eq!(result["result"]["protocolVersion"], "2025-11-25", "{result}");
        client.notify("notifications/initialized", &json!({}));
        client
    }

    pub(crate) fn server(&self, arguments: &[&str]) -> Server {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("no address: {line}")).to_owned();
        let token = fs::read_to_string(state(self.path()).join("token")).unwrap();
        Server { process, _out: out, address, token: token.trim().to_owned() }
    }

    /// A key of this level.
    pub(crate) fn key(&self, name: &str, level: &str) -> String {
        self.run(&["keys", "new", "--name", name, "--level", level]).trim().to_owned()
    }
}

/// Parameters of `initialize`.
pub(crate) fn initialize(capabilities: &Value) -> Value {
    json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" },
    })
}

/// The `_meta` of a request of 2026-07-28.
pub(crate) fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// A running `antiphon mcp serve`. It is killed when it is dropped.
pub(crate) struct Client {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    next_id: u64,
    /// Notifications of the server so far.
    pub(crate) notified: Vec<Value>,
    /// Requests of the server that have no answer yet.
    pub(crate) asked: Vec<Value>,
}

impl Client {
    pub(crate) fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
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

    /// The next line, whatever it is; notifications and requests of the server are kept.
    fn line(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE);
        let line = line.unwrap_or_else(|error| panic!("no line: {error}; {:#?}", self.notified));
        assert_eq!(line["jsonrpc"], "2.0", "{line}");
        match (line.get("method"), line.get("id")) {
            (Some(_), Some(_)) => self.asked.push(line.clone()),
            (Some(_), None) => self.notified.push(line.clone()),
            (None, _) => {}
        }
        line
    }

    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let line = self.line();
            if line.get("method").is_none() && line["id"] == id {
                return line;
            }
        }
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    pub(crate) fn start_call(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.send("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// The result of a tool.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.start_call(tool, arguments);
        let answer = self.answer(id);
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }

    /// Waits until the server asks something.
    pub(crate) fn until_asked(&mut self) -> Value {
        while self.asked.is_empty() {
            self.line();
        }
        self.asked.remove(0)
    }

    /// Waits for a notification.
    pub(crate) fn until_notified(&mut self, is_so: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Some(found) = self.notified.iter().find(|line| is_so(line)) {
                return found.clone();
            }
            self.line();
        }
    }

    pub(crate) fn reply(&mut self, asked: &Value, result: &Value) {
        let line = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
        self.write(&line.to_string());
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

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text of a tool's result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

/// A running `antiphon serve`. It is killed when it is dropped.
pub(crate) struct Server {
    process: Child,
    _out: BufReader<std::process::ChildStdout>,
    pub(crate) address: String,
    pub(crate) token: String,
}

/// What was answered over HTTP.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .into_iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The last JSON-RPC message, of a stream or alone.
    pub(crate) fn message(&self) -> Value {
        let events = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let last = events.map(str::trim).rfind(|data| !data.is_empty()).unwrap_or(&self.body);
        serde_json::from_str(last).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

impl Server {
    /// Sends a request to `/mcp` with further lines of the head.
    pub(crate) fn raw(&self, method: &str, key: Option<&str>, more: &str, body: &str) -> Reply {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = if more.contains("host: ") {
            String::new()
        } else {
            format!("host: {}\r\n", self.address)
        };
        let key = key.map_or(String::new(), |key| format!("authorization: Bearer {key}\r\n"));
        let head = format!(
            "{method} /mcp HTTP/1.0\r\n{host}{key}accept: application/json, text/event-stream\r\n\
             content-type: application/json\r\n{more}content-length: {}\r\n\r\n",
            body.len()
        );
        // A request that is refused early may not be read to its end.
        let _ = socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(body.as_bytes()));
        let mut received = Vec::new();
        let _ = socket.read_to_end(&mut received);
        let received = String::from_utf8(received).unwrap();
        let (head, body) = received.split_once("\r\n\r\n").unwrap_or((&received, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Reply { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// Begins a session of 2025-11-25 and returns its id.
    pub(crate) fn session(&self, key: &str) -> String {
        let body = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize(&json!({})),
        });
        let reply = self.raw("POST", Some(key), "", &body.to_string());
        assert_eq!(reply.status, 200, "{reply:?}");
        let id = reply.header("mcp-session-id").unwrap_or_else(|| panic!("{reply:?}")).to_owned();
        let body = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let reply =
            self.raw("POST", Some(key), &format!("mcp-session-id: {id}\r\n"), &body.to_string());
        assert_eq!(reply.status, 202, "{reply:?}");
        id
    }

    /// A request in a session of 2025-11-25.
    pub(crate) fn in_session(
        &self,
        key: &str,
        session: &str,
        method: &str,
        params: &Value,
    ) -> Reply {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.raw("POST", Some(key), &format!("mcp-session-id: {session}\r\n"), &body.to_string())
    }

    /// A request of 2026-07-28.
    pub(crate) fn ask(
        &self,
        key: &str,
        method: &str,
        params: &Value,
        capabilities: &Value,
    ) -> Value {
        let mut params = params.clone();
        params["_meta"] = meta(capabilities);
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let name = params["name"].as_str().or(params["uri"].as_str()).or(params["taskId"].as_str());
        let name = name.map_or(String::new(), |name| format!("mcp-name: {name}\r\n"));
        let more = format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}");
        self.raw("POST", Some(key), &more, &body.to_string()).message()
    }

    /// Calls a tool without any capability of the client.
    pub(crate) fn call(&self, key: &str, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.ask(key, "tools/call", &params, &json!({}));
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
