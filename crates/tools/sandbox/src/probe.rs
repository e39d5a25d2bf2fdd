//! Tests the sandbox on this machine.
//!
//! The attempts are real: a worker in a sandbox makes them against files, sockets and processes
//! outside that were prepared for it. Where the outside can be inspected, the worker's report is
//! not trusted.

use std::fs;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use nix::sys::ptrace;
use serde::{Deserialize, Serialize};

use crate::sandbox_error::Step;
use crate::{
    Limits, Network, Policy, Protected, SandboxError, SandboxMode, UnixSockets, WorkerCommand,
};

/// The environment variable that contains the [`ProbeRequest`] of a worker.
const PROBE_VARIABLE: &str = "ANTIPHON_PROBE";

/// How long an attempt to connect may take.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// The results of all attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The attempts, in order.
    pub trials: Vec<Trial>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Description of the attempt.
    pub what: String,
    /// Whether the outcome was as expected.
    pub passed: bool,
    /// What happened.
    pub detail: String,
}

impl Report {
    /// Whether every attempt had the expected outcome.
    pub fn holds(&self) -> bool {
        !self.trials.is_empty() && self.trials.iter().all(|trial| trial.passed)
    }
}

/// Tests the sandbox. `scratch` is a writable folder outside of `/tmp`; nothing is left in it. The
/// error says why there is no sandbox on this machine.
pub fn probe(worker: &WorkerCommand, scratch: &Path) -> Result<Report, SandboxError> {
    let step = "prepare a trial";
    let folder = tempfile::Builder::new().prefix(".probe").tempdir_in(scratch).during(step)?;
    let targets = ProbeTargets::prepare(folder.path()).during(step)?;
    let request =
        ProbeRequest { step: ProbeStep::Guard, policy: targets.policy(), targets: targets.clone() };
    let port = TcpListener::bind(("127.0.0.1", targets.port)).during(step)?;
    let socket = UnixListener::bind(&targets.socket).during(step)?;
    let datagrams = UnixDatagram::bind(&targets.datagrams).during(step)?;
    let output = Command::new(&worker.program)
        .args(&worker.args)
        .env_clear()
        .env(PROBE_VARIABLE, serde_json::to_string(&request).during(step)?)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .during("start its worker")?;
    drop((port, socket, datagrams));
    let answer = serde_json::from_slice::<Answer>(&output.stdout);
    match answer.during("hear from its worker")? {
        Answer::Trials(mut trials) => {
            trials.push(targets.inspect());
            Ok(Report { trials })
        }
        Answer::Refused(reason) => Err(SandboxError::Failed { step: "be made".to_owned(), reason }),
    }
}

/// Must be called first by the program that [`probe`] starts. Makes the attempts if it was started
/// for that; otherwise returns `None`.
pub fn answer_probe() -> Option<ExitCode> {
    let request = std::env::var(PROBE_VARIABLE).ok()?;
    let done =
        serde_json::from_str(&request).map_err(io::Error::other).and_then(ProbeRequest::handle);
    Some(if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Debug, Serialize, Deserialize)]
struct ProbeRequest {
    step: ProbeStep,
    policy: Policy,
    targets: ProbeTargets,
}

#[derive(Debug, Serialize, Deserialize)]
enum ProbeStep {
    Guard,
    Inside,
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Trials(Vec<Trial>),
    Refused(String),
}

impl ProbeRequest {
    fn handle(self) -> io::Result<()> {
        let answer = match self.step {
            ProbeStep::Guard => match self.start_inner() {
                Ok(()) => return Ok(()),
                Err(error) => Answer::Refused(error.to_string()),
            },
            ProbeStep::Inside => match self.policy.enforce() {
                Ok(_) => Answer::Trials(self.targets.attempts()),
                Err(error) => Answer::Refused(error.to_string()),
            },
        };
        serde_json::to_writer(io::stdout(), &answer).map_err(io::Error::other)?;
        io::stdout().flush()
    }

