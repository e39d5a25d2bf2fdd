//! Signals as something to wait for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

/// Tells when a child has ended. Until [`Signals::set_aside`], signals that ask a process to end are
/// kept from this one as well: it ends when its work does.
pub(super) struct Signals {
    children: SignalFd,
    kept: SigSet,
}

impl Signals {
    /// From now on. Children that ended before are found as well.
    pub(super) fn watch() -> io::Result<Self> {
        let mut children = SigSet::empty();
        children.add(Signal::SIGCHLD);
        let mut kept = children;
        for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM] {
            kept.add(signal);
        }
        kept.thread_block()?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self { children: SignalFd::with_flags(&children, flags)?, kept })
    }

    /// Starts a program, which inherits what is kept from its parent, so for that moment nothing
    /// is. A child that ends meanwhile is not told of: ask for those that have ended afterwards.
    pub(super) fn set_aside<T>(&self, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.kept.thread_unblock()?;
        let started = start();
        self.kept.thread_block()?;
        started
    }

    /// Those of our children that have ended, and how.
    pub(super) fn ended(&self) -> io::Result<Vec<(Pid, WaitStatus)>> {
        while self.children.read_signal()?.is_some() {}
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
        self.children.as_fd()
    }
}
