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

use antiphon_sandbox::{Enforced, Limits, MemoryEvents, Policy, SandboxMode, Startable};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitStatus, getppid};
use uuid::Uuid;

use super::process_list::{ProcessList, Scope};
use super::proxy_socket;
use super::shared_memory::{self, SharedMemoryWatch};
use super::signals::Signals;
use super::usage::{self, DiskWatch};
use crate::message::{
    CALL_UUID_VARIABLE, CALL_VARIABLE, CallId, Exceeded, Exit, MESSAGE_BYTES_MAX, ProxyRequest,
    Reply, Request, SETUP, Setup, packet, receive, send,
};

/// Interval of the checks of processes and memory while commands run.
const CHECK_USAGE_INTERVAL: Duration = Duration::from_millis(100);

/// The disk is looked at every so many of these checks.
const CHECKS_PER_DISK_CHECK: u32 = 5;

/// Exit code of a shell whose program was killed.
const KILLED: i32 = 128 + 9;

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
        SandboxMode::ReadOnly | SandboxMode::Workspace => Scope::Namespace,
        // Orphans become children of the guard, the parent of this process.
        SandboxMode::Full => Scope::Descendants(getppid().ok_or(io::ErrorKind::NotFound)?),
    };
    let bash_path = BASH_PATHS.iter().map(Path::new).find(|path| path.exists());
    let bash_path =
        bash_path.ok_or_else(|| io::Error::other("`bash` is not installed: install it"))?;
    let bash = enforced.startable(bash_path).map_err(io::Error::other)?;
    let mut command_loop = CommandLoop {
        enforced,
        scope,
        bash,
        bash_path,
        signals: Signals::watch()?,
        shell: stdin(),
        leaders: HashMap::new(),
        stops: Vec::new(),
        usage_at: None,
        usage_checks: 0,
        ended_for_memory: 0,
        memory_events: None,
        limits: setup.policy.limits.clone(),
        shared_memory: SharedMemoryWatch::new(setup.policy.limits.memory_bytes()),
        disk: DiskWatch::new(watched_folders(&setup.policy), setup.policy.limits.disk_bytes()),
    };
    command_loop.reply(&Reply::Ready)?;
    command_loop.run()
}

