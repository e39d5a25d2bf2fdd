//! Who may send events, as the user says. A secret is read from the environment, and never printed; without
//! one, a source is not there.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use antiphon_core::{AgentName, HandlingMode, Salience, SourceName};
use antiphon_http::{Reads, Scheme, WEBHOOK_BODY_BYTES_MAX, Webhook, WebhookSecret, Webhooks};
use antiphon_keys::RateLimit;
use antiphon_runtime::Wake;
use secrecy::SecretString;
use serde::Deserialize;

use super::variable;
use crate::failure::Failure;

/// A source of events.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookConfig {
    /// Who reads them.
    pub(crate) agent: AgentName,
    /// The variable that holds the secret.
    pub(crate) secret_env: String,
    #[serde(default)]
    pub(crate) scheme: SchemeName,
    #[serde(default = "yes")]
    wake: bool,
    #[serde(default)]
    mode: HandlingMode,
    salience: Option<Salience>,
    #[serde(default)]
    include_payload: bool,
    body_bytes_max: Option<NonZeroUsize>,
    rate_per_minute: Option<RateLimit>,
}

/// How it signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SchemeName {
    #[default]
    Standard,
    Github,
}

impl SchemeName {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Github => "github",
        }
    }
}

impl WebhookConfig {
    /// Its secret, if it is set.
    pub(crate) fn secret(&self) -> Option<SecretString> {
        variable(&self.secret_env).map(SecretString::from)
    }

    /// The source, if its secret is set and good.
    pub(crate) fn webhook(&self, source: &SourceName) -> Result<Option<Webhook>, Failure> {
        let refuse = |reason: String| Failure::usage(format!("[webhooks.{source}]: {reason}"));
        let body_bytes_max = self.body_bytes_max.map_or(WEBHOOK_BODY_BYTES_MAX, NonZeroUsize::get);
        if body_bytes_max > WEBHOOK_BODY_BYTES_MAX {
            let most = format!("`body_bytes_max` is {WEBHOOK_BODY_BYTES_MAX} at most");
            return Err(refuse(most));
        }
        let Some(secret) = self.secret() else { return Ok(None) };
        let secret = WebhookSecret::new(&secret)
            .map_err(|error| refuse(format!("{}: {error}", self.secret_env)))?;
        Ok(Some(Webhook {
            source: source.clone(),
            agent: self.agent.clone(),
            secret,
            scheme: match self.scheme {
                SchemeName::Standard => Scheme::Standard,
                SchemeName::Github => Scheme::Github,
            },
            reads: if self.include_payload { Reads::Payload } else { Reads::Body },
            wake: if self.wake { Wake::Yes } else { Wake::No },
            mode: self.mode,
            salience: self.salience,
            body_bytes_max,
            rate: self.rate_per_minute,
        }))
    }
}

/// The sources whose secrets are set.
pub(crate) fn webhooks(
    configured: &BTreeMap<SourceName, WebhookConfig>,
) -> Result<Webhooks, Failure> {
    let mut set = Vec::new();
    for (source, config) in configured {
        match config.webhook(source)? {
            Some(webhook) => set.push(webhook),
            None => tracing::warn!(
                webhook.source = %source,
                "{} is not set: no events of this source are taken", config.secret_env
            ),
        }
    }
    Webhooks::new(set).map_err(|error| Failure::usage(format!("[webhooks]: {error}")))
}

fn yes() -> bool {
    true
}
