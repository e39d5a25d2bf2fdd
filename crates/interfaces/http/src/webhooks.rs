//! Events from outside: `POST /v1/events/{source}`, as the user's configuration names the sources.
//!
//! Whoever knows the secret of a source may say that something happened, and nothing else. The same
//! delivery is taken once, also after a restart: its name is the key in the journal. Nothing in it is
//! fetched, followed or obeyed.
//!
//! | asked, in this order                                 | otherwise                              |
//! |------------------------------------------------------|----------------------------------------|
//! | the source is configured, and its secret is set      | 404, one as the other                  |
//! | the body is not too large, and not too slow          | 413, 408                               |
//! | the signature is that of the secret, and not old     | 401, whatever is wrong; the log knows  |
//! | the source does not come too often                   | 429; strangers do not count            |
//! | the body is JSON                                     | 415, 400                               |
//! | there is room in the inbox of the agent              | 429; 503 when nobody can read it       |

mod delivery;
mod signature;

use std::collections::HashMap;
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use antiphon_core::{AgentName, HandlingMode, Salience, SourceName};
use antiphon_keys::{KeyId, Limiter, RateLimit, RateLimitError};
use antiphon_runtime::{PAYLOAD_BYTES_MAX, Wake};
use axum::http::Method;

use crate::openapi::{Tag, Telling};
use crate::room::AppState;

pub use signature::{
    Scheme, TOLERANCE_S, WEBHOOK_SECRET_BYTES_MIN, WebhookSecret, WebhookSecretError,
};

/// Where events arrive.
pub(crate) const ROUTE: &str = "/v1/events/{source}";

/// Sources, at most.
pub const WEBHOOKS_MAX: usize = 256;

/// Largest body of an event, unless the configuration says less.
pub const WEBHOOK_BODY_BYTES_MAX: usize = PAYLOAD_BYTES_MAX;

/// Events a minute of a source whose limit nobody configured.
pub const WEBHOOK_RATE_PER_MINUTE_DEFAULT: u32 = 120;

/// Most of an event that a model reads, in bytes.
pub const WEBHOOK_TEXT_BYTES_MAX: usize = 16 * 1024;

/// One source of events.
#[derive(Debug)]
pub struct Webhook {
    /// What it is called, in the address and in the label that the model reads.
    pub source: SourceName,
    /// Who reads what it says.
    pub agent: AgentName,
    /// What it signs with.
    pub secret: WebhookSecret,
    /// How it signs.
    pub scheme: Scheme,
    /// What of an event the model reads.
    pub reads: Reads,
    /// Whether an event wakes the agent.
    pub wake: Wake,
    /// When it may reach the model.
    pub mode: HandlingMode,
    /// How urgent it is.
    pub salience: Option<Salience>,
    /// Largest body.
    pub body_bytes_max: usize,
    /// How often it may come; [`WEBHOOK_RATE_PER_MINUTE_DEFAULT`] when absent.
    pub rate: Option<RateLimit>,
}

/// What of an event the model reads, as far as [`WEBHOOK_TEXT_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// The text in its field `body`, or only that there was one.
    Body,
    /// All of it.
    Payload,
}

/// The sources of events, and how often each comes.
#[derive(Debug)]
pub struct Webhooks {
    sources: HashMap<String, (KeyId, Webhook)>,
    limiter: Limiter,
}

/// Why there are no such sources.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebhooksError {
    /// Take some away.
    #[error("there may be {WEBHOOKS_MAX} sources of events at most")]
    TooMany,
    /// Name them apart.
    #[error("there are two sources `{source_name}`")]
    Twice {
        /// The name.
        source_name: SourceName,
    },
    /// Name another limit.
    #[error(transparent)]
    Rate(#[from] RateLimitError),
}

impl Webhooks {
    /// These sources, which have names of their own.
    pub fn new(webhooks: Vec<Webhook>) -> Result<Self, WebhooksError> {
        if webhooks.len() > WEBHOOKS_MAX {
            return Err(WebhooksError::TooMany);
        }
        let limiter = Limiter::new(RateLimit::per_minute(WEBHOOK_RATE_PER_MINUTE_DEFAULT)?);
        let mut sources = HashMap::new();
        for (n, webhook) in webhooks.into_iter().enumerate() {
            // Eight digits are an id.
            let id = format!("{n:08}").parse().map_err(|_| WebhooksError::TooMany)?;
            let name = webhook.source.clone();
            if sources.insert(name.to_string(), (id, webhook)).is_some() {
                return Err(WebhooksError::Twice { source_name: name });
            }
        }
        Ok(Self { sources, limiter })
    }

    /// Whether a source goes by this name.
    pub(crate) fn has(&self, source: &SourceName) -> bool {
        self.sources.contains_key(source.as_str())
    }
}

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let take = post_with(delivery::take, |route| {
        let summary =
            "Takes a signed event of a source that is configured. The signature is the credential.";
        let route = route.told("take_event", Tag::Agents, summary);
        let route = route.fails(&[400, 401, 408, 413, 415, 429]);
        route.response::<202, axum::Json<delivery::Taken>>()
    });
    ApiRouter::new().api_route(ROUTE, take)
}

/// Whether a request needs no token because it is signed.
pub(crate) fn is_signed(method: &Method, route: Option<&str>) -> bool {
    *method == Method::POST && route == Some(ROUTE)
}
