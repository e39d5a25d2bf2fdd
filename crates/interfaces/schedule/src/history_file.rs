//! The file with the start times of schedules. Without it, missed ticks are skipped; none is delivered twice.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use antiphon_private_file::{Durability, write_atomic};
use antiphon_project::error::ProjectError;
use antiphon_project::schedules::Schedules;
use chrono::{DateTime, Utc};

use crate::history::{HistoryChange, ScheduleHistory};

/// Largest file with the start times of schedules, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Reads the start times at `path`, updates them to these schedules, and writes them back. They are recorded when this
/// returns: run the schedules after it.
pub fn updated_history(
    path: &Path,
    schedules: &Schedules,
    now: DateTime<Utc>,
) -> Result<ScheduleHistory, ProjectError> {
    let mut text = String::new();
    let read =
        File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    let mut history: ScheduleHistory =
        read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default();
    if history.update(schedules, now) == HistoryChange::Changed {
        let unwritable = |reason: String| {
            ProjectError::InvalidInput(format!("cannot write {}: {reason}", path.display()))
        };
        let text =
            serde_json::to_string(&history).map_err(|error| unwritable(error.to_string()))?;
        write_atomic(path, text.as_bytes(), Durability::Synced)
            .map_err(|error| unwritable(error.to_string()))?;
    }
    Ok(history)
}
