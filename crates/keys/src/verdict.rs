//! What a limiter says about one request, and how that is told to a client.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

/// What a limiter says about one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Requests a minute, and at once after a rest.
    pub limit: u32,
    /// How many more could be made right now.
    pub remaining: u32,
    /// When all of them could be made again.
    pub reset_at: DateTime<Utc>,
    /// How long to wait before asking again; `None` when this request may go on.
    pub retry_after: Option<Duration>,
}

impl Verdict {
    /// Whether the request may go on.
    pub fn is_allowed(&self) -> bool {
        self.retry_after.is_none()
    }

    /// The headers of the answer, whether it is allowed or not. Times are whole seconds, rounded up,
    /// so that who waits that long is not refused again.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("x-ratelimit-limit", self.limit.to_string()),
            ("x-ratelimit-remaining", self.remaining.to_string()),
            ("x-ratelimit-reset", self.reset_epoch_s().to_string()),
        ];
        if let Some(wait) = self.retry_after {
            headers.push(("retry-after", whole_seconds(wait).to_string()));
        }
        headers
    }

    /// The `details` of a 429.
    pub fn details(&self) -> Value {
        json!({
            "limit": self.limit,
            "remaining": self.remaining,
            "reset_at": self.reset_at.to_rfc3339_opts(SecondsFormat::AutoSi, true),
            "retry_after_s": self.retry_after.map(whole_seconds),
        })
    }

    fn reset_epoch_s(&self) -> i64 {
        let begun = i64::from(self.reset_at.timestamp_subsec_nanos() > 0);
        self.reset_at.timestamp().saturating_add(begun)
    }
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}
