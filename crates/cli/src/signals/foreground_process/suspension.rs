//! Signals for the working process, and stopping with it: the shell waits for the foreground process alone.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SignalFd, siginfo};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, getpid, kill_process};

/// What the kernel says of a child that was stopped, in `si_code` of SIGCHLD (`CLD_STOPPED`).
const STOPPED: i32 = 5;

/// How long the working process may take to stop when another process has suspended the whole process group.
const GROUP_WAIT: Duration = Duration::from_millis(300);

/// A signal to suspend that another process has sent. It went to this process alone, or to the working process too,
/// which then must not get it twice: it would be suspended once more when it is continued.
#[derive(Default)]
pub(super) struct Suspending(Option<Instant>);

impl Suspending {
    /// The signal has arrived.
    pub(super) fn begin(&mut self) {
        self.0.get_or_insert_with(|| Instant::now() + GROUP_WAIT);
    }

    /// Waits until the next signal has arrived, if there was one to suspend. True when the working process was not
    /// stopped meanwhile.
    pub(super) fn is_for_this_process_alone(&mut self, received: &SignalFd) -> bool {
        let Some(end) = self.0 else { return false };
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or_default();
        let is_over = poll(&mut [PollFd::new(received, PollFlags::IN)], Some(&left)) == Ok(0);
        if is_over {
            self.0 = None;
        }
        is_over
    }
}

/// Stops this process too, if its child was stopped: not by another process with SIGSTOP, which is about the child alone.
/// Returns whether it was.
pub(super) fn stop_with(child: &Child, info: &siginfo) -> bool {
    let stops =
        info.ssi_code == STOPPED && info.ssi_status != Signal::SIGSTOP as i32 && is_stopped(child);
    if stops {
        stop(child);
    }
    stops
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