    fn start_inner(self) -> Result<(), SandboxError> {
        let policy = self.policy.clone();
        let request = Self { step: ProbeStep::Inside, ..self };
        let mut inside = Command::new("/proc/self/exe");
        inside.args(std::env::args_os().skip(1));
        inside.env(
            PROBE_VARIABLE,
            serde_json::to_string(&request).during("encode the probe request")?,
        );
        policy.confine(&mut inside)?.child.wait().during("wait for the probe").map(drop)
    }
}

/// Files, sockets and processes that the attempts are made against.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ProbeTargets {
    root: PathBuf,
    tmp: PathBuf,
    outside: PathBuf,
    secret: PathBuf,
    socket: PathBuf,
    datagrams: PathBuf,
    port: u16,
}

impl ProbeTargets {
    fn prepare(folder: &Path) -> io::Result<Self> {
        let folder = folder.canonicalize()?;
        let targets = Self {
            root: folder.join("root"),
            tmp: folder.join("tmp"),
            outside: folder.join("outside"),
            secret: folder.join("secret"),
            socket: folder.join("socket"),
            datagrams: folder.join("datagrams"),
            port: TcpListener::bind("127.0.0.1:0")?.local_addr()?.port(),
        };
        fs::create_dir_all(targets.root.join(".git"))?;
        fs::create_dir_all(targets.root.join("deep/er/.git/hooks"))?;
        fs::create_dir(&targets.tmp)?;
        fs::write(&targets.outside, "as it was")?;
        fs::write(&targets.secret, "secret")?;
        Ok(targets)
    }

    fn policy(&self) -> Policy {
        Policy {
            mode: SandboxMode::Workspace,
            roots: vec![self.root.clone()],
            protected: Protected::usual(),
            hidden: vec![self.secret.clone()],
            tmp: self.tmp.clone(),
            readable: Vec::new(),
            network: Network::Off,
            unix_sockets: UnixSockets::Refused,
            repository: None,
            git_programs: crate::GitPrograms::GitOnly,
            runs: crate::Runs::Commands,
            limits: Limits::default(),
        }
    }

    /// The attempts, made from inside.
    fn attempts(&self) -> Vec<Trial> {
        let address = ([127, 0, 0, 1], self.port).into();
        vec![
            works("write in the workspace", fs::write(self.root.join("file"), "inside")),
            works("write in /tmp", fs::write("/tmp/file", "inside")),
            refused("write outside of the workspace", fs::write(&self.outside, "changed")),
            refused("write to .git", fs::write(self.root.join(".git/config"), "changed")),
            refused("move .git away", fs::rename(self.root.join(".git"), self.root.join("git"))),
            refused(
                "write to a nested .git",
                fs::write(self.root.join("deep/er/.git/hooks/pre-commit"), "changed"),
            ),
            refused(
                "move a nested .git away",
                fs::rename(self.root.join("deep"), self.root.join("d")),
            ),
            refused("make .antiphon", fs::create_dir(self.root.join(".antiphon/agents"))),
            refused("read what is hidden", readable(&self.secret)),
            refused("connect to the machine", TcpStream::connect_timeout(&address, CONNECT_MAX)),
            refused("connect to a socket outside", UnixStream::connect(&self.socket)),
            refused("send to a socket outside", send(&self.datagrams)),
            refused("trace a process", ptrace::traceme()),
            refused("make a user namespace", unshare(CloneFlags::CLONE_NEWUSER)),
            refused("see processes outside", others()),
        ]
    }

    /// A check from outside.
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

/// One of a pair needs no permission to open a socket.
fn send(to: &Path) -> io::Result<usize> {
    UnixDatagram::pair()?.0.send_to(b"x", to)
}

fn readable(path: &Path) -> io::Result<()> {
    if fs::read(path)?.is_empty() { Err(io::Error::other("nothing to see")) } else { Ok(()) }
}

/// Succeeds if other processes are visible.
fn others() -> io::Result<()> {
    let is_process = |name: String| name.bytes().all(|byte| byte.is_ascii_digit());
    let entries = fs::read_dir("/proc")?.flatten();
    let seen = entries.filter_map(|entry| entry.file_name().into_string().ok());
    match seen.filter(|name| is_process(name.clone())).count() {
        1 => Err(io::Error::other("only itself is seen")),
        _ => Ok(()),
    }
}
