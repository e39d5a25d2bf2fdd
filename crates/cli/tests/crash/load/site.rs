//! The server, life after life at one address, and those who come back to it.

use std::fs::OpenOptions;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::wire::{Address, Answer};
use crate::dice::Dice;
use crate::kill::Kill;
use crate::project::Project;

/// How often somebody looks again.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// How one life ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Death {
    /// By SIGKILL.
    Killed(Kill),
    /// By SIGTERM, after so many milliseconds: in order.
    Told(u64),
}

impl Death {
    /// One in six is told to end.
    pub(crate) fn throw(dice: &mut Dice, writes: u64, millis: u64) -> Self {
        match dice.below(6) {
            0 => Self::Told(dice.below(millis)),
            _ => Self::Killed(dice.kill(writes, millis)),
        }
    }
}

/// A place where a server is, most of the time.
pub(crate) struct Site {
    address: Address,
    /// Somebody found a fault: all may go.
    over: AtomicBool,
}

impl Site {
    pub(crate) fn new(token: &str) -> Self {
        let address = Address { socket: free_address(), token: token.to_owned() };
        Self { address, over: AtomicBool::new(false) }
    }

    /// Everybody may go.
    pub(crate) fn close(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Asks until somebody is there to answer. What is refused because the server ends is asked
    /// again. `None` when it is over.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Option<Answer> {
        while !self.over.load(Ordering::Relaxed) {
            match self.address.ask(method, path, headers, body) {
                Ok(answer) if answer.status != 503 => return Some(answer),
                Ok(_) | Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
        None
    }

    /// Lets the server live until it dies, or until nobody wants anything any more. Says whether it
    /// died.
    pub(crate) fn live(
        &self,
        project: &Project,
        death: Option<Death>,
        is_done: impl Fn() -> bool,
    ) -> bool {
        let mut life = Life::start(project, self.address.socket, death);
        let until = match death {
            Some(Death::Told(millis)) => Some(Duration::from_millis(millis)),
            Some(Death::Killed(kill)) => kill.time(),
            None => None,
        };
        let until = until.map(|time| Instant::now() + time);
        loop {
            if life.is_dead(project) {
                return true;
            }
            if is_done() {
                life.signal("-TERM");
                life.wait(project);
                return false;
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                let told = matches!(death, Some(Death::Told(_)));
                life.signal(if told { "-TERM" } else { "-KILL" });
                life.wait(project);
                return true;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// One life of the server. It is killed when it is dropped.
struct Life(Child);

impl Life {
    fn start(project: &Project, address: SocketAddr, death: Option<Death>) -> Self {
        let mut command = project.antiphon();
        command.args(["serve", "--listen", &address.to_string()]).stdout(Stdio::null());
        let err = OpenOptions::new().create(true).append(true).open(project.path().join("err"));
        command.stderr(err.unwrap());
        if let Some(Death::Killed(kill)) = death {
            kill.arm(&mut command);
        }
        Self(command.spawn().unwrap())
    }

    fn signal(&self, name: &str) {
        // It may be dead by now.
        let _ = Command::new("kill").args([name, &self.0.id().to_string()]).output();
    }

    fn is_dead(&mut self, project: &Project) -> bool {
        let Some(status) = self.0.try_wait().unwrap() else { return false };
        assert_eq!(status.code(), None, "it ended by itself: {}", project.text("err"));
        true
    }

    /// Waits for its end, which is in order or by a signal.
    fn wait(&mut self, project: &Project) {
        let status = self.0.wait().unwrap();
        assert!(matches!(status.code(), None | Some(0)), "{status}: {}", project.text("err"));
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An address that nobody uses, and that no client is given by chance while the server is dead.
fn free_address() -> SocketAddr {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let port = (first..32_000).find(free).unwrap();
    SocketAddr::from(([127, 0, 0, 1], port))
}
