//! Runs file work on a thread where it may block.
//!
//! A canceled call requests a stop and waits until the work has stopped. The work checks for a stop
//! between its steps, never within a step that must be atomic: a step is done entirely or not at
//! all, and if it was done, the call returns its result.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use antiphon_core::{Cancel, ToolError};
use tokio::task::spawn_blocking;

/// A flag that asks work on another thread to stop.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

/// The work stopped because a stop was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped;

impl StopFlag {
    /// Fails once a stop is requested. Work calls this between its steps.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.is_requested() { Err(Stopped) } else { Ok(()) }
    }

    /// Whether a stop is requested.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on a blocking thread, for a call of `tool`.
pub async fn blocking<T: Send + 'static>(
    tool: &str,
    cancel: Cancel,
    work: impl FnOnce(&StopFlag) -> Result<T, Stopped> + Send + 'static,
) -> Result<T, ToolError> {
    let stop = StopFlag::default();
    // A call that is dropped instead of canceled stops its work too, without waiting for it.
    let _stop_on_drop = StopOnDrop(stop.clone());
    let mut running = pin!(spawn_blocking({
        let stop = stop.clone();
        move || work(&stop)
    }));
    let ended = tokio::select! {
        ended = &mut running => ended,
        () = cancel => {
            stop.request();
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

struct StopOnDrop(StopFlag);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.request();
    }
}
