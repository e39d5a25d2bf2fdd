//! Signals that other processes and the terminal send to the program.

use std::io;
use std::time::{Duration, Instant};

use rustix::process::{Signal as SignalNumber, getpid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that arrives within this time after another program had the terminal, or after this one was continued, was
/// part of that.
const SETTLING: Duration = Duration::from_millis(100);

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// To end, or the terminal is gone.
    Quit,
    Interrupt,
    /// To stop until the program is continued.
    Suspend,
    /// The program was stopped, and goes on.
    Continue,
}

/// The signals that the program waits for, from the moment this exists.
pub(super) struct Signals {
    terminated: Signal,
    hung_up: Signal,
    interrupted: Signal,
    suspended: Signal,
    continued: Signal,
    settled_at: Instant,
}

impl Signals {
    pub(super) fn catch() -> io::Result<Self> {
        let of = |number: SignalNumber| signal(SignalKind::from_raw(number.as_raw()));
        Ok(Self {
            terminated: of(SignalNumber::TERM)?,
            hung_up: of(SignalNumber::HUP)?,
            interrupted: of(SignalNumber::INT)?,
            suspended: of(SignalNumber::TSTP)?,
            continued: of(SignalNumber::CONT)?,
            settled_at: Instant::now(),
        })
    }

    /// The next signal for the program. Cancel safe.
    pub(super) async fn next(&mut self) -> Asked {
        loop {
            let asked = tokio::select! {
                _ = self.terminated.recv() => return Asked::Quit,
                _ = self.hung_up.recv() => return Asked::Quit,
                _ = self.suspended.recv() => return Asked::Suspend,
                _ = self.interrupted.recv() => Asked::Interrupt,
                _ = self.continued.recv() => Asked::Continue,
            };
            if Instant::now() >= self.settled_at {
                return asked;
            }
        }
    }

    /// Returns when the terminal suspends the process group while another program has the terminal. Other signals of the
    /// terminal are for that program. Cancel safe.
    pub(super) async fn suspended_outside(&mut self) {
        self.suspended.recv().await;
    }

    /// What arrives now still belongs to what was before.
    pub(super) fn settle(&mut self) {
        self.settled_at = Instant::now() + SETTLING;
    }
}

/// Stops this process until it is continued. Nothing happens where no shell could continue it.
pub(super) fn stop_this_process() -> io::Result<()> {
    // Not SIGTSTP, which the program catches. The foreground process sees it, and stops too.
    Ok(kill_process(getpid(), SignalNumber::TTOU)?)
}

/// The next signal; never one before they are caught.
pub(super) async fn next_signal(signals: &mut Option<Signals>) -> Asked {
    match signals {
        Some(signals) => signals.next().await,
        None => std::future::pending().await,
    }
}
