//! When to end a search.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use antiphon_toolbox::Stop;

/// Longest that a search takes. It shows what it found until then, and says so.
pub(crate) const SEARCH_SECONDS_MAX: u64 = 60;

/// Asked again and again by whoever searches.
#[derive(Debug)]
pub(crate) struct Deadline<'a> {
    stop: &'a Stop,
    ends: Instant,
    late: AtomicBool,
}

impl<'a> Deadline<'a> {
    /// From now on.
    pub(crate) fn new(stop: &'a Stop) -> Self {
        let ends = Instant::now() + Duration::from_secs(SEARCH_SECONDS_MAX);
        Self { stop, ends, late: AtomicBool::new(false) }
    }

    /// Whether to go no further.
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

    /// What to say of a search that took too long.
    pub(crate) fn remarks(&self) -> Option<String> {
        let remarks = format!(
            "[stopped after {SEARCH_SECONDS_MAX} seconds, before everything was seen: narrow `path`]"
        );
        self.late.load(Ordering::Relaxed).then_some(remarks)
    }
}
