//! The second process of a worker. It restricts itself, says so, and then carries out orders, one
//! thread for all of them, until the shell is gone.

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

use super::census::{Census, Scope};
use super::signals::Signals;
use crate::message::{
    CallId, Exit, MARK, MESSAGE_BYTES_MAX, Order, Reply, SETUP, Setup, packet, receive, send,
};

/// Processes that the commands of a task may have at a time. The call with the most is ended.
pub(crate) const PROCESSES_MAX: usize = 512;

/// How often they are counted while there are any.
const COUNT_EVERY: Duration = Duration::from_millis(100);

/// How long a call may take to end by itself once it is asked to.
const GRACE: Duration = Duration::from_millis(500);

/// How long it may take to be gone once it is killed.
const KILLING_MAX: Duration = Duration::from_secs(5);

/// How often one looks whether it is.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Where `bash` is. Not taken from `PATH`, which may lead into the workspace.
const SHELLS: [&str; 4] =
    ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash"];

pub(super) fn run(setup: &Setup) -> io::Result<()> {
    let enforced = setup.policy.enforce().map_err(io::Error::other)?;
    let scope = match setup.policy.mode {
        Mode::ReadOnly | Mode::Workspace => Scope::Namespace,
        // Orphans become children of the guard, which is our parent.
        Mode::Full => Scope::Descendants(getppid().ok_or(io::ErrorKind::NotFound)?),
    };
    let bash = SHELLS.iter().map(PathBuf::from).find(|path| path.exists());
    let bash = bash.ok_or_else(|| io::Error::other("`bash` is not installed: install it"))?;
    let mut desk = Desk {
        enforced,
        scope,
        bash,
        signals: Signals::watch()?,
        shell: stdin(),
        leaders: HashMap::new(),
        stops: Vec::new(),
        count_at: None,
    };
    desk.reply(&Reply::Ready)?;
    desk.work()
}

struct Desk {
    enforced: Enforced,
    scope: Scope,
    bash: PathBuf,
    signals: Signals,
    shell: Stdin,
    /// The commands that run, by their first process, which leads their group.
    leaders: HashMap<Pid, CallId>,
    stops: Vec<Stop>,
    /// When to count next; never while nothing runs.
    count_at: Option<Instant>,
}

/// A call that is being ended.
struct Stop {
    call: CallId,
    since: Instant,
    cause: Cause,
    asked: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Ordered,
    TooManyProcesses,
}

impl Desk {
    fn work(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        loop {
            let timeout = self.patience().map(|left| Timespec::try_from(left).unwrap_or_default());
            let mut watched = [
                PollFd::new(&self.shell, PollFlags::IN),
                PollFd::new(&self.signals, PollFlags::IN),
            ];
            retry_on_intr(|| poll(&mut watched, timeout.as_ref()))?;
            let [ordered, signaled] = watched.map(|watched| !watched.revents().is_empty());
            if signaled {
                self.tell_ended()?;
            }
            if ordered {
                match receive(&self.shell, &mut buffer)? {
                    Some((order, pipe)) => self.carry_out(order, pipe)?,
                    None => return Ok(()),
                }
            }
            self.look_after()?;
        }
    }

    /// How long nothing has to be done.
    fn patience(&self) -> Option<Duration> {
        let count = self.count_at.map(|at| at.saturating_duration_since(Instant::now()));
        if self.stops.is_empty() { count } else { Some(LOOK_EVERY) }
    }

    fn carry_out(&mut self, order: Order, pipe: Option<OwnedFd>) -> io::Result<()> {
        match order {
            Order::Start { call, command, workdir } => {
                if let Some(path) = self.enforced.stale() {
                    let path = path.to_owned();
                    return self.reply(&Reply::Stale { call, path });
                }
                match self.start(&call, &command, &workdir, pipe) {
                    Ok(leader) => {
                        self.leaders.insert(leader, call);
                        self.count_at.get_or_insert_with(|| Instant::now() + COUNT_EVERY);
                        self.tell_ended()
                    }
                    Err(error) => {
                        self.reply(&Reply::Failed { call, reason: reason(&error, &workdir) })
                    }
                }
            }
            Order::Stop { call } => {
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
    ) -> io::Result<Pid> {
        let output = pipe.ok_or(io::ErrorKind::BrokenPipe)?;
        let mut bash = Command::new(&self.bash);
        bash.args(["-c", "--", command])
            .current_dir(workdir)
            .env_remove(SETUP)
            .env(MARK, &call.0)
            .env("PWD", workdir)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0);
        let child = self.signals.set_aside(|| bash.spawn())?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Ok(pid.ok_or(io::ErrorKind::NotFound)?)
    }

    fn stop(&mut self, call: CallId) {
        match self.stops.iter_mut().find(|stop| stop.call == call) {
            Some(stop) => stop.cause = Cause::Ordered,
            None => {
                let since = Instant::now();
                self.stops.push(Stop { call, since, cause: Cause::Ordered, asked: false });
            }
        }
    }

    /// Says which commands have ended. Whatever else ended was an orphan.
    fn tell_ended(&mut self) -> io::Result<()> {
        for (pid, status) in self.signals.ended()? {
            if let Some(call) = self.leaders.remove(&pid) {
                let stop = self.stops.iter().find(|stop| stop.call == call);
                let exit = match stop.map(|stop| stop.cause) {
                    Some(Cause::TooManyProcesses) => Exit::TooManyProcesses,
                    Some(Cause::Ordered) | None => exit(status),
                };
                self.reply(&Reply::Ended { call, exit })?;
            }
        }
        Ok(())
    }

    fn look_after(&mut self) -> io::Result<()> {
        for stop in std::mem::take(&mut self.stops) {
            if self.press(&stop) {
                if stop.cause == Cause::Ordered {
                    self.reply(&Reply::Stopped { call: stop.call })?;
                }
            } else {
                self.stops.push(Stop { asked: true, ..stop });
            }
        }
        if self.count_at.is_some_and(|at| at <= Instant::now()) {
            self.count();
        }
        Ok(())
    }

    /// Asks a call to end, then makes it. Whether it is gone.
    fn press(&self, stop: &Stop) -> bool {
        let left = Census::take(self.scope).of(&stop.call, &self.leaders);
        let waited = stop.since.elapsed();
        let running = self.leaders.values().any(|call| *call == stop.call);
        if left.is_empty() && !running || waited > GRACE + KILLING_MAX {
            return true;
        }
        if waited >= GRACE || stop.cause == Cause::TooManyProcesses {
            left.signal_all(Signal::KILL);
        } else if !stop.asked {
            left.signal_all(Signal::TERM);
            left.signal_all(Signal::CONT);
        }
        false
    }

    fn count(&mut self) {
        let count = self.scope.count();
        if count > PROCESSES_MAX && self.stops.is_empty() {
            // So many leave little time for anybody else: they are halted first.
            self.scope.halt(&self.leaders);
            let largest = Census::take(self.scope).largest(&self.leaders);
            if let Some(call) = largest {
                let stop = Stop {
                    call,
                    since: Instant::now(),
                    cause: Cause::TooManyProcesses,
                    asked: true,
                };
                self.press(&stop);
                self.stops.push(stop);
            }
            Census::take(self.scope).signal_all(Signal::CONT);
        }
        self.count_at = (count > 0).then(|| Instant::now() + COUNT_EVERY);
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
