//! A project with the agents `helper` and `other`, which answer from a script, and its server.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::project_folder::{ProjectFolder, antiphon, home};

/// How long a reply may take.
const PATIENCE: Duration = Duration::from_secs(40);

/// What the agents do, by a word in their message.
const SCRIPT: &str = r#"
name = "test"
[[reply]]
when = { last_user_contains = "act", results_since_user = 0 }
step = [{ text = "I act." }, { call = { name = "bash", arguments = { command = "touch asked.txt" } } }]
[[reply]]
when = { last_user_contains = "stall" }
step = [{ text = "One moment" }, { stall = true }]
[[reply]]
step = [{ text = "You said {{last_user}}" }]
"#;

/// A project.
pub(crate) struct World {
    folder: ProjectFolder,
}

impl World {
    /// With these lines in the user's settings.
    pub(crate) fn new(settings: &str) -> Self {
        let folder = ProjectFolder::new();
        let config = home(folder.path()).join(".config/antiphon");
        fs::create_dir_all(config.join("agents")).unwrap();
        let mut text = "model = \"scripted/test\"\n[permissions]\nask = [\"bash(touch asked*)\"]\n\
             [scripts]\ntest = \"test.toml\"\n"
            .to_owned();
        writeln!(text, "{settings}").unwrap();
        fs::write(config.join("config.toml"), text).unwrap();
        fs::write(config.join("test.toml"), SCRIPT).unwrap();
        for name in ["helper", "other"] {
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

    /// What a command prints.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// A new API key.
    pub(crate) fn key(&self, name: &str, level: &str) -> String {
        self.run(&["keys", "new", "--name", name, "--level", level])
    }

    pub(crate) fn serve(&self) -> Server {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap().to_owned();
        Server { process, address, token: self.run(&["token"]) }
    }
}

/// A running server. It is killed when it is dropped.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
    pub(crate) token: String,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

impl Server {
    /// A request with these headers alone, apart from those about its body.
    pub(crate) fn raw(&self, method: &str, path: &str, head: &str, body: &str) -> Reply {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let about = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        // A server that refuses a request may not read it to its end.
        let _ = write!(socket, "{method} {path} HTTP/1.0\r\n{head}{about}\r\n{body}");
        let mut received = Vec::new();
        let _ = socket.read_to_end(&mut received);
        let received = String::from_utf8_lossy(&received);
        let (head, body) = received.split_once("\r\n\r\n").unwrap_or((&received, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        Reply { status, body: body.to_owned() }
    }

    /// Headers of a request with a key.
    pub(crate) fn head(&self, key: &str) -> String {
        format!("host: {}\r\nauthorization: Bearer {key}\r\na2a-version: 1.0\r\n", self.address)
    }

    /// A call of JSON-RPC to an agent.
    pub(crate) fn rpc(&self, key: &str, agent: &str, method: &str, params: &Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let path = format!("/a2a/{agent}");
        self.raw("POST", &path, &self.head(key), &body.to_string()).json()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The parameters of a message with a text.
pub(crate) fn message(id: &str, text: &str) -> Value {
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] } })
}
