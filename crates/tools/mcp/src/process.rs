//! A server's process and everything it started, as one thing that can be ended.
//!
//! The child leads a process group of its own, and the group is killed with it. Beside each stands a
//! guardian, a shell that does nothing but wait for us to die: killed without warning, we can clean
//! up nothing, and many servers do not even notice that nobody talks to them any more.

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
use crate::stderr::{LastWords, drain};

/// The variables every server inherits from us. What else it needs, the user names.
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

/// How long a server may take to end by itself when nobody talks to it any more.
const LEAVE_LIMIT: Duration = Duration::from_millis(300);

/// How long a server may take to end when asked to.
const ASKED_LIMIT: Duration = Duration::from_millis(700);

/// How long the last words of a server that has ended are waited for.
const WORDS_LIMIT: Duration = Duration::from_millis(200);

/// Waits until its standard input closes, which it does when we end however we end.
const GUARDIAN: &str = r#"read -r line; kill -s KILL -- "-$0""#;

/// A server that runs. Dropped, it is killed with all it started.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    child: Child,
    group: Arc<ProcessGroup>,
    last_words: LastWords,
    stderr: JoinSet<()>,
}

/// A process group that can be killed from anywhere, once.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    alive: Mutex<Option<Alive>>,
}

#[derive(Debug)]
struct Alive {
    leader: Pid,
    /// Killed when dropped.
    _guardian: Option<Child>,
}

impl ServerProcess {
    /// Starts the program of a server. Of `environment` it gets the variables that all get, and
    /// those the user named.
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
        let last_words = LastWords::default();
        let mut stderr = JoinSet::new();
        stderr.spawn(drain(errors, server.clone(), last_words.clone()));
        Ok((Self { child, group: Arc::new(group), last_words, stderr }, stdin, stdout))
    }

    pub(crate) fn group(&self) -> Arc<ProcessGroup> {
        Arc::clone(&self.group)
    }

    /// Waits until the program has ended, and ends what it started. Safe to cancel.
    pub(crate) async fn ended(&mut self) {
        // One of which nothing can be known is as good as ended.
        let _ = self.child.wait().await;
        // At once: later, the group's number may be another's.
        self.group.end();
    }

    /// Lets the program end by itself, asks it to, makes it; in this order, without much patience.
    /// Its standard input should be closed. Says how it ended.
    pub(crate) async fn leave(mut self) -> String {
        let mut status = timeout(LEAVE_LIMIT, self.child.wait()).await;
        if status.is_err() {
            self.group.ask();
            status = timeout(ASKED_LIMIT, self.child.wait()).await;
        }
        // What it started may have outlived it.
        self.group.end();
        let status = match status {
            Ok(status) => status,
            Err(_) => self.child.wait().await,
        };
        let _ = timeout(WORDS_LIMIT, self.stderr.join_next()).await;
        let how = match status {
            Ok(status) => outcome(status),
            Err(error) => format!("is lost: {error}"),
        };
        match self.last_words.get() {
            Some(words) => format!("{how}; the last it said was: {words}"),
            None => how,
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.group.end();
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
            .ok_or_else(|| io::Error::other("it ended before it began"))?;
        let guardian = guardian(leader);
        if let Err(error) = &guardian {
            tracing::warn!("no guardian for an MCP server: {error}");
        }
        let alive = Alive { leader, _guardian: guardian.ok() };
        Ok((Self { alive: Mutex::new(Some(alive)) }, child))
    }

    /// Asks all of the group to end.
    fn ask(&self) {
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(alive) = &*alive {
            signal(alive.leader, Signal::TERM);
        }
    }

    /// Ends all of the group. Called again, it does nothing: the number may be another's by then.
    pub(crate) fn end(&self) {
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(alive) = alive {
            signal(alive.leader, Signal::KILL);
        }
    }
}

fn signal(leader: Pid, signal: Signal) {
    // A group that is gone already is as good.
    let _ = kill_process_group(leader, signal);
}

fn guardian(leader: Pid) -> io::Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", GUARDIAN, &leader.as_raw_nonzero().to_string()])
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
