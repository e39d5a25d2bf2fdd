//! Who may send events, and whether they can: a secret that is set is never shown.

use antiphon_core::AgentName;
use serde::Serialize;

use super::Status;
use crate::config::Config;
use crate::terminal;

/// A source of events.
#[derive(Serialize)]
pub(super) struct Hook {
    pub(super) source: String,
    agent: String,
    scheme: &'static str,
    pub(super) status: Status,
    detail: String,
}

/// The sources that are configured.
pub(super) fn hooks(config: &Config, agents: &[AgentName]) -> Vec<Hook> {
    let hook = |(source, hook): (&_, &crate::config::WebhookConfig)| {
        let (status, detail) = match hook.webhook(source) {
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
    config.webhooks.iter().map(hook).collect()
}

/// Them as a table; nothing when there are none.
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
