//! The thread that takes what a program writes to the screen and to the recording. It is a thread of
//! its own: a program that writes without end keeps nobody else from working.

use std::io::{self, PipeWriter, pipe};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read, retry_on_intr};

use crate::keyboard::Keyboard;
use crate::recording::Recording;
use crate::screen::Screen;

/// Bytes that are taken at a time.
const TURN_MESSAGES_BYTES_MAX: usize = 64 * 1024;

/// Bytes that are still taken once the program has ended: more than a terminal holds back.
const DRAINED_BYTES_MAX: usize = 1024 * 1024;

/// Takes what a program writes. Dropped, it stops by itself.
pub(crate) struct Pump {
    thread: Option<JoinHandle<()>>,
    running: Option<PipeWriter>,
}

impl Pump {
    pub(crate) fn start(
        pty: OwnedFd,
        screen: Arc<Screen>,
        recording: Recording,
        keyboard: Keyboard,
    ) -> io::Result<Self> {
        let (stopped, running) = pipe()?;
        let pumping = Pumping { pty, screen, recording, keyboard };
        let thread = thread::Builder::new()
            .name("terminal".to_owned())
            .spawn(move || pumping.work(OwnedFd::from(stopped)))?;
        Ok(Self { thread: Some(thread), running: Some(running) })
    }

    /// Takes what is still there, and stops.
    pub(crate) async fn finish(mut self) {
        self.running = None;
        let thread = self.thread.take();
        let joined = tokio::task::spawn_blocking(move || thread.map(JoinHandle::join));
        let _ = joined.await;
    }
}

struct Pumping {
    pty: OwnedFd,
    screen: Arc<Screen>,
    recording: Recording,
    keyboard: Keyboard,
}

impl Pumping {
    fn work(mut self, stopped: OwnedFd) {
        let mut buffer = vec![0; TURN_MESSAGES_BYTES_MAX];
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
                // Everybody who could write is gone, or nobody wants to know.
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
