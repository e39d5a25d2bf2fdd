//! Time and randomness, passed in where a replay or a test needs to fix them.

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// A clock.
pub trait Clock: Send + Sync {
    /// The time now. Never earlier than an earlier answer.
    fn now(&self) -> DateTime<Utc>;
}

/// Makes identifiers.
pub trait IdSource: Send + Sync {
    /// A new, unique identifier. Later ones sort after earlier ones.
    fn next(&self) -> Uuid;
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// Random identifiers that sort by time (UUID version 7).
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn next(&self) -> Uuid {
        Uuid::now_v7()
    }
}
