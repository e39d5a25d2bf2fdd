//! The guard itself: waits until the program has ended or the runner is gone, and ends the rest.

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
use super::census::{Census, KILLING_MAX};
use crate::setup::{Report, SETUP, Setup, Stage};

/// How often orphans are buried while nothing else happens.
const BURY_EVERY: Duration = Duration::from_secs(1);

/// How often it is looked whether those who were asked to end are gone.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How long those whom the program left behind may take to end.
const LEFT_BEHIND: Duration = Duration::from_millis(500);

pub(super) fn run(own: &[OsString], command: &[OsString]) -> io::Result<()> {
    close_inherited()?;
    // Out of every terminal's reach. Fails only for who leads a group already.
    let _ = setsid();
    keep_off_signals()?;
    set_child_subreaper(Pid::from_raw(1))?;
    let program = match start(own, command) {
        Ok(program) => program,
        Err(error) => return tell(&Report::NotStarted { reason: error.to_string() }),
    };
    match attend(program)? {
        Some(status) => {
            tell(&report(status))?;
            clear(LEFT_BEHIND);
        }
        None => {
            clear(GRACE);
        }
    }
    Ok(())
}

/// Whatever else the runner has open is no business of ours, and of what we start.
fn close_inherited() -> io::Result<()> {
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // One of them was the list itself, and is closed by now.
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}

/// It ends when its work does.
fn keep_off_signals() -> io::Result<()> {
    let mut kept = SigSet::empty();
    for signal in [Kept::SIGHUP, Kept::SIGINT, Kept::SIGTERM] {
        kept.add(signal);
    }
    Ok(kept.thread_block()?)
}

fn start(own: &[OsString], command: &[OsString]) -> io::Result<Pid> {
    let stage = Stage::Inside { guard: getpid().as_raw_pid() };
    let setup = Setup { stage, own_args: own.len() };
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

/// Until the program has ended, or the runner is gone: then there is nothing to tell.
fn attend(program: Pid) -> io::Result<Option<WaitStatus>> {
    let process = pidfd_open(program, PidfdFlags::empty())?;
    let tick = Timespec::try_from(BURY_EVERY).unwrap_or_default();
    loop {
        let runner = stdin();
        let mut watched =
            [PollFd::new(&process, PollFlags::IN), PollFd::new(&runner, PollFlags::IN)];
        retry_on_intr(|| poll(&mut watched, Some(&tick)))?;
        let gone = !watched[1].revents().is_empty();
        if let Some(status) = bury(program)? {
            return Ok(Some(status));
        }
        // The runner says nothing: whatever comes is the end.
        if gone {
            return Ok(None);
        }
    }
}

/// Lets go of all that have ended. How the program did, if it is among them.
fn bury(program: Pid) -> io::Result<Option<WaitStatus>> {
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

/// Asks everybody to end, then makes them.
fn clear(grace: Duration) {
    let asked = Census::descendants();
    // Shells that talk to people take no notice of one of them, other programs of the other.
    for signal in [Signal::HUP, Signal::TERM, Signal::CONT] {
        asked.signal_all(signal);
    }
    let begun = Instant::now();
    while begun.elapsed() < grace + KILLING_MAX {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        if Census::descendants().is_empty() {
            return;
        }
        if begun.elapsed() >= grace {
            Census::kill(Census::descendants);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn report(status: WaitStatus) -> Report {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Report::Exited { code },
        (None, Some(signal)) => Report::Killed { signal },
        (None, None) => Report::Exited { code: -1 },
    }
}

/// If the runner is gone, there is nobody to tell.
fn tell(report: &Report) -> io::Result<()> {
    let mut socket: std::os::unix::net::UnixStream = stdin().try_clone_to_owned()?.into();
    let _ = socket.write_all(&serde_json::to_vec(report)?);
    Ok(())
}
