//! Work with files, on a thread where it may block.
//!
//! A call that is canceled asks the work to stop and waits until it has. The work looks between
//! its steps, never within one that must be whole: what it has done by then is done entirely or
//! not at all, and if it was done, the call says so.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use antiphon_core::{Cancel, ToolError};
use tokio::task::spawn_blocking;

/// Tells work that runs on a thread of its own when to stop.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

/// The work was asked to stop, and did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

impl Stop {
    /// Whether to go on: to be asked between steps.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.is_asked() { Err(Stopped) } else { Ok(()) }
    }

    /// Whether it was asked to stop.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` where it may block, for a call of `tool`.
pub async fn blocking<T: Send + 'static>(
    tool: &str,
    cancel: Cancel,
    work: impl FnOnce(&Stop) -> Result<T, Stopped> + Send + 'static,
) -> Result<T, ToolError> {
    let stop = Stop::default();
    // A call that is dropped instead of canceled stops too, only nobody waits for it.
    let _asks = AskOnDrop(stop.clone());
    let mut running = pin!(spawn_blocking({
        let stop = stop.clone();
        move || work(&stop)
    }));
    let ended = tokio::select! {
        ended = &mut running => ended,
        () = cancel => {
            stop.ask();
            running.await
        }
    };
    match ended {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(Stopped)) => Err(ToolError::Canceled),
        Err(error) => {
            Err(ToolError::Unavailable { tool: tool.to_owned(), reason: error.to_string() })
        }
    }
}

struct AskOnDrop(Stop);

impl Drop for AskOnDrop {
    fn drop(&mut self) {
        self.0.ask();
    }
}
