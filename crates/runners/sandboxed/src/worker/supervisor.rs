//! The first process inside. It restricts itself, starts the working process, and then only
//! measures resources and reaps orphans. It is the first of its PID namespace: no signal from
//! inside reaches it, and when it ends, every process ends.

use std::io;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use antiphon_sandbox::{Enforced, Policy};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, pidfd_open, wait};

use super::stdin_socket;
use super::usage::ResourceUsage;
use crate::limits::WorkerLimits;
use crate::setup::{Exit, Purpose, SETUP, Setup};
use crate::wire::{FromWorker, VERSION, send_now};

/// Interval of the measurements.
const MEASURE_INTERVAL: Duration = Duration::from_millis(50);

pub(super) fn run(purpose: Purpose, policy: &Policy, limits: WorkerLimits) -> io::Result<ExitCode> {
    let mut enforced = policy.enforce().map_err(io::Error::other)?;
    let exit = match purpose {
        Purpose::Trial => {
            let ready = FromWorker::Ready { version: VERSION };
            send_now(&stdin_socket()?, &ready).map_err(io::Error::other)?;
            Exit::Over
        }
        Purpose::Work => {
            let worker = start(&limits)?;
            watch_worker(worker, &mut enforced, &limits)?
        }
    };
    Ok(ExitCode::from(exit.code()))
}

fn start(limits: &WorkerLimits) -> io::Result<Pid> {
    let child = Command::new("/proc/self/exe")
        .args(std::env::args_os().skip(1))
        .env(SETUP, serde_json::to_string(&Setup::Work { limits: *limits })?)
        .stdout(Stdio::null())
        .spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok(pid.ok_or(io::ErrorKind::NotFound)?)
}

/// Waits until the working process has ended or a limit is exceeded.
fn watch_worker(worker: Pid, enforced: &mut Enforced, limits: &WorkerLimits) -> io::Result<Exit> {
    let process = pidfd_open(worker, PidfdFlags::empty())?;
    let tick = Timespec::try_from(MEASURE_INTERVAL).unwrap_or_default();
    loop {
        let mut watched = [PollFd::new(&process, PollFlags::IN)];
        retry_on_intr(|| poll(&mut watched, Some(&tick)))?;
        if let Some(status) = reap(worker)? {
            return Ok(exit(status));
        }
        if let Some(exit) = ResourceUsage::take().over(limits) {
            return Ok(exit);
        }
        if enforced.stale().is_some() {
            return Ok(Exit::Stale);
        }
    }
}

/// Reaps ended children. Returns how the working process ended, if it did.
fn reap(worker: Pid) -> io::Result<Option<WaitStatus>> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == worker => return Ok(Some(status)),
            Ok(Some(_)) => {}
            Ok(None) | Err(Errno::CHILD) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

fn exit(status: WaitStatus) -> Exit {
    if let Some(code) = status.exit_status() {
        // Only these two codes may come from the working process; the others are the first
        // process's own.
        return if code == i32::from(Exit::Over.code()) {
            Exit::Over
        } else if code == i32::from(Exit::Refused.code()) {
            Exit::Refused
        } else {
            Exit::Broken
        };
    }
    let is = |signal: Signal| status.terminating_signal() == Some(signal.as_raw());
    if is(Signal::XCPU) {
        Exit::Cpu
    } else if is(Signal::ABORT) {
        Exit::Aborted
    } else if is(Signal::KILL) {
        Exit::Killed
    } else {
        Exit::Broken
    }
}
