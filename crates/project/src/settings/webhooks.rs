//! Sources of signed events. A secret comes from the environment and is never printed; a source whose
//! secret is not set is off.

use std::num::NonZeroUsize;

use antiphon_core::{AgentName, HandlingMode, Salience};
use antiphon_keys::RateLimit;
use secrecy::SecretString;
use serde::Deserialize;

use crate::environment::Environment;

/// A source of signed events.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    /// The agent that reads its events.
    pub agent: AgentName,
    /// The environment variable that holds its secret.
    pub secret_env: String,
    /// How its requests are signed.
    #[serde(default)]
    pub scheme: WebhookScheme,
    /// Whether an event starts a turn of an idle agent.
    #[serde(default = "yes")]
    pub wake: bool,
    /// How an event is delivered to an agent that works.
    #[serde(default)]
    pub mode: HandlingMode,
    /// How the event is presented to the agent; the usual salience when absent.
    pub salience: Option<Salience>,
    /// The agent reads the payload in place of the rendered body.
    #[serde(default)]
    pub include_payload: bool,
    /// Largest body in bytes; the server's own limit when absent.
    pub body_bytes_max: Option<NonZeroUsize>,
    /// Requests per minute; unlimited when absent.
    pub rate_per_minute: Option<RateLimit>,
}

/// How a source signs its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookScheme {
    /// Standard Webhooks.
    #[default]
    Standard,
    /// GitHub's `X-Hub-Signature-256`.
    Github,
}

impl WebhookScheme {
    /// The name used in the configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Github => "github",
        }
    }
}

impl WebhookConfig {
    /// Its secret; `None` when the variable is not set.
    pub fn secret(&self, environment: &Environment) -> Option<SecretString> {
        environment.text(&self.secret_env).map(SecretString::from)
    }
}

fn yes() -> bool {
    true
}
