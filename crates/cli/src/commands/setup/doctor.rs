//! `antiphon doctor`: shows the checks of the project, and what to fix.

use antiphon_core::SourceName;
use antiphon_http::Webhook;
use antiphon_project::checks::{
    CheckStatus, PolicyCheck, ProjectChecks, RunnerCheck, WebhookState,
};
use antiphon_project::environment::Environment;
use antiphon_project::settings::WebhookConfig;
use antiphon_view::display::escaped;
use clap::Args;

use crate::failure::Failure;
use crate::terminal;

/// Check the configuration, its providers and servers, the journal of this project, the sandbox, and the
/// policy of this machine.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 0 when everything configured works, 4 when something does not.

Examples:
  antiphon doctor
  antiphon doctor --json | jq '.providers[] | select(.status == \"failed\")'")]
pub(crate) struct Doctor {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let checks = ProjectChecks::run(environment, webhook_state);
        let checks = checks.await?;
        terminal::print(&if self.json { terminal::json(&checks)? } else { readable(&checks) });
        match checks.failed().as_slice() {
            [] => Ok(()),
            names => Err(Failure::unavailable(format!("not ready: {}", names.join(", ")))),
        }
    }
}

fn webhook_state(
    source: &SourceName,
    config: &WebhookConfig,
    environment: &Environment,
) -> WebhookState {
    match Webhook::of_settings(source, config, environment) {
        Ok(Some(_)) => WebhookState::On,
        Ok(None) => WebhookState::Off,
        Err(error) => WebhookState::Invalid(error.to_string()),
    }
}

fn mark(status: CheckStatus) -> &'static str {
    match status {
        CheckStatus::Ready => "✓",
        CheckStatus::NotConfigured => "–",
        CheckStatus::Failed => "✗",
    }
}

fn readable(checks: &ProjectChecks) -> String {
    let found = if checks.config_found { "" } else { " (not there, which is fine)" };
    let journal = checks.journal.as_ref().map_or_else(
        || "none here yet".to_owned(),
        |journal| format!("{} ({journal})", journal.path.as_deref().unwrap_or("here")),
    );
    let rules = match checks.rules.as_slice() {
        [] => "none: no AGENTS.md or CLAUDE.md here".to_owned(),
        files => files.iter().map(|file| escaped(file)).collect::<Vec<_>>().join(", "),
    };
    let runner = |runner: &RunnerCheck| format!("{} ({})", runner.kind, runner.check);
    let runners: Vec<String> =
        std::iter::once("local".to_owned()).chain(checks.runners.iter().map(runner)).collect();
    let head = [
        ("configuration", format!("{}{found}", checks.config)),
        ("policy", policy(&checks.policy)),
        ("journal", journal),
        ("sandbox", checks.sandbox.to_string()),
        ("permissions", checks.permissions.to_string()),
        ("trust", escaped(&checks.trust.to_string()).into_owned()),
        ("agents", escaped(&checks.agents.to_string()).into_owned()),
        ("runners", runners.join(", ")),
        ("rules", rules),
        ("default model", checks.default_model.clone()),
        ("prices", prices(checks)),
    ];
    let head: Vec<String> = head.iter().map(|(name, text)| format!("{name:<15}{text}\n")).collect();
    let head = head.concat();
    let tables = [Some(providers(checks)), servers(checks), webhooks(checks)];
    let tables: Vec<String> = tables.into_iter().flatten().collect();
    format!("antiphon {}\n{head}\n{}", checks.version, tables.join("\n"))
}

fn prices(checks: &ProjectChecks) -> String {
    let old = if checks.prices_old {
        ": older than 180 days; update Antiphon, or run scripts/update-prices and build it again"
    } else {
        ""
    };
    format!("{} models, of {}{old}", checks.prices, checks.prices_date)
}

/// The policy, with a line for each of its limits.
fn policy(policy: &PolicyCheck) -> String {
    if !policy.is_found() {
        return policy.check.to_string();
    }
    let limits = policy.limits.iter().map(|limit| format!("limits {limit}"));
    let narrowed = policy.narrowed.iter().map(|note| format!("so {note}"));
    let lines = limits.chain(narrowed).map(|line| format!("\n               {}", escaped(&line)));
    let path = policy.check.path.as_deref().unwrap_or_default();
    format!("{path} {}{}", policy.check, lines.collect::<String>())
}

fn providers(checks: &ProjectChecks) -> String {
    let mut lines = vec![["", "PROVIDER", "WIRE", "ADDRESS", ""].map(str::to_owned)];
    lines.extend(checks.providers.iter().map(|row| {
        [
            mark(row.check.status).to_owned(),
            row.name.clone(),
            row.kind.to_owned(),
            row.address.clone(),
            row.check.to_string(),
        ]
    }));
    terminal::table(&lines)
}

/// The MCP servers; `None` without any.
fn servers(checks: &ProjectChecks) -> Option<String> {
    let mut lines = vec![["MCP SERVER", "TOOLS", ""].map(str::to_owned)];
    lines.extend(checks.mcp.iter().map(|server| {
        let error = server.last_error.clone().unwrap_or_default();
        [server.name.to_string(), server.tools.to_string(), error]
    }));
    (!checks.mcp.is_empty()).then(|| terminal::table(&lines))
}

/// The sources of signed events; `None` without any.
fn webhooks(checks: &ProjectChecks) -> Option<String> {
    let mut lines = vec![["", "WEBHOOK", "AGENT", "SIGNED", ""].map(str::to_owned)];
    lines.extend(checks.webhooks.iter().map(|hook| {
        [
            mark(hook.check.status).to_owned(),
            hook.source.clone(),
            hook.agent.clone(),
            hook.scheme.to_owned(),
            hook.check.to_string(),
        ]
    }));
    (!checks.webhooks.is_empty()).then(|| terminal::table(&lines))
}
