//! How often and after which pauses a failed connection is tried again.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// How often a server that does not answer is tried again. A success starts the count anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Retries in a row, at most.
    pub attempts_max: usize,
    /// Pause before the first retry. It doubles before each further one.
    pub first_wait: Duration,
    /// Longest pause.
    pub wait_max: Duration,
}

impl RetryPolicy {
    /// No retries.
    pub const NEVER: Self =
        Self { attempts_max: 0, first_wait: Duration::ZERO, wait_max: Duration::ZERO };

    /// The pauses before the retries, with jitter. It ends after the last retry.
    pub fn waits(self) -> ExponentialBackoff {
        ExponentialBuilder::new()
            .with_jitter()
            .with_min_delay(self.first_wait)
            .with_max_delay(self.wait_max)
            .with_max_times(self.attempts_max)
            .build()
    }
}

impl Default for RetryPolicy {
    /// Ten retries, from 100 ms to 10 s.
    fn default() -> Self {
        Self {
            attempts_max: 10,
            first_wait: Duration::from_millis(100),
            wait_max: Duration::from_secs(10),
        }
    }
}
