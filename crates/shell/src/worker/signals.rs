//! Signals as something to wait for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

/// Tells when a child has ended. Programs that are started do not inherit any of it.
pub(super) struct Signals(SignalFd);

impl Signals {
    /// From now on. Signals that ask a process to end are kept from this one as well: it ends
    /// when its work does.
    pub(super) fn watch() -> io::Result<Self> {
        let mut children = SigSet::empty();
        children.add(Signal::SIGCHLD);
        let mut kept = children;
        for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM] {
            kept.add(signal);
        }
        kept.thread_block()?;
        Ok(Self(SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }

    /// Those of our children that have ended, and how.
    pub(super) fn ended(&self) -> io::Result<Vec<(Pid, WaitStatus)>> {
        while self.0.read_signal()?.is_some() {}
        let mut ended = Vec::new();
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(child)) => ended.push(child),
                Ok(None) | Err(rustix::io::Errno::CHILD) => return Ok(ended),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
