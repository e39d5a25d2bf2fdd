//! Signals that stop a command: the first lets it drain, the second ends it at once. What still runs
//! then ends with the process, as after a kill.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::failure::Failure;

/// Signals that come within this time are one: some senders send them to the process and to its group.
pub(crate) const COPY_WITHIN: Duration = Duration::from_millis(100);

/// The signals that stop a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignals {
    /// SIGTERM. The command handles Ctrl-C itself, unless SIGTERM came first.
    Terminate,
    /// SIGTERM and Ctrl-C.
    TerminateAndInterrupt,
}

/// Waits for a stop. Signals are caught from the moment it exists.
pub(crate) struct StopSignal {
    first: watch::Receiver<bool>,
    /// Ends the process at the second signal.
    _watcher: JoinSet<()>,
}

impl StopSignal {
    pub(crate) fn catch(which: StopSignals) -> Result<Self, Failure> {
        let fault =
            |error: std::io::Error| Failure::failed(format!("cannot catch signals: {error}"));
        let mut terminate = signal(SignalKind::terminate()).map_err(fault)?;
        let mut interrupt = match which {
            StopSignals::Terminate => None,
            StopSignals::TerminateAndInterrupt => {
                Some(signal(SignalKind::interrupt()).map_err(fault)?)
            }
        };
        let (sender, first) = watch::channel(false);
        let mut watcher = JoinSet::new();
        watcher.spawn(async move {
            next(&mut terminate, interrupt.as_mut()).await;
            sender.send_replace(true);
            // A copy that came through the process group is not a second signal.
            tokio::time::sleep(COPY_WITHIN).await;
            // The second may be the other one.
            let (Ok(mut terminate), Ok(mut interrupt)) =
                (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
            else {
                return;
            };
            crate::keyboard::exit_now(next(&mut terminate, Some(&mut interrupt)).await);
        });
        Ok(Self { first, _watcher: watcher })
    }

    /// Returns when the first signal has come.
    pub(crate) async fn received(&mut self) {
        // The watcher holds the sender for as long as the process runs.
        let _ = self.first.wait_for(|received| *received).await;
    }
}

/// Waits for a signal. Returns the exit code that stands for it.
async fn next(terminate: &mut Signal, interrupt: Option<&mut Signal>) -> i32 {
    let interrupted = async {
        match interrupt {
            Some(interrupt) => interrupt.recv().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = terminate.recv() => 143,
        _ = interrupted => 130,
    }
}

/// What interrupts the task of a command: Ctrl-C, and the end of its terminal.
pub(crate) struct Interrupts {
    interrupt: Signal,
    /// Absent when the command was started to outlive its terminal, as with `nohup`.
    hangup: Option<Signal>,
}

impl Interrupts {
    pub(crate) fn catch() -> Result<Self, Failure> {
        let fault =
            |error: std::io::Error| Failure::failed(format!("cannot listen for Ctrl-C: {error}"));
        let interrupt = signal(SignalKind::interrupt()).map_err(fault)?;
        let hangup = (!is_hangup_ignored()).then(|| signal(SignalKind::hangup())).transpose();
        Ok(Self { interrupt, hangup: hangup.map_err(fault)? })
    }

    /// Returns when one of them has come. Cancel safe.
    pub(crate) async fn received(&mut self) {
        let hung_up = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = hung_up => {}
        }
    }
}

/// Whether this process was started with SIGHUP ignored: the lowest bit of the mask.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|it| it & 1 == 1)
}
