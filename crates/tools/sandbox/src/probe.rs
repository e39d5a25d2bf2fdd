//! Tries the sandbox out on this machine, for whoever wants to know before trusting it.
//!
//! The attempts are made for real: by a worker, in a sandbox, against files, sockets and processes
//! that were put outside for it. What it says is not believed where one can look.

use std::fs;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use nix::sys::ptrace;
use serde::{Deserialize, Serialize};

use crate::sandbox_error::Step;
use crate::{Limits, Mode, Network, Policy, Protected, SandboxError, WorkerCommand};

/// Where a worker finds what it is to try.
const ORDER: &str = "ANTIPHON_PROBE";

/// How long an attempt to connect may take.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// What came of the attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Each attempt, in order.
    pub trials: Vec<Trial>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// What was tried.
    pub what: String,
    /// It came out as it should.
    pub passed: bool,
    /// What happened.
    pub detail: String,
}

impl Report {
    /// Whether the sandbox holds.
    pub fn holds(&self) -> bool {
        !self.trials.is_empty() && self.trials.iter().all(|trial| trial.passed)
    }
}

/// Tries the sandbox out. `scratch` is a folder that we may write to and that is not in `/tmp`;
/// nothing is left in it. An error says why there is no sandbox on this machine.
pub fn probe(worker: &WorkerCommand, scratch: &Path) -> Result<Report, SandboxError> {
    let step = "prepare a trial";
    let folder = tempfile::Builder::new().prefix(".probe").tempdir_in(scratch).during(step)?;
    let place = Place::prepare(folder.path()).during(step)?;
    let order = Order { stage: Stage::Guard, policy: place.policy(), place: place.clone() };
    let port = TcpListener::bind(("127.0.0.1", place.port)).during(step)?;
    let socket = UnixListener::bind(&place.socket).during(step)?;
    let output = Command::new(&worker.program)
        .args(&worker.args)
        .env_clear()
        .env(ORDER, serde_json::to_string(&order).during(step)?)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .during("start its worker")?;
    drop((port, socket));
    let answer = serde_json::from_slice::<Answer>(&output.stdout);
    match answer.during("hear from its worker")? {
        Answer::Tried(mut trials) => {
            trials.push(place.inspect());
            Ok(Report { trials })
        }
        Answer::Refused(reason) => Err(SandboxError::Failed { step: "be made".to_owned(), reason }),
    }
}

/// To be called first by whatever [`probe`] starts: makes the attempts if it was started for that.
pub fn answer_probe() -> Option<ExitCode> {
    let order = std::env::var(ORDER).ok()?;
    let done = serde_json::from_str(&order).map_err(io::Error::other).and_then(Order::carry_out);
    Some(if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    stage: Stage,
    policy: Policy,
    place: Place,
}

#[derive(Debug, Serialize, Deserialize)]
enum Stage {
    Guard,
    Inside,
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Tried(Vec<Trial>),
    Refused(String),
}

impl Order {
    fn carry_out(self) -> io::Result<()> {
        let answer = match self.stage {
            Stage::Guard => match self.pass_on() {
                Ok(()) => return Ok(()),
                Err(error) => Answer::Refused(error.to_string()),
            },
            Stage::Inside => match self.policy.enforce() {
                Ok(_) => Answer::Tried(self.place.attempts()),
                Err(error) => Answer::Refused(error.to_string()),
            },
        };
        serde_json::to_writer(io::stdout(), &answer).map_err(io::Error::other)?;
        io::stdout().flush()
    }

    fn pass_on(self) -> Result<(), SandboxError> {
        let policy = self.policy.clone();
        let order = Self { stage: Stage::Inside, ..self };
        let mut inside = Command::new("/proc/self/exe");
        inside.args(std::env::args_os().skip(1));
        inside.env(ORDER, serde_json::to_string(&order).during("pass on the order")?);
        policy.confine(&mut inside)?.child.wait().during("wait for the trial").map(drop)
    }
}

/// What is put outside and inside to be tried.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Place {
    root: PathBuf,
    tmp: PathBuf,
    outside: PathBuf,
    secret: PathBuf,
    socket: PathBuf,
    port: u16,
}

