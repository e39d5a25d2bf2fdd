//! A pseudo terminal: ours is the end where the screen and the keyboard are.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::ioctl_fionbio;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::tcsetwinsize;

use crate::size::Size;

/// A pseudo terminal that nothing runs in yet.
pub(crate) struct Pty {
    /// Where the screen and the keyboard are. Never blocks.
    pub(crate) ours: OwnedFd,
    /// Where the program is.
    pub(crate) theirs: OwnedFd,
}

impl Pty {
    pub(crate) fn open(size: Size) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let theirs = ioctl_tiocgptpeer(&ours, flags)?;
        tcsetwinsize(&ours, size.into())?;
        ioctl_fionbio(&ours, true)?;
        Ok(Self { ours, theirs })
    }
}

/// The program is told by the kernel.
pub(crate) fn resize(pty: impl AsFd, size: Size) -> io::Result<()> {
    Ok(tcsetwinsize(pty, size.into())?)
}
