//! The guard: waits until the program has ended or the runner is gone, and ends the remaining
//! processes.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal as Kept};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, pidfd_open, set_child_subreaper,
    setsid, wait,
};
use rustix::stdio::{stderr, stdin};

use super::GRACE;
use super::process_list::{KILL_WAIT_MAX, ProcessList};
use crate::setup::{ProcessRole, Report, SETUP, Setup};

/// Interval of reaping orphans.
const REAP_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of the checks whether processes are gone after SIGTERM.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// How long processes left by the program may take to end.
const LEFTOVER_GRACE: Duration = Duration::from_millis(500);

pub(super) fn run(own: &[OsString], command: &[OsString]) -> io::Result<()> {
    close_inherited()?;
    // Detach from every terminal. Fails only for a group leader.
    let _ = setsid();
    block_signals()?;
    set_child_subreaper(Pid::from_raw(1))?;
    let program = match start(own, command) {
        Ok(program) => program,
        Err(error) => return send_report(&Report::NotStarted { reason: error.to_string() }),
    };
    match wait_for_end(program)? {
        Some(status) => {
            send_report(&report(status))?;
            end_all(LEFTOVER_GRACE);
        }
        None => {
            end_all(GRACE);
        }
    }
    Ok(())
}

/// Closes descriptors that were inherited from the runner.
fn close_inherited() -> io::Result<()> {
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // One of them was the directory listing itself, which is closed by now.
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}

/// Blocks termination signals: the guard ends when its work is done.
fn block_signals() -> io::Result<()> {
    let mut blocked = SigSet::empty();
    for signal in [Kept::SIGHUP, Kept::SIGINT, Kept::SIGTERM] {
        blocked.add(signal);
    }
    Ok(blocked.thread_block()?)
}

fn start(own: &[OsString], command: &[OsString]) -> io::Result<Pid> {
    let role = ProcessRole::Inner { guard: getpid().as_raw_pid() };
    let setup = Setup { role, own_args: own.len() };
    let terminal = || stderr().as_fd().try_clone_to_owned();
    let child = Command::new("/proc/self/exe")
        .args(own)
        .args(command)
        .env(SETUP, serde_json::to_string(&setup)?)
        .stdin(Stdio::from(terminal()?))
        .stdout(Stdio::from(terminal()?))
        .stderr(Stdio::from(terminal()?))
        .spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok(pid.ok_or(io::ErrorKind::NotFound)?)
}

/// Waits until the program has ended. `None` when the runner is gone first.
fn wait_for_end(program: Pid) -> io::Result<Option<WaitStatus>> {
    let process = pidfd_open(program, PidfdFlags::empty())?;
    let tick = Timespec::try_from(REAP_INTERVAL).unwrap_or_default();
    loop {
        let runner = stdin();
        let mut watched =
            [PollFd::new(&process, PollFlags::IN), PollFd::new(&runner, PollFlags::IN)];
        retry_on_intr(|| poll(&mut watched, Some(&tick)))?;
        let gone = !watched[1].revents().is_empty();
        if let Some(status) = reap(program)? {
            return Ok(Some(status));
        }
        // The runner sends nothing: readable means closed.
        if gone {
            return Ok(None);
        }
    }
}

/// Reaps ended children. Returns how the program ended, if it did.
fn reap(program: Pid) -> io::Result<Option<WaitStatus>> {
    let mut ended = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == program => ended = Some(status),
            Ok(Some(_)) => {}
            Ok(None) | Err(Errno::CHILD) => return Ok(ended),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends SIGTERM to every process, then SIGKILL.
fn end_all(grace: Duration) {
    let signaled = ProcessList::descendants();
    // Interactive shells ignore SIGTERM, other programs ignore SIGHUP.
    for signal in [Signal::HUP, Signal::TERM, Signal::CONT] {
        signaled.signal_all(signal);
    }
    let begun = Instant::now();
    while begun.elapsed() < grace + KILL_WAIT_MAX {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        if ProcessList::descendants().is_empty() {
            return;
        }
        if begun.elapsed() >= grace {
            ProcessList::kill(ProcessList::descendants);
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
}

fn report(status: WaitStatus) -> Report {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Report::Exited { code },
        (None, Some(signal)) => Report::Killed { signal },
        (None, None) => Report::Exited { code: -1 },
    }
}

/// Fails when the runner is gone, and then no report is needed.
fn send_report(report: &Report) -> io::Result<()> {
    let mut socket: std::os::unix::net::UnixStream = stdin().try_clone_to_owned()?.into();
    let _ = socket.write_all(&serde_json::to_vec(report)?);
    Ok(())
}
