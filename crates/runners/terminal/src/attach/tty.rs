//! The terminal that somebody sits at: every key comes as it is pressed, and the screen is another one
//! for as long as this lives. Dropped, also by a panic, it is as it was.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::size::Size;

/// Keys that are taken at a time.
const KEYS_BYTES_MAX: usize = 4096;

/// How long a terminal that takes nothing is waited for in the end.
const RESTORE_WAIT: Duration = Duration::from_millis(500);

/// Another screen, and nothing on it.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[m\x1b[H\x1b[J";

/// Every mode that a screen can bring along is off, and the first screen is back.
const LEAVE: &[u8] = b"\x1b[m\x1b[?1l\x1b>\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\
    \x1b[?1006l\x1b[?2004l\x1b[0 q\x1b[?25h\x1b[?1049l";

/// The terminal that somebody sits at.
pub(super) struct Tty {
    fd: OwnedFd,
    /// What is typed, and what is shown: two copies of the same, of which each waits for its own.
    keys: Receiver,
    screen: Sender,
    before: Termios,
}

impl Tty {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // Opened anew: that it does not block is nobody else's business.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = open(path, flags, Mode::empty())?;
        if !isatty(&fd) {
            return Err(io::Error::other(format!("`{}` is none", path.display())));
        }
        let before = tcgetattr(&fd)?;
        let keys = Receiver::from_owned_fd_unchecked(fd.try_clone()?)?;
        let screen = Sender::from_owned_fd_unchecked(fd.try_clone()?)?;
        let tty = Self { fd, keys, screen, before };
        let mut raw = tty.before.clone();
        raw.make_raw();
        tcsetattr(&tty.fd, OptionalActions::Flush, &raw)?;
        tty.write_now(ENTER);
        Ok(tty)
    }

    pub(super) fn size(&self) -> io::Result<Size> {
        Ok(tcgetwinsize(&self.fd)?.into())
    }

    /// What was typed; an error when the terminal is gone. Cancel safe.
    pub(super) async fn read(&self) -> io::Result<Vec<u8>> {
        let mut keys = vec![0; KEYS_BYTES_MAX];
        loop {
            self.keys.readable().await?;
            match self.keys.try_read(&mut keys) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(taken) => {
                    keys.truncate(taken);
                    return Ok(keys);
                }
                Err(error) if is_no_matter(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.screen.writable().await?;
            match self.screen.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if is_no_matter(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Without waiting for long.
    fn write_now(&self, mut bytes: &[u8]) {
        let fd = &self.fd;
        while !bytes.is_empty() {
            match write(fd, bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let patience = Timespec::try_from(RESTORE_WAIT).unwrap_or_default();
                    let mut watched = [PollFd::new(fd, PollFlags::OUT)];
                    match poll(&mut watched, Some(&patience)) {
                        Ok(1..) => {}
                        Ok(0) | Err(_) => return,
                    }
                }
                Err(_) => return,
            }
        }
    }
}

fn is_no_matter(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.write_now(LEAVE);
        // If it is gone, there is nothing to restore.
        let _ = tcsetattr(&self.fd, OptionalActions::Flush, &self.before);
    }
}
