//! Webhook events: `POST /v1/events/{source}`. The user's configuration names the sources.
//!
//! A sender with the secret of a source may report events, and nothing else. A repeated delivery is accepted
//! once, also after a restart: its id is the idempotency key in the journal. The event is data: nothing in it
//! is fetched, followed or executed.
//!
//! | check, in this order                                 | otherwise                                      |
//! |------------------------------------------------------|------------------------------------------------|
//! | the source is configured, and its secret is set      | 404 for both                                   |
//! | the body is within its size and time limits          | 413, 408                                       |
//! | the signature is valid and recent                    | 401; the log has the reason                    |
//! | the source is within its rate limit                  | 429; unsigned requests do not count            |
//! | the body is JSON                                     | 415, 400                                       |
//! | the inbox of the agent is not full                   | 429; 503 when the agent cannot be started      |

mod configured;
mod delivery;
mod signature;

use std::collections::HashMap;
use std::sync::Arc;

use antiphon_core::{AgentName, HandlingMode, Salience, SourceName, Wake};
use antiphon_interface_transport::AppState;
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, post_with};
use antiphon_keys::{KeyId, Limiter, RateLimit, RateLimitError};
use antiphon_runtime::PAYLOAD_BYTES_MAX;

pub use signature::{
    Scheme, TOLERANCE_S, WEBHOOK_SECRET_BYTES_MIN, WebhookSecret, WebhookSecretError,
};

/// The route of webhook events.
pub(crate) const ROUTE: &str = "/v1/events/{source}";

/// Configured sources, at most.
pub const WEBHOOKS_MAX: usize = 256;

/// Largest body of an event, in bytes, unless the configuration sets a lower limit.
pub const WEBHOOK_BODY_BYTES_MAX: usize = PAYLOAD_BYTES_MAX;

/// Events per minute of a source without a configured rate limit.
pub const WEBHOOK_RATE_PER_MINUTE_DEFAULT: u32 = 120;

/// Text of an event that the model reads, in bytes, at most.
pub const WEBHOOK_TEXT_BYTES_MAX: usize = 16 * 1024;

/// A source of webhook events.
#[derive(Debug)]
pub struct Webhook {
    /// Name of the source, in the URL and in the label that the model reads.
    pub source: SourceName,
    /// The agent that receives its events.
    pub agent: AgentName,
    /// The secret that it signs with.
    pub secret: WebhookSecret,
    /// The scheme of its signatures.
    pub scheme: Scheme,
    /// Which part of an event the model reads.
    pub reads: WebhookContent,
    /// Whether an event wakes an idle agent.
    pub wake: Wake,
    /// When the agent reads an event.
    pub mode: HandlingMode,
    /// Urgency of its events, as the model reads it.
    pub salience: Option<Salience>,
    /// Largest body, in bytes.
    pub body_bytes_max: usize,
    /// Rate limit; [`WEBHOOK_RATE_PER_MINUTE_DEFAULT`] when absent.
    pub rate: Option<RateLimit>,
}

/// Which part of an event the model reads, up to [`WEBHOOK_TEXT_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookContent {
    /// The text in its field `body`; empty when there is none.
    Body,
    /// The whole event.
    Payload,
}

/// The configured sources, and their rate limits.
#[derive(Debug)]
pub struct Webhooks {
    sources: HashMap<String, (KeyId, Webhook)>,
    limiter: Limiter,
}

/// Why sources cannot be configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebhooksError {
    /// Too many sources: remove some.
    #[error("at most {WEBHOOKS_MAX} webhook sources can be configured")]
    TooMany,
    /// Two sources have the same name: rename one.
    #[error("two webhook sources are named `{source_name}`")]
    Twice {
        /// The repeated name.
        source_name: SourceName,
    },
    /// A rate limit is out of range.
    #[error(transparent)]
    Rate(#[from] RateLimitError),
}

impl Webhooks {
    /// Sources with distinct names.
    pub fn new(webhooks: Vec<Webhook>) -> Result<Self, WebhooksError> {
        if webhooks.len() > WEBHOOKS_MAX {
            return Err(WebhooksError::TooMany);
        }
        let limiter = Limiter::new(RateLimit::per_minute(WEBHOOK_RATE_PER_MINUTE_DEFAULT)?);
        let mut sources = HashMap::new();
        for (n, webhook) in webhooks.into_iter().enumerate() {
            // A key id has eight digits.
            let id = format!("{n:08}").parse().map_err(|_| WebhooksError::TooMany)?;
            let name = webhook.source.clone();
            if sources.insert(name.to_string(), (id, webhook)).is_some() {
                return Err(WebhooksError::Twice { source_name: name });
            }
        }
        Ok(Self { sources, limiter })
    }

    /// Whether a source of this name is configured.
    fn has(&self, source: &SourceName) -> bool {
        self.sources.contains_key(source.as_str())
    }
}

/// The webhook sources of a server, as its handlers take them. Without any, no event is accepted.
#[derive(Clone)]
pub(crate) struct ConfiguredWebhooks(pub(crate) Option<Arc<Webhooks>>);

impl ConfiguredWebhooks {
    /// Whether a source of this name is configured.
    pub(crate) fn has(&self, source: &SourceName) -> bool {
        self.0.as_ref().is_some_and(|webhooks| webhooks.has(source))
    }
}

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let accept = post_with(delivery::accept, |route| {
        let summary =
            "Accepts a signed event of a configured source. The signature is the credential.";
        let route = route.describe("take_event", Tag::Agents, summary);
        let route = route.fails(&[400, 401, 408, 413, 415, 429]);
        route.response::<202, axum::Json<delivery::EventAccepted>>()
    });
    ApiRouter::new().api_route(ROUTE, accept)
}
