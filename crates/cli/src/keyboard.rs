//! Lines the user types while a task runs.

use std::io::{BufRead, IsTerminal};

use tokio::sync::mpsc;

/// Lines that wait to be read. When there are more, the terminal is not read.
const LINES_MAX: usize = 16;

/// The lines of standard input, when a user can be asked there.
pub(crate) struct Keyboard {
    lines: Option<mpsc::Receiver<String>>,
}

impl Keyboard {
    /// Reads lines from the terminal, if standard input and standard error are one.
    pub(crate) fn listen() -> Self {
        let interactive = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if !interactive {
            return Self::absent();
        }
        let (sender, lines) = mpsc::channel(LINES_MAX);
        // A thread, because reading a terminal blocks; the program does not wait for it to end.
        let thread = std::thread::Builder::new().name("keyboard".to_owned());
        let reader = thread.spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
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
