//! A server that is restarted at the same address, and the requests to it.

use std::fs::OpenOptions;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::http::{Address, Response};
use crate::kill::Kill;
use crate::project::Project;
use crate::random::Random;

/// Between two polls or tries.
const POLL: Duration = Duration::from_millis(2);

/// How one run of the server ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stop {
    /// By SIGKILL.
    Killed(Kill),
    /// By SIGTERM, after this many milliseconds.
    Terminated(u64),
}

impl Stop {
    /// One in six is a termination.
    pub(crate) fn random(random: &mut Random, writes: u64, millis: u64) -> Self {
        match random.below(6) {
            0 => Self::Terminated(random.below(millis)),
            _ => Self::Killed(random.kill(writes, millis)),
        }
    }
}

/// A server that runs most of the time.
pub(crate) struct RestartingServer {
    address: Address,
    /// Clients stop: one of them found an error, or the time is over.
    closed: AtomicBool,
}

impl RestartingServer {
    pub(crate) fn new(token: &str) -> Self {
        let address = Address { socket: free_address(), token: token.to_owned() };
        Self { address, closed: AtomicBool::new(false) }
    }

    /// Stops all clients.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Repeats a request until there is a response. A server that shuts down refuses with 503, and the
    /// request is repeated. `None` when the server is closed.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Option<Response> {
        while !self.closed.load(Ordering::Relaxed) {
            match self.address.request(method, path, headers, body) {
                Ok(response) if response.status != 503 => return Some(response),
                Ok(_) | Err(_) => std::thread::sleep(POLL),
            }
        }
        None
    }

    /// Runs the server until it is stopped, or until all clients are done. Returns whether it was stopped.
    pub(crate) fn run(
        &self,
        project: &Project,
        stop: Option<Stop>,
        is_done: impl Fn() -> bool,
    ) -> bool {
        let mut process = ServerProcess::start(project, self.address.socket, stop);
        let until = match stop {
            Some(Stop::Terminated(millis)) => Some(Duration::from_millis(millis)),
            Some(Stop::Killed(kill)) => kill.time(),
            None => None,
        };
        let until = until.map(|time| Instant::now() + time);
        loop {
            if process.is_dead(project) {
                return true;
            }
            if is_done() {
                process.signal("-TERM");
                process.wait(project);
                return false;
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                let terminate = matches!(stop, Some(Stop::Terminated(_)));
                process.signal(if terminate { "-TERM" } else { "-KILL" });
                process.wait(project);
                return true;
            }
            std::thread::sleep(POLL);
        }
    }
}

/// One process of the server. Dropping it kills it.
struct ServerProcess(Child);

impl ServerProcess {
    fn start(project: &Project, address: SocketAddr, stop: Option<Stop>) -> Self {
        let mut command = project.antiphon();
        command.args(["serve", "--listen", &address.to_string()]).stdout(Stdio::null());
        let err = OpenOptions::new().create(true).append(true).open(project.path().join("err"));
        command.stderr(err.unwrap());
        if let Some(Stop::Killed(kill)) = stop {
            kill.arm(&mut command);
        }
        Self(command.spawn().unwrap())
    }

    fn signal(&self, name: &str) {
        // The process may have ended.
        let _ = Command::new("kill").args([name, &self.0.id().to_string()]).output();
    }

    fn is_dead(&mut self, project: &Project) -> bool {
        let Some(status) = self.0.try_wait().unwrap() else { return false };
        assert_eq!(status.code(), None, "it ended by itself: {}", project.text("err"));
        true
    }

    /// Waits for its end, with success or by a signal.
    fn wait(&mut self, project: &Project) {
        let status = self.0.wait().unwrap();
        assert!(matches!(status.code(), None | Some(0)), "{status}: {}", project.text("err"));
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A free address outside the range of ephemeral ports, which no client gets while the server is down.
fn free_address() -> SocketAddr {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let port = (first..32_000).find(free).unwrap();
    SocketAddr::from(([127, 0, 0, 1], port))
}