impl Place {
    fn prepare(folder: &Path) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        let place = Self {
            root: folder.join("root"),
            tmp: folder.join("tmp"),
            outside: folder.join("outside"),
            secret: folder.join("secret"),
            socket: folder.join("socket"),
            port: TcpListener::bind("127.0.0.1:0")?.local_addr()?.port(),
        };
        fs::create_dir_all(place.root.join(".git"))?;
        fs::create_dir(&place.tmp)?;
        fs::write(&place.outside, "as it was")?;
        fs::write(&place.secret, "secret")?;
        Ok(place)
    }

    fn policy(&self) -> Policy {
        Policy {
            mode: Mode::Workspace,
            roots: vec![self.root.clone()],
            protected: Protected::usual(),
            hidden: vec![self.secret.clone()],
            tmp: self.tmp.clone(),
            readable: Vec::new(),
            network: Network::Off,
            limits: Limits::default(),
        }
    }

    /// Made from inside.
    fn attempts(&self) -> Vec<Trial> {
        let address = ([127, 0, 0, 1], self.port).into();
        vec![
            works("write in the workspace", fs::write(self.root.join("file"), "inside")),
            works("write in /tmp", fs::write("/tmp/file", "inside")),
            refused("write outside of the workspace", fs::write(&self.outside, "changed")),
            refused("write to .git", fs::write(self.root.join(".git/config"), "changed")),
            refused("move .git away", fs::rename(self.root.join(".git"), self.root.join("git"))),
            refused("make .antiphon", fs::create_dir(self.root.join(".antiphon/agents"))),
            refused("read what is hidden", readable(&self.secret)),
            refused("connect to the machine", TcpStream::connect_timeout(&address, CONNECT_MAX)),
            refused("connect to a socket outside", UnixStream::connect(&self.socket)),
            refused("trace a process", ptrace::traceme()),
            refused("make a user namespace", unshare(CloneFlags::CLONE_NEWUSER)),
            refused("see processes outside", others()),
        ]
    }

    /// Looked at from outside.
    fn inspect(&self) -> Trial {
        let same = fs::read(&self.outside).is_ok_and(|text| text == b"as it was");
        let empty = fs::read_dir(self.root.join(".git")).is_ok_and(|mut it| it.next().is_none());
        let wrote = self.root.join("file").is_file();
        Trial {
            what: "find everything as it was".to_owned(),
            passed: same && empty && wrote,
            detail: if same && empty { "unchanged" } else { "changed" }.to_owned(),
        }
    }
}

fn works<T, E: std::fmt::Display>(what: &str, outcome: Result<T, E>) -> Trial {
    let passed = outcome.is_ok();
    let detail = outcome.err().map_or_else(|| "works".to_owned(), |error| error.to_string());
    Trial { what: what.to_owned(), passed, detail }
}

fn refused<T, E: std::fmt::Display>(what: &str, outcome: Result<T, E>) -> Trial {
    let passed = outcome.is_err();
    let detail = outcome.err().map_or_else(|| "was possible".to_owned(), |error| error.to_string());
    Trial { what: what.to_owned(), passed, detail }
}

fn readable(path: &Path) -> io::Result<()> {
    if fs::read(path)?.is_empty() { Err(io::Error::other("nothing to see")) } else { Ok(()) }
}

/// Succeeds if processes are seen beside this one.
fn others() -> io::Result<()> {
    let is_process = |name: String| name.bytes().all(|byte| byte.is_ascii_digit());
    let entries = fs::read_dir("/proc")?.flatten();
    let seen = entries.filter_map(|entry| entry.file_name().into_string().ok());
    match seen.filter(|name| is_process(name.clone())).count() {
        1 => Err(io::Error::other("only itself is seen")),
        _ => Ok(()),
    }
}
