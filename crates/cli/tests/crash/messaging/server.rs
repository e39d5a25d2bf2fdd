//! One run of the server: from its start until it is killed or terminated.

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
use crate::project_folder::state;

/// Time for a response; a later one counts as lost.
const RESPONSE_WAIT: Duration = Duration::from_secs(20);

/// How often the process is polled.
const POLL: Duration = Duration::from_millis(1);

/// A server process. Dropping it kills it.
pub(crate) struct Server<'a> {
    project: &'a Project,
    process: Child,
    kill_at: Option<Instant>,
    endpoint: &'a Endpoint,
}

/// The address of the server, shared by all senders.
#[derive(Default)]
pub(crate) struct Endpoint {
    /// Address and token, once the server listens.
    address: OnceLock<(String, String)>,
    gone: AtomicBool,
}

impl<'a> Server<'a> {
    /// Starts the server. The endpoint gets its address when it listens.
    pub(crate) fn start<'scope>(
        project: &'a Project,
        kill: Option<Kill>,
        endpoint: &'a Endpoint,
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
        scope.spawn(move || endpoint.read_address(out, project));
        let kill_at = kill.and_then(Kill::time).map(|time| Instant::now() + time);
        Self { project, process, kill_at, endpoint }
    }

    /// Kills it when its time has come. Returns whether it is dead.
    pub(crate) fn is_dead(&mut self) -> bool {
        if self.kill_at.is_some_and(|at| Instant::now() >= at) {
            self.process.kill().unwrap();
            self.process.wait().unwrap();
        }
        let Some(status) = self.process.try_wait().unwrap() else {
            std::thread::sleep(POLL);
            return false;
        };
        assert_eq!(status.code(), None, "it ended by itself: {}", self.project.text("err"));
        true
    }

    /// Terminates it, unless it is killed before.
    pub(crate) fn stop(&mut self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let status = self.process.wait().unwrap();
        assert!(status.success() || status.code().is_none(), "{}", self.project.text("err"));
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        self.endpoint.gone.store(true, Ordering::Relaxed);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Endpoint {
    fn read_address(&self, mut out: impl BufRead, project: &Project) {
        let mut line = String::new();
        while out.read_line(&mut line).is_ok_and(|length| length > 0) {
            if let Some(address) = line.trim().strip_prefix("listening on http://") {
                let token = fs::read_to_string(state(project.path()).join("token")).unwrap();
                let _ = self.address.set((address.to_owned(), token.trim().to_owned()));
            }
            line.clear();
        }
    }

    /// Whether the server is gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Waits, unless the server is gone.
    pub(crate) fn pause(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.is_gone() && Instant::now() < until {
            std::thread::sleep(POLL);
        }
    }

    /// Repeats a request until there is a response: its status and body. `None` when the server is gone.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        key: &str,
        body: &str,
    ) -> Option<(u16, Value)> {
        while !self.is_gone() {
            let address = self.address.get();
            match address
                .map(|(address, token)| request_once(address, token, method, path, key, body))
            {
                Some(Ok((503, _)) | Err(_)) | None => self.pause(POLL),
                Some(Ok(response)) => return Some(response),
            }
        }
        None
    }
}

fn request_once(
    address: &str,
    token: &str,
    method: &str,
    path: &str,
    key: &str,
    body: &str,
) -> io::Result<(u16, Value)> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(RESPONSE_WAIT))?;
    let (length, header) = (body.len(), if key.is_empty() { "" } else { "idempotency-key: " });
    let end = if key.is_empty() { "" } else { "\r\n" };
    let request = format!(
        "{method} {path} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         {header}{key}{end}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    socket.write_all(request.as_bytes())?;
    let mut text = String::new();
    socket.read_to_string(&mut text)?;
    let incomplete = || io::Error::other("the response is incomplete");
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(incomplete)?;
    let status =
        head.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(incomplete)?;
    // A server that is killed while it responds leaves half a body.
    Ok((status, serde_json::from_str(body).map_err(|_| incomplete())?))
}
