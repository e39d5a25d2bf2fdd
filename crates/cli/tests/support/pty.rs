//! The binary under a pseudo-terminal: everything it writes there, byte by byte.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part; a test fails by panicking"
)]

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// How long something may take that comes by itself.
const PATIENCE: Duration = Duration::from_secs(40);

/// Pieces that wait to be read. When there are more, the command waits.
const PIECES_MAX: usize = 1024;

/// A command at a terminal of 100 columns.
pub(crate) struct Terminal {
    keys: File,
    child: Running,
    pieces: Receiver<Vec<u8>>,
    written: Vec<u8>,
    reader: JoinHandle<()>,
    /// The reader ends when this is closed.
    stop: PipeWriter,
}

impl Terminal {
    pub(crate) fn start(mut command: Command) -> Self {
        let tty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&tty).unwrap();
        unlockpt(&tty).unwrap();
        let size = Winsize { ws_row: 50, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&tty, size).unwrap();
        let name = ptsname(&tty, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let seat = rustix::fs::open(&name, flags, Mode::empty()).unwrap();
        let stdio = |seat: &OwnedFd| Stdio::from(seat.try_clone().unwrap());
        command.stdin(stdio(&seat)).stdout(stdio(&seat)).stderr(stdio(&seat));
        let child = Running(command.spawn().unwrap());
        drop((command, seat));
        let keys = File::from(tty);
        let mut screen = keys.try_clone().unwrap();
        let (sender, pieces) = sync_channel(PIECES_MAX);
        let (stopped, stop) = std::io::pipe().unwrap();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while is_readable_before(&screen, &stopped) {
                // The end of the terminal is an error.
                let Ok(count) = screen.read(&mut buffer) else { return };
                if count == 0 || sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { keys, child, pieces, written: Vec::new(), reader, stop }
    }

    /// What was written so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }

    /// The same, as bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.written
    }

    /// Waits until more is written.
    pub(crate) fn receive(&mut self) -> Result<(), String> {
        match self.pieces.recv_timeout(PATIENCE) {
            Ok(piece) => {
                self.written.extend(piece);
                Ok(())
            }
            Err(error) => Err(format!("does not come ({error})")),
        }
    }

    /// Waits until the text is on the terminal.
    pub(crate) fn until(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.text().contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            match self.pieces.recv_timeout(left) {
                Ok(piece) => self.written.extend(piece),
                Err(error) => panic!("`{text}` does not come ({error}): {}", self.text()),
            }
        }
    }

    /// The terminal gets another size, and says so to the processes in its foreground.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keys, size).unwrap();
    }

    /// Sends a signal to the processes in the foreground of the terminal.
    pub(crate) fn signal(&self, signal: Signal) {
        let group = rustix::termios::tcgetpgrp(&self.keys).unwrap();
        kill_process_group(group, signal).unwrap();
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Closes the terminal, as its window does, and waits until the command and the processes that it started have
    /// ended.
    pub(crate) fn hang_up(self) {
        let pid = self.child.0.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let started = children.split_whitespace().map(|child| child.parse().unwrap());
        let processes: Vec<OwnedFd> = std::iter::once(pid.cast_signed())
            .chain(started)
            .map(|pid| pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap())
            .collect();
        let Self { keys, mut child, pieces, reader, stop, .. } = self;
        drop((stop, pieces));
        reader.join().unwrap();
        drop(keys);
        let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
        for process in &processes {
            let mut end = [PollFd::new(process, PollFlags::IN)];
            let ended = poll(&mut end, Some(&patience)).unwrap();
            assert_eq!(ended, 1, "of {pid} and {children}one goes on");
        }
        child.0.wait().unwrap();
    }

    /// Waits until the command ends: its exit code, and all that was written.
    pub(crate) fn end(mut self) -> (i32, String) {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.pieces.recv_timeout(left) {
                Ok(piece) => self.written.extend(piece),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end: {}", self.text()),
            }
        }
        (self.child.0.wait().unwrap().code().unwrap(), self.text())
    }
}

/// A process that is killed when it is not needed any longer.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the terminal has something to read. False when the other end of the pipe is closed before.
fn is_readable_before(terminal: &File, stopped: &PipeReader) -> bool {
    let wait = |file| PollFd::from_borrowed_fd(file, PollFlags::IN);
    let mut files = [wait(terminal.as_fd()), wait(stopped.as_fd())];
    poll(&mut files, None).unwrap();
    files[1].revents().is_empty()
}
