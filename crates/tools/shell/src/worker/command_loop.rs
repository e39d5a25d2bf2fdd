//! The inner process of a worker. It restricts itself, reports that it is ready, and then handles
//! requests in one thread until the shell is gone.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Stdin, stdin};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use antiphon_sandbox::{Enforced, Mode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitStatus, getppid};

use super::process_list::{ProcessList, Scope};
use super::proxy_socket;
use super::signals::Signals;
use crate::message::{
    CALL_VARIABLE, CallId, Exit, MESSAGE_BYTES_MAX, ProxyRequest, Reply, Request, SETUP, Setup,
    packet, receive, send,
};

/// Most processes of a task's commands at a time. Beyond it, the call with the most processes is
/// ended.
pub(crate) const PROCESSES_MAX: usize = 512;

/// Interval of the process count while commands run.
const COUNT_INTERVAL: Duration = Duration::from_millis(100);

/// How long a call may take to end after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);

/// How long a call may take to end after SIGKILL.
const KILL_WAIT_MAX: Duration = Duration::from_secs(5);

/// Interval of the checks whether a stopped call is gone.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Paths of `bash`. `PATH` is not used: it may lead into the workspace.
const BASH_PATHS: [&str; 4] =
    ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash"];

pub(super) fn run(setup: &Setup) -> io::Result<()> {
    let enforced = setup.policy.enforce().map_err(io::Error::other)?;
    let scope = match setup.policy.mode {
        Mode::ReadOnly | Mode::Workspace => Scope::Namespace,
        // Orphans become children of the guard, the parent of this process.
        Mode::Full => Scope::Descendants(getppid().ok_or(io::ErrorKind::NotFound)?),
    };
    let bash = BASH_PATHS.iter().map(PathBuf::from).find(|path| path.exists());
    let bash = bash.ok_or_else(|| io::Error::other("`bash` is not installed: install it"))?;
    let mut command_loop = CommandLoop {
        enforced,
        scope,
        bash,
        signals: Signals::watch()?,
        shell: stdin(),
        leaders: HashMap::new(),
        stops: Vec::new(),
        count_at: None,
    };
    command_loop.reply(&Reply::Ready)?;
    command_loop.run()
}

struct CommandLoop {
    enforced: Enforced,
    scope: Scope,
    bash: PathBuf,
    signals: Signals,
    shell: Stdin,
    /// Running commands by their first process, which leads their process group.
    leaders: HashMap<Pid, CallId>,
    stops: Vec<Stop>,
    /// Time of the next process count. `None` while no command runs.
    count_at: Option<Instant>,
}

/// A call that is being stopped.
struct Stop {
    call: CallId,
    since: Instant,
    cause: Cause,
    term_sent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Requested,
    TooManyProcesses,
}

impl CommandLoop {
    fn run(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        loop {
            let timeout =
                self.poll_timeout().map(|left| Timespec::try_from(left).unwrap_or_default());
            let mut watched = [
                PollFd::new(&self.shell, PollFlags::IN),
                PollFd::new(&self.signals, PollFlags::IN),
            ];
            retry_on_intr(|| poll(&mut watched, timeout.as_ref()))?;
            let [has_request, has_signal] = watched.map(|watched| !watched.revents().is_empty());
            if has_signal {
                self.report_ended()?;
            }
            if has_request {
                match receive(&self.shell, &mut buffer)? {
                    Some((request, pipe)) => self.handle(request, pipe)?,
                    None => return Ok(()),
                }
            }
            self.advance_stops()?;
        }
    }

    /// Time until the next action. `None` when only an event can cause one.
    fn poll_timeout(&self) -> Option<Duration> {
        let count = self.count_at.map(|at| at.saturating_duration_since(Instant::now()));
        if self.stops.is_empty() { count } else { Some(CHECK_INTERVAL) }
    }

    fn handle(&mut self, request: Request, pipe: Option<OwnedFd>) -> io::Result<()> {
        match request {
            Request::Start { call, command, workdir, proxy } => {
                if let Some(path) = self.enforced.stale() {
                    let path = path.to_owned();
                    return self.reply(&Reply::Stale { call, path });
                }
                match self.start(&call, &command, &workdir, pipe, proxy.as_ref()) {
                    Ok(leader) => {
                        self.leaders.insert(leader, call);
                        self.count_at.get_or_insert_with(|| Instant::now() + COUNT_INTERVAL);
                        self.report_ended()
                    }
                    Err(error) => {
                        self.reply(&Reply::Failed { call, reason: reason(&error, &workdir) })
                    }
                }
            }
            Request::Stop { call } => {
                self.stop(call);
                Ok(())
            }
        }
    }

