//! A client that sends what no library would.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::project_folder::{ProjectFolder, home, state};
use crate::project_server::{Answer, Server, project, text};

pub(crate) const SCRIPT: &str = r#"
name = "test"
[[reply]]
when = { last_user_contains = "stall" }
step = [{ text = "Half of it, and" }, { stall = true }]
[[reply]]
when = { last_user_contains = "slowly" }
chunk_chars = 1
delay_ms = 5
step = [{ thinking = "Let me see.", signature = "c2lnbmVk" }, { text = "One letter after another." }]
[[reply]]
step = [{ text = "Turn {{turn}}: {{last_user}}" }]
"#;

/// The three routes, and a body of each that asks for `text`.
pub(crate) fn requests(text: &str) -> [(&'static str, Value); 3] {
    let messages = json!([{ "role": "user", "content": text }]);
    let model = "scripted/test";
    [
        ("/v1/chat/completions", json!({ "model": model, "messages": messages })),
        ("/v1/responses", json!({ "model": model, "input": text })),
        ("/v1/messages", json!({ "model": model, "max_tokens": 99, "messages": messages })),
    ]
}

/// A server in a project.
pub(crate) struct Target {
    pub(crate) folder: ProjectFolder,
    pub(crate) server: Server,
    pub(crate) token: String,
}

impl Target {
    pub(crate) fn new() -> Self {
        Self::of(project(SCRIPT))
    }

    /// A server that shows clients the agent `helper`.
    pub(crate) fn with_agent() -> Self {
        let folder = project(SCRIPT);
        let agents = home(folder.path()).join(".config/antiphon/agents");
        std::fs::create_dir_all(&agents).unwrap();
        let agent = "---\nname: helper\ndescription: Helps.\ntools: [read]\n---\nYou help.\n";
        std::fs::write(agents.join("helper.md"), agent).unwrap();
        Self::of(folder)
    }

    fn of(folder: ProjectFolder) -> Self {
        let server = Server::start(folder.path(), &[]);
        let token = text(&state(folder.path()).join("token")).trim().to_owned();
        Self { folder, server, token }
    }

    /// A request with headers of the test's own, after those that every request needs. HTTP/1.0 has no chunks.
    pub(crate) fn head(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let mut lines = vec![
            ("host", self.server.address.clone()),
            ("authorization", format!("Bearer {}", self.token)),
            ("content-type", "application/json".to_owned()),
        ];
        for (name, value) in headers {
            lines.retain(|(known, _)| known != name);
            lines.push((*name, (*value).to_owned()));
        }
        let lines = lines.iter().filter(|(_, value)| !value.is_empty());
        let lines: Vec<String> =
            lines.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let lines = lines.concat();
        format!("{method} {path} HTTP/1.0\r\n{lines}")
    }

    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let head = self.head(method, path, headers);
        self.send(&format!("{head}content-length: {}\r\n\r\n{body}", body.len()))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[], &body.to_string())
    }

    /// Sends bytes, and reads the answer to its end. The server may answer and close before it has read all.
    pub(crate) fn send(&self, request: &str) -> Answer {
        let mut socket = self.connect();
        let _ = socket.write_all(request.as_bytes());
        let mut bytes = Vec::new();
        let _ = socket.read_to_end(&mut bytes);
        let received = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = received.split_once("\r\n\r\n") else {
            panic!("no answer: {received}");
        };
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// Sends a request, reads so many bytes of the answer, and leaves. Returns how many there were.
    pub(crate) fn leave_after(&self, request: &str, bytes: usize) -> usize {
        let mut socket = self.connect();
        socket.write_all(request.as_bytes()).unwrap();
        let mut received = 0;
        let mut buffer = [0; 16];
        while received < bytes {
            let wanted = (bytes - received).min(buffer.len());
            match socket.read(&mut buffer[..wanted]) {
                Ok(0) | Err(_) => break,
                Ok(count) => received += count,
            }
        }
        let _ = socket.shutdown(Shutdown::Both);
        received
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(&self.server.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        socket
    }
}
