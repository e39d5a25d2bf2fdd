//! The terminal of the user, in raw mode and on the alternate screen until this is dropped. Restored on
//! drop, also after a panic.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::pty::size::Size;

/// Keys that are taken at a time.
const KEYS_BYTES_MAX: usize = 4096;

/// How long to wait at the end for a terminal that accepts no output.
const RESTORE_WAIT: Duration = Duration::from_millis(500);

/// Switches to the alternate screen and clears it.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[m\x1b[H\x1b[J";

/// Turns off every mode that a screen can set, and returns to the first screen.
const LEAVE: &[u8] = b"\x1b[m\x1b[?1l\x1b>\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\
    \x1b[?1006l\x1b[?2004l\x1b[0 q\x1b[?25h\x1b[?1049l";

/// The terminal of the user.
pub(super) struct Tty {
    fd: OwnedFd,
    /// Input and output: two descriptors of the same terminal, each with its own readiness.
    keys: Receiver,
    screen: Sender,
    before: Termios,
}

impl Tty {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // Opened again, so that the non-blocking mode is not shared with other processes.
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

    /// Typed keys. Fails when the terminal is gone. Cancel safe.
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

    /// Writes without waiting for long.
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
