//! How fast a server may talk. One that talks faster is read more slowly: its own pipe fills up and
//! it waits.

use std::time::Duration;

use tokio::time::Instant;

/// Messages a server may send in a second, on average.
pub const MESSAGES_PER_SECOND_MAX: u32 = 2000;

/// Messages it may send at once.
pub const MESSAGES_BURST_MAX: u32 = 4000;

/// A bucket of tokens.
#[derive(Debug)]
pub(crate) struct Pace {
    per_second: f64,
    burst: f64,
    tokens: f64,
    filled: Instant,
}

impl Pace {
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        let burst = f64::from(burst);
        Self { per_second: f64::from(per_second), burst, tokens: burst, filled: Instant::now() }
    }

    pub(crate) fn of_messages() -> Self {
        Self::new(MESSAGES_PER_SECOND_MAX, MESSAGES_BURST_MAX)
    }

    /// Takes `amount`, at most a burst. If that is not there yet, nothing is taken and the answer
    /// is how long to wait before asking again.
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

    /// Takes `amount` when it is there.
    pub(crate) async fn taken(&mut self, amount: u32) {
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
        let mut pace = Pace::new(100, 10);
        let start = Instant::now();
        for _ in 0..10 {
            pace.taken(1).await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        for _ in 0..100 {
            pace.taken(1).await;
        }
        let took = start.elapsed();
        assert!((0.95..1.2).contains(&took.as_secs_f64()), "{took:?}");
    }
}
