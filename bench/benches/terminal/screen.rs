//! A terminal with a screen, which the program is started at. Everything that it writes is interpreted as it comes, so a
//! text is on the screen when a person would see it.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use antiphon_bench::{Error, Process};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use vt100::Parser;

/// Rows and columns.
const ROWS: u16 = 40;
const COLUMNS: u16 = 120;

/// How long something may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program at a terminal. It is killed when this is dropped.
pub(crate) struct Screen {
    terminal: File,
    child: Child,
    parser: Parser,
}

impl Screen {
    /// Starts a command whose terminal this is.
    pub(crate) fn start(mut command: Command) -> Result<Self, Error> {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&terminal)?;
        unlockpt(&terminal)?;
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size)?;
        let name = ptsname(&terminal, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let seat = rustix::fs::open(&name, flags, Mode::empty())?;
        command.stdin(Stdio::from(seat.try_clone()?)).stdout(Stdio::from(seat.try_clone()?));
        let child = command.stderr(Stdio::from(seat)).spawn()?;
        let sides = (NonZeroU16::new(ROWS), NonZeroU16::new(COLUMNS));
        let (Some(rows), Some(columns)) = sides else { return Err("no size".into()) };
        Ok(Self { terminal: File::from(terminal), child, parser: Parser::new(rows, columns, 0) })
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) -> Result<(), Error> {
        Ok(self.terminal.write_all(keys.as_bytes())?)
    }

    /// Waits until the screen shows a text.
    pub(crate) fn until(&mut self, text: &str) -> Result<(), Error> {
        self.until_seen(|screen| screen.contents().contains(text))
            .map_err(|error| format!("`{text}`: {error}").into())
    }

    /// Waits until the screen is as wanted.
    pub(crate) fn until_seen(
        &mut self,
        is_seen: impl Fn(&vt100::Screen) -> bool,
    ) -> Result<(), Error> {
        let end = Instant::now() + PATIENCE;
        while !is_seen(self.parser.screen()) {
            if Instant::now() > end || !self.receive(PATIENCE)? {
                return Err(format!("does not come:\n{}", self.parser.screen().contents()).into());
            }
        }
        Ok(())
    }

    /// Interprets what is written for a while.
    pub(crate) fn watch(&mut self, time: Duration) -> Result<(), Error> {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            self.receive(left)?;
        }
        Ok(())
    }

    /// Interprets what is written next. False when nothing comes.
    fn receive(&mut self, wait: Duration) -> Result<bool, Error> {
        let wait =
            Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: wait.subsec_nanos().into() };
        let mut ready = [PollFd::new(&self.terminal, PollFlags::IN)];
        if poll(&mut ready, Some(&wait))? == 0 {
            return Ok(false);
        }
        let mut bytes = [0; 8192];
        let count = self.terminal.read(&mut bytes)?;
        self.parser.process(&bytes[..count]);
        Ok(true)
    }

    /// Row and column of the cursor.
    pub(crate) fn cursor(&self) -> (u16, u16) {
        self.parser.screen().cursor_position()
    }

    /// The process that does the work, which the started one has started.
    pub(crate) fn process(&self) -> Result<Process, Error> {
        let started = Process::new(self.child.id()).descendants();
        Ok(Process::new(*started.first().ok_or("the program has not started")?))
    }

    /// Quits with an empty prompt.
    pub(crate) fn quit(mut self) -> Result<(), Error> {
        self.press("\x04")?;
        let end = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > end {
                return Err("the program does not quit".into());
            }
            // The end of the terminal is an error.
            let _ = self.receive(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
