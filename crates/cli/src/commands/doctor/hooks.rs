//! Sources of signed events, and whether their secrets are set. Secrets are never shown.

use antiphon_core::AgentName;
use antiphon_project::settings::UserSettings;
use serde::Serialize;

use super::Status;
use crate::commands::serve::webhooks::webhook;
use crate::terminal;

/// A source of signed events.
#[derive(Serialize)]
pub(super) struct Hook {
    pub(super) source: String,
    agent: String,
    scheme: &'static str,
    pub(super) status: Status,
    detail: String,
}

/// The configured sources.
pub(super) fn hooks(settings: &UserSettings, agents: &[AgentName]) -> Vec<Hook> {
    let hook = |(source, hook): (&_, &antiphon_project::settings::WebhookConfig)| {
        let (status, detail) = match webhook(source, hook, &settings.environment) {
            Err(failure) => (Status::Failed, failure.to_string()),
            Ok(_) if !agents.contains(&hook.agent) => {
                (Status::Failed, format!("there is no agent `{}`", hook.agent))
            }
            Ok(None) => (Status::NotConfigured, format!("off: set {} to use it", hook.secret_env)),
            Ok(Some(_)) => (Status::Ready, format!("{} is set", hook.secret_env)),
        };
        Hook {
            source: source.to_string(),
            agent: hook.agent.to_string(),
            scheme: hook.scheme.as_str(),
            status,
            detail,
        }
    };
    settings.webhooks.iter().map(hook).collect()
}

/// The sources as a table; empty without any.
pub(super) fn table(hooks: &[Hook]) -> String {
    if hooks.is_empty() {
        return String::new();
    }
    let mut lines = vec![["", "WEBHOOK", "AGENT", "SIGNED", ""].map(str::to_owned)];
    lines.extend(hooks.iter().map(|hook| {
        let (mark, scheme) = (hook.status.mark().to_owned(), hook.scheme.to_owned());
        [mark, hook.source.clone(), hook.agent.clone(), scheme, hook.detail.clone()]
    }));
    format!("\n{}", terminal::table(&lines))
}