    fn start(
        &self,
        call: &CallId,
        command: &str,
        workdir: &Path,
        pipe: Option<OwnedFd>,
        proxy: Option<&ProxyRequest>,
    ) -> io::Result<Pid> {
        let output = pipe.ok_or(io::ErrorKind::BrokenPipe)?;
        let proxy = proxy.map(|proxy| proxy_socket::open(&self.shell, call, proxy)).transpose()?;
        let mut bash = Command::new(&self.bash);
        bash.args(["-c", "--", command])
            .current_dir(workdir)
            .env_remove(SETUP)
            .envs(proxy.into_iter().flatten())
            .env(CALL_VARIABLE, &call.0)
            .env("PWD", workdir)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0);
        let child = self.signals.with_signals_unblocked(|| bash.spawn())?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Ok(pid.ok_or(io::ErrorKind::NotFound)?)
    }

    fn stop(&mut self, call: CallId) {
        match self.stops.iter_mut().find(|stop| stop.call == call) {
            Some(stop) => stop.cause = Cause::Requested,
            None => {
                let since = Instant::now();
                self.stops.push(Stop { call, since, cause: Cause::Requested, term_sent: false });
            }
        }
    }

    /// Reports commands that have ended. Other children that ended were orphans.
    fn report_ended(&mut self) -> io::Result<()> {
        for (pid, status) in self.signals.ended()? {
            if let Some(call) = self.leaders.remove(&pid) {
                let stop = self.stops.iter().find(|stop| stop.call == call);
                let exit = match stop.map(|stop| stop.cause) {
                    Some(Cause::TooManyProcesses) => Exit::TooManyProcesses,
                    Some(Cause::Requested) | None => exit(status),
                };
                self.reply(&Reply::Ended { call, exit })?;
            }
        }
        Ok(())
    }

    fn advance_stops(&mut self) -> io::Result<()> {
        for stop in std::mem::take(&mut self.stops) {
            if self.advance_stop(&stop) {
                if stop.cause == Cause::Requested {
                    self.reply(&Reply::Stopped { call: stop.call })?;
                }
            } else {
                self.stops.push(Stop { term_sent: true, ..stop });
            }
        }
        if self.count_at.is_some_and(|at| at <= Instant::now()) {
            self.count();
        }
        Ok(())
    }

    /// Sends SIGTERM, later SIGKILL. Returns whether every process is gone.
    fn advance_stop(&self, stop: &Stop) -> bool {
        let left = ProcessList::take(self.scope).of(&stop.call, &self.leaders);
        let waited = stop.since.elapsed();
        let running = self.leaders.values().any(|call| *call == stop.call);
        if left.is_empty() && !running || waited > GRACE + KILL_WAIT_MAX {
            return true;
        }
        if waited >= GRACE || stop.cause == Cause::TooManyProcesses {
            left.signal_all(Signal::KILL);
        } else if !stop.term_sent {
            left.signal_all(Signal::TERM);
            left.signal_all(Signal::CONT);
        }
        false
    }

    fn count(&mut self) {
        let count = self.scope.count();
        if count > PROCESSES_MAX && self.stops.is_empty() {
            // So many processes leave little CPU time for this one: pause them first.
            self.scope.pause(&self.leaders);
            let largest = ProcessList::take(self.scope).largest(&self.leaders);
            if let Some(call) = largest {
                let stop = Stop {
                    call,
                    since: Instant::now(),
                    cause: Cause::TooManyProcesses,
                    term_sent: true,
                };
                self.advance_stop(&stop);
                self.stops.push(stop);
            }
            ProcessList::take(self.scope).signal_all(Signal::CONT);
        }
        self.count_at = (count > 0).then(|| Instant::now() + COUNT_INTERVAL);
    }

    fn reply(&self, reply: &Reply) -> io::Result<()> {
        send(&self.shell, &packet(reply)?, None)
    }
}

fn exit(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}

fn reason(error: &io::Error, workdir: &Path) -> String {
    if fs::metadata(workdir).is_ok_and(|found| found.is_dir()) {
        error.to_string()
    } else {
        format!("there is no folder `{}` to run it in", workdir.display())
    }
}
