//! Lines that somebody types while a task runs.

use std::io::{BufRead, IsTerminal};

use tokio::sync::mpsc;

/// Lines that wait to be read; the one who types waits then.
const LINES_MAX: usize = 16;

/// Somebody at a terminal, or nobody.
pub(crate) struct Keyboard {
    lines: Option<mpsc::Receiver<String>>,
}

impl Keyboard {
    /// Listens to the terminal, if there is one.
    pub(crate) fn listen() -> Self {
        let there = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if !there {
            return Self::nobody();
        }
        let (sender, lines) = mpsc::channel(LINES_MAX);
        // A thread of its own, which the end of the program does not wait for.
        let thread = std::thread::Builder::new().name("keyboard".to_owned());
        let listening = thread.spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self { lines: listening.is_ok().then_some(lines) }
    }

    /// Nobody.
    pub(crate) fn nobody() -> Self {
        Self { lines: None }
    }

    /// Whether somebody can be asked.
    pub(crate) fn is_there(&self) -> bool {
        self.lines.is_some()
    }

    /// The next line; `None` once, when there will be no more. Nobody never types. Cancel safe.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let Some(lines) = &mut self.lines else { return std::future::pending().await };
        let line = lines.recv().await;
        if line.is_none() {
            self.lines = None;
        }
        line
    }
}
