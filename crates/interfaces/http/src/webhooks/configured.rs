//! Sources of signed events, from the user's settings.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use antiphon_core::{SourceName, Wake};
use antiphon_project::environment::Environment;
use antiphon_project::error::ProjectError;
use antiphon_project::settings::{WebhookConfig, WebhookScheme};

use super::{Scheme, WEBHOOK_BODY_BYTES_MAX, Webhook, WebhookContent, WebhookSecret, Webhooks};

impl Webhook {
    /// A source of the settings; `None` when its secret is not set.
    pub fn of_settings(
        source: &SourceName,
        config: &WebhookConfig,
        environment: &Environment,
    ) -> Result<Option<Self>, ProjectError> {
        let refuse =
            |reason: String| ProjectError::InvalidInput(format!("[webhooks.{source}]: {reason}"));
        let body_bytes_max =
            config.body_bytes_max.map_or(WEBHOOK_BODY_BYTES_MAX, NonZeroUsize::get);
        if body_bytes_max > WEBHOOK_BODY_BYTES_MAX {
            let most = format!("`body_bytes_max` is {WEBHOOK_BODY_BYTES_MAX} at most");
            return Err(refuse(most));
        }
        let Some(secret) = config.secret(environment) else { return Ok(None) };
        let secret = WebhookSecret::new(&secret)
            .map_err(|error| refuse(format!("{}: {error}", config.secret_env)))?;
        let reads =
            if config.include_payload { WebhookContent::Payload } else { WebhookContent::Body };
        Ok(Some(Self {
            source: source.clone(),
            agent: config.agent.clone(),
            secret,
            scheme: match config.scheme {
                WebhookScheme::Standard => Scheme::Standard,
                WebhookScheme::Github => Scheme::Github,
            },
            reads,
            wake: if config.wake { Wake::Yes } else { Wake::No },
            mode: config.mode,
            salience: config.salience,
            body_bytes_max,
            rate: config.rate_per_minute,
        }))
    }
}

impl Webhooks {
    /// The sources of the settings whose secrets are set. Warns about the others.
    pub fn of_settings(
        configured: &BTreeMap<SourceName, WebhookConfig>,
        environment: &Environment,
    ) -> Result<Self, ProjectError> {
        let mut set = Vec::new();
        for (source, config) in configured {
            match Webhook::of_settings(source, config, environment)? {
                Some(webhook) => set.push(webhook),
                None => tracing::warn!(
                    webhook.source = %source,
                    "{} is not set: no events of this source are taken", config.secret_env
                ),
            }
        }
        Self::new(set).map_err(|error| ProjectError::InvalidInput(format!("[webhooks]: {error}")))
    }
}
