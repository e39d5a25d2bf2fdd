//! Child exits as a pollable descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

/// Becomes readable when a child has ended. Blocks SIGHUP, SIGINT and SIGTERM in this process: it
/// ends when its work is done.
pub(super) struct Signals {
    children: SignalFd,
    blocked: SigSet,
}

impl Signals {
    /// Starts watching. Children that ended before are found too.
    pub(super) fn watch() -> io::Result<Self> {
        let mut children = SigSet::empty();
        children.add(Signal::SIGCHLD);
        let mut blocked = children;
        for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM] {
            blocked.add(signal);
        }
        blocked.thread_block()?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self { children: SignalFd::with_flags(&children, flags)?, blocked })
    }

    /// Runs `start` with signals unblocked, so that the new program does not inherit the blocked
    /// signals. The end of a child meanwhile is not signaled: call [`Signals::ended`] afterwards.
    pub(super) fn with_signals_unblocked<T>(
        &self,
        start: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.blocked.thread_unblock()?;
        let started = start();
        self.blocked.thread_block()?;
        started
    }

    /// Children that have ended, and how.
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
