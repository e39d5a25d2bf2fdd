//! Lines the user types while a task runs.

use std::io::{BufRead, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc;

use crate::terminal;

/// Lines that wait to be read. When there are more, the terminal is not read.
const LINES_MAX: usize = 16;

/// Whether this process has read the terminal.
static HAS_LISTENED: AtomicBool = AtomicBool::new(false);

/// Discards what was typed for a task and not sent, so that the shell does not get it as a command. Call it last.
pub(crate) fn discard_unsent() {
    if HAS_LISTENED.load(Ordering::Relaxed) {
        discard_typed();
    }
}

/// The same for another process, which read the terminal.
pub(crate) fn discard_typed() {
    if terminal::is_in_foreground() {
        // Without a terminal there is nothing to discard.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    }
}

/// Ends this process at once.
pub(crate) fn exit_now(code: i32) -> ! {
    discard_unsent();
    std::process::exit(code)
}

/// The lines of standard input, when a user can be asked there.
pub(crate) struct Keyboard {
    lines: Option<mpsc::Receiver<String>>,
}

impl Keyboard {
    /// Reads lines from the terminal, if standard input and standard error are one.
    pub(crate) fn listen() -> Self {
        let interactive = std::io::stdin().is_terminal()
            && std::io::stderr().is_terminal()
            && terminal::is_in_foreground();
        if !interactive {
            return Self::absent();
        }
        HAS_LISTENED.store(true, Ordering::Relaxed);
        let (sender, lines) = mpsc::channel(LINES_MAX);
        // A thread, because reading a terminal blocks; the program does not wait for it to end.
        let thread = std::thread::Builder::new().name("keyboard".to_owned());
        let reader = thread.spawn(move || {
            let mut lines = std::io::stdin().lock().lines();
            // The terminal passes on one line at a time.
            while terminal::wait_for_line()
                && let Some(Ok(line)) = lines.next()
                && sender.blocking_send(line).is_ok()
            {}
        });
        Self { lines: reader.is_ok().then_some(lines) }
    }

    /// No user: there are never lines.
    pub(crate) fn absent() -> Self {
        Self { lines: None }
    }

    /// Whether a user can be asked.
    pub(crate) fn is_present(&self) -> bool {
        self.lines.is_some()
    }

    /// The next line; `None` once, at the end of the input. Without a user it never resolves. Cancel safe.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let Some(lines) = &mut self.lines else { return std::future::pending().await };
        let line = lines.recv().await;
        if line.is_none() {
            self.lines = None;
        }
        line
    }
}
