//! Suspending a command that draws on its terminal: Ctrl-Z, and the signals that other processes send for the same.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal as Number;
use rustix::process::{getpid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// A signal that comes within this time after the process was continued was part of that.
const SETTLING: Duration = Duration::from_millis(100);

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To stop until the command is continued.
    Suspend,
    /// The command was stopped, and goes on.
    Continue,
}

/// The signals of suspending, from the moment this exists.
pub(crate) struct Suspension {
    suspended: Signal,
    continued: Signal,
    settled_at: Instant,
}

impl Suspension {
    pub(crate) fn catch() -> Result<Self, Failure> {
        let of = |number: Number| {
            signal(SignalKind::from_raw(number as i32))
                .map_err(|error| Failure::failed(format!("cannot listen for Ctrl-Z: {error}")))
        };
        let (suspended, continued) = (of(Number::SIGTSTP)?, of(Number::SIGCONT)?);
        Ok(Self { suspended, continued, settled_at: Instant::now() })
    }

    /// The next of the signals. Cancel safe.
    pub(crate) async fn asked(&mut self) -> Asked {
        loop {
            let asked = tokio::select! {
                _ = self.suspended.recv() => return Asked::Suspend,
                _ = self.continued.recv() => Asked::Continue,
            };
            if Instant::now() >= self.settled_at {
                return asked;
            }
        }
    }

    /// Stops this process until it is continued. Nothing happens where no shell could continue it.
    pub(crate) fn stop(&mut self) {
        // Not SIGTSTP, which is caught. The foreground process sees it, and stops too.
        let _ = kill_process(getpid(), rustix::process::Signal::TTOU);
        self.settled_at = Instant::now() + SETTLING;
    }
}
