//! Signals to the running program.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::project::{Exit, Project};

/// A signal, and the exit code of a program that it stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGTERM.
    Terminate,
    /// SIGINT, as from Ctrl-C.
    Interrupt,
}

impl Signal {
    fn name_and_code(self) -> (&'static str, i32) {
        match self {
            Self::Terminate => ("-TERM", 143),
            Self::Interrupt => ("-INT", 130),
        }
    }
}

impl Project {
    /// Runs the program, and sends it a signal after a while. It must stop or succeed.
    pub(crate) fn start_and_signal(
        &self,
        arguments: &[&str],
        signal: Signal,
        after: Duration,
    ) -> Exit {
        let mut process = self.antiphon().args(arguments).spawn().unwrap();
        let until = Instant::now() + after;
        while process.try_wait().unwrap().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (name, code) = signal.name_and_code();
        // It may have ended meanwhile.
        let _ = Command::new("kill").args([name, &process.id().to_string()]).status();
        let output = process.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        // By the signal itself, when it came before anything was begun.
        let stopped = output.status.code().is_none_or(|found| found == code);
        assert!(output.status.success() || stopped, "{arguments:?}, {signal:?}: {err}");
        if stopped { Exit::Killed } else { Exit::Completed }
    }
}
