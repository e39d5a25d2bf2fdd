//! The end of the terminal: its window was closed, or the program that showed it has ended.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsFd;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use tokio::sync::watch;

/// Watches for the end of the terminal until this is dropped.
///
/// The reader of keys never returns from a terminal that is gone, also on the thread that asks for the next key
/// (<https://github.com/crossterm-rs/crossterm/issues/793>). From the end of the terminal on, standard input is
/// therefore a file from which nothing comes. It is watched from a thread of its own, because the others may be
/// in that reader.
pub(crate) struct HangUp {
    has_come: watch::Receiver<bool>,
    /// The thread ends when this is closed: a process that leaves the terminal has to let go of it.
    _stop: PipeWriter,
}

impl HangUp {
    pub(crate) fn watch() -> io::Result<Self> {
        let (stopped, stop) = io::pipe()?;
        let nothing = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (sender, has_come) = watch::channel(false);
        std::thread::Builder::new().name("terminal".to_owned()).spawn(move || {
            if is_gone_before(&stopped) {
                // It fails for no file that is open.
                let _ = rustix::stdio::dup2_stdin(&nothing);
                sender.send_replace(true);
            }
        })?;
        Ok(Self { has_come, _stop: stop })
    }

    pub(crate) fn has_come(&self) -> bool {
        *self.has_come.borrow()
    }

    /// Returns when the terminal is gone. Cancel safe.
    pub(crate) async fn comes(&mut self) {
        if self.has_come.wait_for(|has_come| *has_come).await.is_err() {
            // It cannot be watched.
            std::future::pending::<()>().await;
        }
    }
}

/// Waits until the terminal is gone, or the other end of the pipe is closed.
fn is_gone_before(stopped: &PipeReader) -> bool {
    let terminal = io::stdin();
    loop {
        // Without events: the end of a file is reported always.
        let mut ends = [terminal.as_fd(), stopped.as_fd()]
            .map(|file| PollFd::from_borrowed_fd(file, PollFlags::empty()));
        match poll(&mut ends, None) {
            Ok(_) if !ends[1].revents().is_empty() => return false,
            Ok(_) if !ends[0].revents().is_empty() => return true,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
