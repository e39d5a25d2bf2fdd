//! A pseudo terminal. This process has the end with the screen and the keyboard.

pub(crate) mod keyboard;
pub(crate) mod output_thread;
pub(crate) mod prompt;
pub(crate) mod recording;
pub(crate) mod screen;
pub(crate) mod size;
pub(crate) mod typing;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::ioctl_fionbio;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::tcsetwinsize;

use crate::pty::size::Size;

/// A pseudo terminal without a program.
pub(crate) struct Pty {
    /// The end with the screen and the keyboard. Non-blocking.
    pub(crate) ours: OwnedFd,
    /// The end of the program.
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

/// Sets the size. The kernel informs the program.
pub(crate) fn resize(pty: impl AsFd, size: Size) -> io::Result<()> {
    Ok(tcsetwinsize(pty, size.into())?)
}
