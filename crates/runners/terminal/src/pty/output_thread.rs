//! The thread that reads the output of a program and passes it to the screen and the recording. A
//! program that writes without end cannot block other work.

use std::io::{self, PipeWriter, pipe};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read, retry_on_intr};

use crate::pty::keyboard::Keyboard;
use crate::pty::recording::Recording;
use crate::pty::screen::Screen;

/// Bytes read at once.
const READ_BYTES_MAX: usize = 64 * 1024;

/// Bytes read after the program has ended: more than a terminal buffers.
const DRAINED_BYTES_MAX: usize = 1024 * 1024;

/// Reads the output of a program. Dropping it stops the thread.
pub(crate) struct OutputThread {
    thread: Option<JoinHandle<()>>,
    running: Option<PipeWriter>,
}

impl OutputThread {
    pub(crate) fn start(
        pty: OwnedFd,
        screen: Arc<Screen>,
        recording: Recording,
        keyboard: Keyboard,
    ) -> io::Result<Self> {
        let (stopped, running) = pipe()?;
        let pumping = OutputReader { pty, screen, recording, keyboard };
        let thread = thread::Builder::new()
            .name("terminal".to_owned())
            .spawn(move || pumping.work(OwnedFd::from(stopped)))?;
        Ok(Self { thread: Some(thread), running: Some(running) })
    }

    /// Reads the remaining output, and stops.
    pub(crate) async fn finish(mut self) {
        self.running = None;
        let thread = self.thread.take();
        let joined = tokio::task::spawn_blocking(move || thread.map(JoinHandle::join));
        let _ = joined.await;
    }
}

struct OutputReader {
    pty: OwnedFd,
    screen: Arc<Screen>,
    recording: Recording,
    keyboard: Keyboard,
}

impl OutputReader {
    fn work(mut self, stopped: OwnedFd) {
        let mut buffer = vec![0; READ_BYTES_MAX];
        let mut drained = 0;
        while drained < DRAINED_BYTES_MAX {
            let mut watched =
                [PollFd::new(&self.pty, PollFlags::IN), PollFd::new(&stopped, PollFlags::empty())];
            if retry_on_intr(|| poll(&mut watched, None)).is_err() {
                return;
            }
            let is_over = !watched[1].revents().is_empty();
            match read(&self.pty, &mut buffer) {
                Ok(0) => return,
                Ok(taken) => {
                    self.take(&buffer[..taken]);
                    drained += if is_over { taken } else { 0 };
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if !is_over => {}
                // Every writer is gone, or the reader was stopped.
                Err(_) => return,
            }
        }
    }

    fn take(&mut self, output: &[u8]) {
        let answers = self.screen.feed(output);
        if !answers.is_empty() {
            self.keyboard.answer(answers);
        }
        let screen = &self.screen;
        let whole = || screen.snapshot().state_formatted();
        self.recording.write(output, screen.size(), whole);
    }
}
