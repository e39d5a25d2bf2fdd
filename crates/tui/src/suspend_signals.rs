//! The signals of suspending: Ctrl-Z, and those that other processes send for the same.
//!
//! Another process may suspend the whole process group: then this process gets one signal from it and a second one
//! from the foreground process, which passes its own on. Both mean one suspension.

use std::io;
use std::time::Duration;

use futures_util::FutureExt;
use rustix::process::Signal as SignalNumber;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// How long the signal that continued this process may take to be delivered.
const CONTINUED_WAIT: Duration = Duration::from_millis(100);

/// How long the runtime takes to deliver signals that were handled at the same time as another one.
const DELIVERY: Duration = Duration::from_millis(5);

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspendSignal {
    /// To stop until the program is continued.
    Suspend,
    /// The program was stopped, and goes on.
    Continue,
}

/// The signals of suspending, from the moment this exists.
pub struct SuspendSignals {
    suspended: Signal,
    continued: Signal,
    earlier: Earlier,
}

/// What is known of signals that arrived before this process was stopped.
#[derive(Clone, Copy)]
enum Earlier {
    /// None is left.
    None,
    /// The signal that continued this process comes after them.
    UntilContinued(Instant),
    /// It has come.
    UntilDelivered(Instant),
}

impl SuspendSignals {
    /// Catches them from now on.
    pub fn catch() -> io::Result<Self> {
        let of = |number: SignalNumber| signal(SignalKind::from_raw(number.as_raw()));
        let (suspended, continued) = (of(SignalNumber::TSTP)?, of(SignalNumber::CONT)?);
        Ok(Self { suspended, continued, earlier: Earlier::None })
    }

    /// The next of the signals. Cancel safe.
    pub async fn next(&mut self) -> SuspendSignal {
        self.forget_earlier().await;
        tokio::select! {
            _ = self.suspended.recv() => SuspendSignal::Suspend,
            _ = self.continued.recv() => SuspendSignal::Continue,
        }
    }

    /// This process was stopped and goes on: what arrived before that is forgotten.
    pub fn was_stopped(&mut self) {
        self.earlier = Earlier::UntilContinued(Instant::now() + CONTINUED_WAIT);
    }

    /// All earlier signals were handled before the one that continued this process, or the kernel discarded them with
    /// it. Cancel safe.
    async fn forget_earlier(&mut self) {
        if let Earlier::UntilContinued(end) = self.earlier {
            let _ = tokio::time::timeout_at(end, self.continued.recv()).await;
            self.earlier = Earlier::UntilDelivered(Instant::now() + DELIVERY);
        }
        if let Earlier::UntilDelivered(end) = self.earlier {
            tokio::time::sleep_until(end).await;
            self.earlier = Earlier::None;
            let _ = self.suspended.recv().now_or_never();
        }
    }
}
