//! Durations and their percentiles.

use std::time::Duration;

/// Durations of the same operation.
#[derive(Debug, Clone, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Adds a duration.
    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Number of durations.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no duration.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The duration in milliseconds that this many percent do not exceed. Zero when empty.
    pub fn percentile_ms(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        if sorted.is_empty() {
            return 0.0;
        }
        let (_, time, _) = sorted.select_nth_unstable(place);
        time.as_secs_f64() * 1000.0
    }
}

impl Extend<Duration> for Times {
    fn extend<T: IntoIterator<Item = Duration>>(&mut self, times: T) {
        self.0.extend(times);
    }
}

impl IntoIterator for Times {
    type Item = Duration;
    type IntoIter = std::vec::IntoIter<Duration>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
