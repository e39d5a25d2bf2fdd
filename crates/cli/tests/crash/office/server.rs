//! One life of the server: from its start until it is killed, or told to end.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kill::Kill;
use crate::project::Project;

/// How long an answer may take. One that takes longer did not come.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// How often it is looked whether it is still there.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A server, from its start to its death. It is killed when it is dropped.
pub(crate) struct Server<'a> {
    project: &'a Project,
    process: Child,
    dies: Option<Instant>,
    door: &'a Door,
}

/// Where it listens, for everybody who talks to it.
#[derive(Default)]
pub(crate) struct Door {
    address: OnceLock<(String, String)>,
    gone: AtomicBool,
}

impl<'a> Server<'a> {
    /// Starts it. Where it listens is known once it says so.
    pub(crate) fn start<'scope>(
        project: &'a Project,
        kill: Option<Kill>,
        door: &'a Door,
        scope: &'scope Scope<'scope, '_>,
    ) -> Self
    where
        'a: 'scope,
    {
        let mut command = project.antiphon();
        command.args(["serve", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let err = OpenOptions::new().create(true).append(true).open(project.path().join("err"));
        command.stderr(err.unwrap());
        if let Some(kill) = kill {
            kill.arm(&mut command);
        }
        let mut process = command.spawn().unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        scope.spawn(move || door.listen(out, project));
        let dies = kill.and_then(Kill::time).map(|time| Instant::now() + time);
        Self { project, process, dies, door }
    }

    /// Looks after it for a moment. Says whether it is dead.
    pub(crate) fn is_dead(&mut self) -> bool {
        if self.dies.is_some_and(|at| Instant::now() >= at) {
            self.process.kill().unwrap();
            self.process.wait().unwrap();
        }
        let Some(status) = self.process.try_wait().unwrap() else {
            std::thread::sleep(LOOK_EVERY);
            return false;
        };
        assert_eq!(status.code(), None, "it ended by itself: {}", self.project.text("err"));
        true
    }

    /// Ends in order, as far as it is not killed before.
    pub(crate) fn end(&mut self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let status = self.process.wait().unwrap();
        assert!(status.success() || status.code().is_none(), "{}", self.project.text("err"));
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        self.door.gone.store(true, Ordering::Relaxed);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Door {
    fn listen(&self, mut out: impl BufRead, project: &Project) {
        let mut line = String::new();
        while out.read_line(&mut line).is_ok_and(|length| length > 0) {
            if let Some(address) = line.trim().strip_prefix("listening on http://") {
                let token = fs::read_to_string(project.path().join(".antiphon/token")).unwrap();
                let _ = self.address.set((address.to_owned(), token.trim().to_owned()));
            }
            line.clear();
        }
    }

    /// Whether nobody is behind it any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Waits a little, for as long as somebody is there.
    pub(crate) fn pause(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.is_gone() && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Asks for something until there is an answer: its status and its body. `None` is a server
    /// that died before.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        key: &str,
        body: &str,
    ) -> Option<(u16, Value)> {
        while !self.is_gone() {
            let known = self.address.get();
            match known.map(|(address, token)| once(address, token, method, path, key, body)) {
                Some(Ok((503, _)) | Err(_)) | None => self.pause(LOOK_EVERY),
                Some(Ok(answer)) => return Some(answer),
            }
        }
        None
    }
}

fn once(
    address: &str,
    token: &str,
    method: &str,
    path: &str,
    key: &str,
    body: &str,
) -> io::Result<(u16, Value)> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(ANSWER_MAX))?;
    let (length, named) = (body.len(), if key.is_empty() { "" } else { "idempotency-key: " });
    let end = if key.is_empty() { "" } else { "\r\n" };
    let asked = format!(
        "{method} {path} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         {named}{key}{end}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    socket.write_all(asked.as_bytes())?;
    let mut text = String::new();
    socket.read_to_string(&mut text)?;
    let broken = || io::Error::other("it broke off");
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(broken)?;
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(broken)?;
    // Killed in the middle of an answer: there was none.
    Ok((status, serde_json::from_str(body).map_err(|_| broken())?))
}
