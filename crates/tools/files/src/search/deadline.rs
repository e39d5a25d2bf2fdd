//! Ends a search at a stop request or a time limit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use antiphon_toolbox::StopFlag;

/// Time limit of a search. The result then shows the matches so far, and says so.
pub(crate) const SEARCH_SECONDS_MAX: u64 = 60;

/// The search polls it between files.
#[derive(Debug)]
pub(crate) struct Deadline<'a> {
    stop: &'a StopFlag,
    ends: Instant,
    late: AtomicBool,
}

impl<'a> Deadline<'a> {
    /// Starts the time limit now.
    pub(crate) fn new(stop: &'a StopFlag) -> Self {
        let ends = Instant::now() + Duration::from_secs(SEARCH_SECONDS_MAX);
        Self { stop, ends, late: AtomicBool::new(false) }
    }

    /// Whether the search has to stop.
    pub(crate) fn is_over(&self) -> bool {
        if self.stop.is_requested() {
            return true;
        }
        let late = Instant::now() >= self.ends;
        if late {
            self.late.store(true, Ordering::Relaxed);
        }
        late
    }

    /// Remark about a search that reached the time limit.
    pub(crate) fn remarks(&self) -> Option<String> {
        let remarks = format!(
            "[stopped after {SEARCH_SECONDS_MAX} seconds, before everything was seen: narrow `path`]"
        );
        self.late.load(Ordering::Relaxed).then_some(remarks)
    }
}