struct CommandLoop {
    enforced: Enforced,
    scope: Scope,
    bash: Startable,
    /// Where it is installed.
    bash_path: &'static Path,
    signals: Signals,
    shell: Stdin,
    /// Running commands by their first process, which leads their process group.
    leaders: HashMap<Pid, CallId>,
    stops: Vec<Stop>,
    /// Time of the next check of what commands use. `None` while no command runs.
    usage_at: Option<Instant>,
    usage_checks: u32,
    limits: Limits,
    shared_memory: SharedMemoryWatch,
    disk: DiskWatch,
    /// Known once a command has ended: this process is moved to its group after its start.
    memory_events: Option<MemoryEvents>,
    /// Processes that the kernel has ended for lack of memory, as far as it says.
    ended_for_memory: u64,
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
    Exceeded(Exceeded),
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
        let count = self.usage_at.map(|at| at.saturating_duration_since(Instant::now()));
        if self.stops.is_empty() { count } else { Some(CHECK_INTERVAL) }
    }

    fn handle(&mut self, request: Request, pipe: Option<OwnedFd>) -> io::Result<()> {
        match request {
            Request::Start { call, call_uuid, command, workdir, proxy } => {
                if let Some(path) = self.stale() {
                    return self.reply(&Reply::Stale { call, path });
                }
                let ids = (&call, call_uuid);
                match self.start(ids, &command, &workdir, pipe, proxy.as_ref()) {
                    Ok(leader) => {
                        self.leaders.insert(leader, call);
                        if self.usage_at.is_none() {
                            self.usage_at = Some(Instant::now() + CHECK_USAGE_INTERVAL);
                            self.disk.begin();
                            self.shared_memory.begin();
                        }
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

    /// A path that this sandbox does not protect. One that has only appeared is a reason for a new
    /// sandbox if no command would end with this one.
    fn stale(&mut self) -> Option<PathBuf> {
        let replaced = self.enforced.stale();
        if replaced.is_some() || !self.leaders.is_empty() {
            return replaced;
        }
        self.enforced.appeared()
    }

    fn start(
        &self,
        (call, call_uuid): (&CallId, Uuid),
        command: &str,
        workdir: &Path,
        pipe: Option<OwnedFd>,
        proxy: Option<&ProxyRequest>,
    ) -> io::Result<Pid> {
        let output = pipe.ok_or(io::ErrorKind::BrokenPipe)?;
        let proxy = proxy.map(|proxy| proxy_socket::open(&self.shell, call, proxy)).transpose()?;
        let mut bash = Command::new(self.bash.path());
        // Under its full path it does not search `PATH` for itself. It calls itself `bash` all the same.
        bash.arg0(self.bash_path)
            .args(["-c", "--", command, "bash"])
            .current_dir(workdir)
            .env_remove(SETUP)
            .env_remove(antiphon_sandbox::OPENED)
            .envs(proxy.into_iter().flatten())
            .env(CALL_VARIABLE, &call.0)
            .env(CALL_UUID_VARIABLE, call_uuid.to_string())
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
                    Some(Cause::Exceeded(exceeded)) => Exit::Stopped(exceeded),
                    Some(Cause::Requested) => exit(status),
                    None => self.exit(status),
                };
                self.reply(&Reply::Ended { call, exit })?;
            }
        }
        Ok(())
    }

    /// How a command ended that was not stopped from here.
    fn exit(&mut self, status: WaitStatus) -> Exit {
        let events = self.memory_events.get_or_insert_with(MemoryEvents::of_own_group);
        let ended = events.ended_for_memory().unwrap_or(0);
        let is_new = ended > std::mem::replace(&mut self.ended_for_memory, ended);
        match exit(status) {
            Exit::Code(KILLED) | Exit::Signal(9) if is_new => {
                Exit::Stopped(Exceeded::Memory(self.limits.memory_bytes()))
            }
            exit @ (Exit::Code(_) | Exit::Signal(_) | Exit::Stopped(_)) => exit,
        }
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
        if self.usage_at.is_some_and(|at| at <= Instant::now()) {
            self.check_usage();
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
        if waited >= GRACE || stop.cause != Cause::Requested {
            left.signal_all(Signal::KILL);
        } else if !stop.term_sent {
            left.signal_all(Signal::TERM);
            left.signal_all(Signal::CONT);
        }
        false
    }

    /// Stops a call that uses more than it may. One at a time: then there may be enough.
    fn check_usage(&mut self) {
        let pids = self.scope.pids();
        self.usage_checks = self.usage_checks.wrapping_add(1);
        if self.stops.is_empty()
            && let Some(exceeded) = self.exceeded(&pids)
        {
            self.stop_largest(exceeded);
        }
        self.usage_at = (!pids.is_empty()).then(|| Instant::now() + CHECK_USAGE_INTERVAL);
    }

    fn exceeded(&mut self, pids: &[Pid]) -> Option<Exceeded> {
        let (processes, memory) = (self.limits.processes(), self.limits.memory_bytes());
        if pids.len() as u64 > processes {
            return Some(Exceeded::Processes(processes));
        }
        if usage::memory_above(pids, memory).is_some() || self.shared_memory.is_exceeded(pids) {
            return Some(Exceeded::Memory(memory));
        }
        let looks = self.usage_checks.is_multiple_of(CHECKS_PER_DISK_CHECK);
        let full = looks && self.disk.is_exceeded(pids);
        full.then(|| Exceeded::Disk(self.limits.disk_bytes()))
    }

    fn stop_largest(&mut self, exceeded: Exceeded) {
        // Many processes leave little CPU time for this one, and memory fills fast: pause them first.
        self.scope.pause(&self.leaders);
        let list = ProcessList::take(self.scope);
        let largest = match exceeded {
            Exceeded::Processes(_) => list.largest(&self.leaders, |_| 1),
            Exceeded::Memory(_) => list.largest(&self.leaders, |pid| {
                usage::memory(pid).saturating_add(shared_memory::held(pid))
            }),
            Exceeded::Disk(_) => list.largest(&self.leaders, usage::written),
        };
        match largest {
            Some(call) => {
                let cause = Cause::Exceeded(exceeded);
                let stop = Stop { call, since: Instant::now(), cause, term_sent: true };
                self.advance_stop(&stop);
                self.stops.push(stop);
            }
            // Only processes that belong to no call are left.
            None => list.signal_all(Signal::KILL),
        }
        ProcessList::take(self.scope).signal_all(Signal::CONT);
    }

    fn reply(&self, reply: &Reply) -> io::Result<()> {
        send(&self.shell, &packet(reply)?, None)
    }
}

/// Where commands can fill a disk.
fn watched_folders(policy: &Policy) -> Vec<PathBuf> {
    match policy.mode {
        SandboxMode::ReadOnly => vec!["/tmp".into()],
        SandboxMode::Workspace => policy.roots.iter().cloned().chain(["/tmp".into()]).collect(),
        SandboxMode::Full => policy.roots.clone(),
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
