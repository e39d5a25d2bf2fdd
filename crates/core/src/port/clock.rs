//! Time and randomness, passed in where a replay or a test needs to fix them.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A clock.
pub trait Clock: Send + Sync {
    /// The time now. People and programs set it: a later answer may be earlier.
    fn now(&self) -> DateTime<Utc>;

    /// Time since some moment in the past, by a clock that cannot be set. Only differences count. By
    /// default the time of [`now`](Self::now), for clocks of tests.
    fn monotonic(&self) -> Duration {
        (self.now() - DateTime::UNIX_EPOCH).to_std().unwrap_or_default()
    }

    /// The time since the machine started, which all processes on it share; `None` when it is unknown.
    fn boot_time(&self) -> Option<BootTime> {
        None
    }
}

/// A moment by a clock that cannot be set and that all processes of a machine share: it counts from the
/// start of the machine, also while the machine sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootTime {
    /// Names this start of the machine. After the next start it is another one.
    pub boot_id: Uuid,
    /// Milliseconds since then.
    pub elapsed_ms: u64,
}

impl BootTime {
    /// Time since an earlier moment; `None` when the machine was started in between.
    pub fn since(self, earlier: Self) -> Option<Duration> {
        let same = self.boot_id == earlier.boot_id;
        let passed = self.elapsed_ms.checked_sub(earlier.elapsed_ms).filter(|_| same);
        passed.map(Duration::from_millis)
    }
}

/// Makes identifiers.
pub trait IdSource: Send + Sync {
    /// A new, unique identifier. Later ones sort after earlier ones.
    fn next(&self) -> Uuid;

    /// A new, unique identifier without an order (UUID version 4). By default the next one, for tests
    /// that need to know it.
    fn random(&self) -> Uuid {
        self.next()
    }
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    fn monotonic(&self) -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed()
    }
}

/// Random identifiers: those that sort by time are of UUID version 7.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn next(&self) -> Uuid {
        Uuid::now_v7()
    }

    fn random(&self) -> Uuid {
        Uuid::new_v4()
    }
}
