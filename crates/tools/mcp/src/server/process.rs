//! The process group of a server: the server and the processes it started.
//!
//! The child leads its own process group, and the group is killed with it. Each group has a
//! watchdog, a shell that waits for this process to die and then kills the group. Without it,
//! servers would survive a `SIGKILL` of this process, because many do not notice that their
//! standard input is closed.

use std::collections::BTreeMap;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::ExposeSecret;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::config::{ServerName, StdioConfig};
use crate::server::stderr::{LastLine, drain};

/// Variables that every server inherits. The user configures further ones.
pub const INHERITED_VARIABLES: [&str; 14] = [
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
];

/// How long a server may take to exit after its standard input is closed.
const EXIT_LIMIT: Duration = Duration::from_millis(300);

/// How long a server may take to exit after `SIGTERM`.
const TERM_LIMIT: Duration = Duration::from_millis(700);

/// How long to read standard error after the server has exited.
const STDERR_LIMIT: Duration = Duration::from_millis(200);

/// Waits until its standard input closes, which happens however this process ends.
const WATCHDOG_SCRIPT: &str = r#"read -r line; kill -s KILL -- "-$0""#;

/// A running server. On drop, kills its process group.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    child: Child,
    group: Arc<ProcessGroup>,
    last_line: LastLine,
    stderr: JoinSet<()>,
}

/// A process group that any holder can kill, once.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    alive: Mutex<Option<LiveGroup>>,
}

#[derive(Debug)]
struct LiveGroup {
    leader: Pid,
    /// Killed when dropped.
    _watchdog: Option<Child>,
}

impl ServerProcess {
    /// Starts the program of a server. It inherits [`INHERITED_VARIABLES`] and the configured
    /// variables from `environment`.
    pub(crate) fn start(
        server: &ServerName,
        config: &StdioConfig,
        environment: &BTreeMap<String, String>,
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let inherited =
            INHERITED_VARIABLES.into_iter().chain(config.inherit_env.iter().map(String::as_str));
        let mut command = Command::new(&config.command);
        command
            .args(&config.args)
            .env_clear()
            .envs(inherited.filter_map(|name| Some((name, environment.get(name)?))))
            .envs(config.env.iter().map(|(name, value)| (name, value.expose_secret())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(cwd) = &config.cwd {
            command.current_dir(cwd);
        }
        let (group, mut child) = ProcessGroup::spawn(&mut command)?;
        let (Some(stdin), Some(stdout), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("it has no standard streams"));
        };
        let last_line = LastLine::default();
        let mut stderr = JoinSet::new();
        stderr.spawn(drain(errors, server.clone(), last_line.clone()));
        Ok((Self { child, group: Arc::new(group), last_line, stderr }, stdin, stdout))
    }

    pub(crate) fn group(&self) -> Arc<ProcessGroup> {
        Arc::clone(&self.group)
    }

    /// Waits until the program has exited, then kills its process group. Safe to cancel.
    pub(crate) async fn wait_for_exit(&mut self) {
        // A process that cannot be waited for counts as exited.
        let _ = self.child.wait().await;
        // At once: later, the group id may be reused.
        self.group.kill();
    }

    /// Waits briefly for the program to exit, then sends `SIGTERM`, then `SIGKILL`. The caller has
    /// closed its standard input. Returns how the program ended.
    pub(crate) async fn stop(mut self) -> String {
        let mut status = timeout(EXIT_LIMIT, self.child.wait()).await;
        if status.is_err() {
            self.group.terminate();
            status = timeout(TERM_LIMIT, self.child.wait()).await;
        }
        // Its child processes may have outlived it.
        self.group.kill();
        let status = match status {
            Ok(status) => status,
            Err(_) => self.child.wait().await,
        };
        let _ = timeout(STDERR_LIMIT, self.stderr.join_next()).await;
        let how = match status {
            Ok(status) => outcome(status),
            Err(error) => format!("is lost: {error}"),
        };
        match self.last_line.get() {
            Some(line) => format!("{how}; its last line on standard error: {line}"),
            None => how,
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.group.kill();
    }
}

impl ProcessGroup {
    /// Starts `command` as the leader of a group.
    fn spawn(command: &mut Command) -> io::Result<(Self, Child)> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let leader = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("it exited before it started"))?;
        let watchdog = watchdog(leader);
        if let Err(error) = &watchdog {
            tracing::warn!("no watchdog for an MCP server: {error}");
        }
        let alive = LiveGroup { leader, _watchdog: watchdog.ok() };
        Ok((Self { alive: Mutex::new(Some(alive)) }, child))
    }

    /// Sends `SIGTERM` to the group.
    fn terminate(&self) {
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(alive) = &*alive {
            signal(alive.leader, Signal::TERM);
        }
    }

    /// Sends `SIGKILL` to the group. Further calls do nothing, because the group id may be reused.
    pub(crate) fn kill(&self) {
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(alive) = alive {
            signal(alive.leader, Signal::KILL);
        }
    }
}

fn signal(leader: Pid, signal: Signal) {
    // The group may have exited already.
    let _ = kill_process_group(leader, signal);
}

fn watchdog(leader: Pid) -> io::Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", WATCHDOG_SCRIPT, &leader.as_raw_nonzero().to_string()])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

fn outcome(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("ended with status {code}"),
        None => format!("was ended: {status}"),
    }
}
