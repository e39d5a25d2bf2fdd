//! Limits how fast messages of a server are read. The pipe of a faster server fills up and the
//! server waits.

use std::time::Duration;

use tokio::time::Instant;

/// Messages a server may send per second, on average.
pub const MESSAGES_PER_SECOND_MAX: u32 = 2000;

/// Messages a server may send in one burst.
pub const MESSAGES_BURST_MAX: u32 = 4000;

/// A token bucket.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    per_second: f64,
    burst: f64,
    tokens: f64,
    filled: Instant,
}

impl RateLimiter {
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        let burst = f64::from(burst);
        Self { per_second: f64::from(per_second), burst, tokens: burst, filled: Instant::now() }
    }

    pub(crate) fn for_messages() -> Self {
        Self::new(MESSAGES_PER_SECOND_MAX, MESSAGES_BURST_MAX)
    }

    /// Takes `amount` tokens, at most a burst. If there are not enough, takes none and returns how
    /// long to wait before the next attempt.
    pub(crate) fn take(&mut self, amount: u32) -> Result<(), Duration> {
        let now = Instant::now();
        let grown = now.duration_since(self.filled).as_secs_f64() * self.per_second;
        self.tokens = (self.tokens + grown).min(self.burst);
        self.filled = now;
        let amount = f64::from(amount).min(self.burst);
        if self.tokens >= amount {
            self.tokens -= amount;
            return Ok(());
        }
        let wait = Duration::from_secs_f64((amount - self.tokens) / self.per_second);
        Err(wait.max(Duration::from_millis(1)))
    }

    /// Takes `amount` tokens; waits until there are enough.
    pub(crate) async fn acquire(&mut self, amount: u32) {
        while let Err(wait) = self.take(amount) {
            tokio::time::sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_then_the_pace_holds() {
        let mut rate_limiter = RateLimiter::new(100, 10);
        let start = Instant::now();
        for _ in 0..10 {
            rate_limiter.acquire(1).await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        for _ in 0..100 {
            rate_limiter.acquire(1).await;
        }
        let took = start.elapsed();
        assert!((0.95..1.2).contains(&took.as_secs_f64()), "{took:?}");
    }
}
