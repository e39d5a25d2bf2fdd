//! Sources of signed events, as the HTTP interface takes them.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use antiphon_core::{SourceName, Wake};
use antiphon_http::{
    Scheme, WEBHOOK_BODY_BYTES_MAX, Webhook, WebhookContent, WebhookSecret, Webhooks,
};
use antiphon_project::environment::Environment;
use antiphon_project::settings::{WebhookConfig, WebhookScheme};

use crate::failure::Failure;

/// One source; `None` when its secret is not set.
pub(in crate::commands) fn webhook(
    source: &SourceName,
    config: &WebhookConfig,
    environment: &Environment,
) -> Result<Option<Webhook>, Failure> {
    let refuse = |reason: String| Failure::usage(format!("[webhooks.{source}]: {reason}"));
    let body_bytes_max = config.body_bytes_max.map_or(WEBHOOK_BODY_BYTES_MAX, NonZeroUsize::get);
    if body_bytes_max > WEBHOOK_BODY_BYTES_MAX {
        let most = format!("`body_bytes_max` is {WEBHOOK_BODY_BYTES_MAX} at most");
        return Err(refuse(most));
    }
    let Some(secret) = config.secret(environment) else { return Ok(None) };
    let secret = WebhookSecret::new(&secret)
        .map_err(|error| refuse(format!("{}: {error}", config.secret_env)))?;
    Ok(Some(Webhook {
        source: source.clone(),
        agent: config.agent.clone(),
        secret,
        scheme: match config.scheme {
            WebhookScheme::Standard => Scheme::Standard,
            WebhookScheme::Github => Scheme::Github,
        },
        reads: if config.include_payload { WebhookContent::Payload } else { WebhookContent::Body },
        wake: if config.wake { Wake::Yes } else { Wake::No },
        mode: config.mode,
        salience: config.salience,
        body_bytes_max,
        rate: config.rate_per_minute,
    }))
}

/// The sources whose secrets are set. Warns about the others.
pub(super) fn webhooks(
    configured: &BTreeMap<SourceName, WebhookConfig>,
    environment: &Environment,
) -> Result<Webhooks, Failure> {
    let mut set = Vec::new();
    for (source, config) in configured {
        match webhook(source, config, environment)? {
            Some(webhook) => set.push(webhook),
            None => tracing::warn!(
                webhook.source = %source,
                "{} is not set: no events of this source are taken", config.secret_env
            ),
        }
    }
    Webhooks::new(set).map_err(|error| Failure::usage(format!("[webhooks]: {error}")))
}
