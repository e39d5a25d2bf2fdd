//! What a change to the whole journal is doing, while it takes long.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use antiphon_sqlite::MaintenanceStep;

use crate::commands::backup::blocking;
use crate::failure::Failure;
use crate::terminal;

/// How often progress is printed.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Runs `work` on a blocking thread, and prints what it does once a second.
pub(super) async fn with_progress<T: Send + 'static>(
    work: impl FnOnce(&mut dyn FnMut(MaintenanceStep)) -> T + Send + 'static,
) -> Result<T, Failure> {
    let (current, began) = (Arc::new(Mutex::new(None)), Instant::now());
    let reported = Arc::clone(&current);
    let mut done = std::pin::pin!(blocking(move || {
        work(&mut |step| {
            *reported.lock().unwrap_or_else(PoisonError::into_inner) = Some(step);
        })
    }));
    let start = tokio::time::Instant::now() + PROGRESS_INTERVAL;
    let mut ticks = tokio::time::interval_at(start, PROGRESS_INTERVAL);
    loop {
        tokio::select! {
            done = &mut done => return done,
            _ = ticks.tick() => {
                let step = *current.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(MaintenanceStep { doing, progress }) = step {
                    let part = progress.map_or(String::new(), |(done, total)| {
                        format!(": {} %", done * 100 / total.max(1))
                    });
                    let seconds = began.elapsed().as_secs();
                    terminal::note(&format!("{doing}{part} ({seconds} s)\n"));
                }
            }
        }
    }
}
