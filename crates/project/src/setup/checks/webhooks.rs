//! Sources of signed events, and whether their secrets are set. Secrets are never shown.

use antiphon_core::{AgentName, SourceName};
use serde::Serialize;

use super::check::Check;
use crate::environment::Environment;
use crate::settings::{UserSettings, WebhookConfig};

/// Whether an interface can take the events of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookState {
    /// Its secret is set.
    On,
    /// Its secret is not set.
    Off,
    /// Its configuration is invalid, and why.
    Invalid(String),
}

/// The check of a source of signed events.
#[derive(Debug, Serialize)]
pub struct WebhookCheck {
    /// Name of the source.
    pub source: String,
    /// Name of the agent that receives the events.
    pub agent: String,
    /// How events are signed.
    pub scheme: &'static str,
    /// The result.
    #[serde(flatten)]
    pub check: Check,
}

pub(super) fn check(
    settings: &UserSettings,
    agents: &[AgentName],
    state: impl Fn(&SourceName, &WebhookConfig, &Environment) -> WebhookState,
) -> Vec<WebhookCheck> {
    let hook = |(source, hook): (&SourceName, &WebhookConfig)| {
        let check = match state(source, hook, &settings.environment) {
            WebhookState::Invalid(reason) => Check::failed(reason),
            WebhookState::On | WebhookState::Off if !agents.contains(&hook.agent) => {
                Check::failed(format!("there is no agent `{}`", hook.agent))
            }
            WebhookState::Off => Check::not_configured("off")
                .with_remedy(format!("set {} to use it", hook.secret_env)),
            WebhookState::On => Check::ready(format!("{} is set", hook.secret_env)),
        };
        WebhookCheck {
            source: source.to_string(),
            agent: hook.agent.to_string(),
            scheme: hook.scheme.as_str(),
            check,
        }
    };
    settings.webhooks.iter().map(hook).collect()
}
