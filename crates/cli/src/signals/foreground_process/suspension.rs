//! Signals for the working process, and stopping with it: the shell waits for the foreground process alone.

use std::fs;
use std::process::Child;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::siginfo;
use rustix::process::{Pid, getpid, kill_process};

/// What the kernel says of a child that was stopped, in `si_code` of SIGCHLD (`CLD_STOPPED`).
const STOPPED: i32 = 5;

/// Stops this process too, if its child was stopped: not by another process with SIGSTOP, which is about the child alone.
pub(super) fn stop_with(child: &Child, info: &siginfo) {
    if info.ssi_code == STOPPED && info.ssi_status != Signal::SIGSTOP as i32 && is_stopped(child) {
        stop(child);
    }
}

/// Sends a signal to the working process.
pub(super) fn pass_on(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let signal = rustix::process::Signal::from_named_raw(signal as i32);
    if let (Some(pid), Some(signal)) = (pid, signal) {
        // It may have ended just now.
        let _ = kill_process(pid, signal);
    }
}

/// Whether a process is stopped now.
fn is_stopped(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
    status.rsplit(')').next().is_some_and(|fields| fields.trim_start().starts_with('T'))
}

/// Stops this process, whose end the shell waits for, until it is continued. The other one goes on then.
fn stop(child: &Child) {
    let mut suspends = SigSet::empty();
    suspends.add(Signal::SIGTSTP);
    // It is blocked until now. Where no shell could continue this process, the kernel stops nothing.
    let _ = kill_process(getpid(), rustix::process::Signal::TSTP);
    let _ = suspends.thread_unblock();
    let _ = suspends.thread_block();
    pass_on(child, Signal::SIGCONT);
}
