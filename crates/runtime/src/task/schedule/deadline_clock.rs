//! Measures deadlines with a clock that cannot be set.
//!
//! A deadline is stored as a time of the wall clock, so that it holds across restarts. A process reads the
//! wall clock once for each deadline, when it first sees it; from then on the monotonic clock counts. Setting
//! the wall clock neither ends nor prolongs what is under way.
//!
//! The time limit of a task also holds when the wall clock is set between two processes: its creation is
//! recorded by a clock that all processes share until the machine is started again. So are the deadlines of
//! approvals, requests and waits.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antiphon_core::port::{BootTime, Clock};
use chrono::{DateTime, Utc};

/// Number of known deadlines at which those that have passed long ago are dropped.
const CLEANUP_AT: usize = 4096;

/// How long a deadline that has passed is known at least.
const KEPT_AFTER: Duration = Duration::from_secs(3600);

/// Tells whether deadlines have passed.
pub struct DeadlineClock {
    clock: Arc<dyn Clock>,
    known: Mutex<KnownDeadlines>,
}

#[derive(Default)]
struct KnownDeadlines {
    /// When each deadline passes, on the monotonic clock.
    moments: HashMap<DateTime<Utc>, Duration>,
    cleanup_at: usize,
}

impl DeadlineClock {
    /// Measures with this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let known = KnownDeadlines { cleanup_at: CLEANUP_AT, ..KnownDeadlines::default() };
        Self { clock, known: Mutex::new(known) }
    }

    fn known(&self) -> MutexGuard<'_, KnownDeadlines> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The moment on the monotonic clock at which a deadline passes.
    pub(crate) fn moment(&self, until: DateTime<Utc>) -> Duration {
        self.moment_within(until, Duration::MAX)
    }

    /// The same for a deadline that was never further away than `longest`: a wall clock that was set back
    /// between two processes does not prolong it beyond that.
    pub(crate) fn moment_within(&self, until: DateTime<Utc>, longest: Duration) -> Duration {
        self.known_or(until, || {
            (until - self.clock.now()).to_std().unwrap_or_default().min(longest)
        })
    }

    /// The same for a deadline that is `left` away, whatever the wall clock says.
    pub(crate) fn moment_after(&self, until: DateTime<Utc>, left: Duration) -> Duration {
        self.known_or(until, || left)
    }

    /// A deadline by the clock that all processes of the machine share, to be recorded with it; `None` when that is
    /// unknown.
    pub(crate) fn boot_until(&self, until: DateTime<Utc>) -> Option<BootTime> {
        let now = self.clock.boot_time()?;
        let left_ms = u64::try_from(self.left(until).as_millis()).unwrap_or(u64::MAX);
        Some(BootTime { elapsed_ms: now.elapsed_ms.saturating_add(left_ms), ..now })
    }

    /// Works out when a recorded deadline passes, before anything else asks for it. After a restart of the machine
    /// the wall clock counts.
    pub(crate) fn know(&self, until: DateTime<Utc>, boot_until: BootTime) {
        let Some(now) = self.clock.boot_time() else { return };
        let passed = || now.since(boot_until).map(|_| Duration::ZERO);
        if let Some(left) = boot_until.since(now).or_else(passed) {
            self.moment_after(until, left);
        }
    }

    /// Time since a moment that any process on this machine recorded; `None` when that is unknown.
    pub(crate) fn since(&self, earlier: BootTime) -> Option<Duration> {
        self.clock.boot_time()?.since(earlier)
    }

    fn known_or(&self, until: DateTime<Utc>, left: impl FnOnce() -> Duration) -> Duration {
        let mut known = self.known();
        if let Some(moment) = known.moments.get(&until) {
            return *moment;
        }
        let now = self.clock.monotonic();
        let moment = now.saturating_add(left());
        if known.moments.len() >= known.cleanup_at {
            known.moments.retain(|_, moment| moment.saturating_add(KEPT_AFTER) > now);
            known.cleanup_at = CLEANUP_AT.max(2 * known.moments.len());
        }
        known.moments.insert(until, moment);
        moment
    }

    /// The monotonic clock.
    pub(crate) fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    /// The wall clock.
    pub(crate) fn date(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// Time until a deadline passes.
    pub(crate) fn left(&self, until: DateTime<Utc>) -> Duration {
        self.moment(until).saturating_sub(self.clock.monotonic())
    }

    /// Whether a deadline has passed.
    pub(crate) fn has_passed(&self, until: DateTime<Utc>) -> bool {
        self.left(until).is_zero()
    }
}

impl fmt::Debug for DeadlineClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineClock").finish_non_exhaustive()
    }
}

impl PartialEq for DeadlineClock {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}
