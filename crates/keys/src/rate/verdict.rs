//! The limiter's decision on one request, and its form on the wire.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

/// The limiter's decision on one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateDecision {
    /// Requests per minute. After a pause, all of them may come at once.
    pub limit: u32,
    /// Requests that would be allowed right now.
    pub remaining: u32,
    /// When `remaining` is `limit` again, without further requests.
    pub reset_at: DateTime<Utc>,
    /// How long to wait before the next attempt; `None` when this request is allowed.
    pub retry_after: Option<Duration>,
}

impl RateDecision {
    /// Whether the request is allowed.
    pub fn is_allowed(&self) -> bool {
        self.retry_after.is_none()
    }

    /// Response headers, for allowed and refused requests. Times are whole seconds, rounded up, so that
    /// a client that waits that long is not refused again.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("x-ratelimit-limit", self.limit.to_string()),
            ("x-ratelimit-remaining", self.remaining.to_string()),
            ("x-ratelimit-reset", self.reset_epoch_s().to_string()),
        ];
        if let Some(wait_s) = self.retry_after_s() {
            headers.push(("retry-after", wait_s.to_string()));
        }
        headers
    }

    /// How long to wait before the next attempt, in whole seconds, rounded up.
    pub fn retry_after_s(&self) -> Option<u64> {
        self.retry_after.map(whole_seconds)
    }

    /// The `details` of a 429 response.
    pub fn details(&self) -> Value {
        json!({
            "limit": self.limit,
            "remaining": self.remaining,
            "reset_at": self.reset_at.to_rfc3339_opts(SecondsFormat::AutoSi, true),
            "retry_after_s": self.retry_after_s(),
        })
    }

    fn reset_epoch_s(&self) -> i64 {
        let partial = i64::from(self.reset_at.timestamp_subsec_nanos() > 0);
        self.reset_at.timestamp().saturating_add(partial)
    }
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}
