//! Time and randomness, passed in wherever a replay or a test needs to fix them.

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The time now. Never earlier than the answer before.
    fn now(&self) -> DateTime<Utc>;
}

/// Makes identifiers.
pub trait IdSource: Send + Sync {
    /// An identifier nobody has seen before. Later ones sort after earlier ones.
    fn next(&self) -> Uuid;
}

/// The clock on the wall.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// Random identifiers in the order of time (UUID version 7).
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn next(&self) -> Uuid {
        Uuid::now_v7()
    }
}
