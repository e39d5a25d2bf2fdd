//! Checks of a project and of everything that its settings name, as data: what was checked, whether it works, and what
//! to do about it. A front end shows them.
//!
//! | file        | checks                                                              |
//! |-------------|---------------------------------------------------------------------|
//! | `check`     | one check and its status                                            |
//! | `policy`    | the policy of the machine, by attempts to get around it             |
//! | `providers` | each provider, and the default model                                |
//! | `agents`    | agent files and runners                                             |
//! | `webhooks`  | sources of signed events                                            |
//! | `journal`   | the journal                                                         |
//! | `sandbox`   | the sandbox, by trying it                                           |

mod agents;
mod check;
mod journal;
mod policy;
mod providers;
mod sandbox;
mod webhooks;

pub use agents::RunnerCheck;
pub use check::{Check, CheckStatus};
pub use policy::PolicyCheck;
pub use providers::ProviderCheck;
pub use webhooks::{WebhookCheck, WebhookState};

use antiphon_core::SourceName;
use antiphon_core::port::{Clock as _, SystemClock, ToolExecutor as _};
use antiphon_mcp::ServerStatus;
use serde::Serialize;

use crate::environment::Environment;
use crate::error::ProjectError;
use crate::models::Models;
use crate::project::Project;
use crate::settings::{PriceSource, UserSettings, WebhookConfig};
use crate::toolset::{McpPool, Toolset};
use crate::trust::{TrustItem, TrustStatus};

/// Everything that was checked.
#[derive(Debug, Serialize)]
pub struct ProjectChecks {
    /// Version of this program.
    pub version: &'static str,
    /// Path of the user's configuration file.
    pub config: String,
    /// Whether that file exists. It need not.
    pub config_found: bool,
    /// The policy of this machine.
    pub policy: PolicyCheck,
    /// The default model, and after `: ` why it cannot be used.
    pub default_model: String,
    /// Number of models with a price.
    pub prices: usize,
    /// The day the built-in prices were read.
    pub prices_date: String,
    /// Whether they are so old that they may have changed.
    pub prices_old: bool,
    /// The journal; absent when the project has none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<Check>,
    /// The sandbox.
    pub sandbox: Check,
    /// The permission rules.
    pub permissions: Check,
    /// What the project brings, and how much of it has an effect.
    pub trust: Check,
    /// The agent files.
    pub agents: Check,
    /// Runners beside the local one.
    pub runners: Vec<RunnerCheck>,
    /// Paths of files with rules for agents.
    pub rules: Vec<String>,
    /// The providers of models.
    pub providers: Vec<ProviderCheck>,
    /// The MCP servers; one without tools does not work.
    pub mcp: Vec<ServerStatus>,
    /// The sources of signed events.
    pub webhooks: Vec<WebhookCheck>,
}

impl ProjectChecks {
    /// Checks everything. Providers are asked for their models, MCP servers are started and stopped again.
    /// `check_webhook` says whether the HTTP interface can take events of a source.
    pub async fn run(
        environment: &Environment,
        check_webhook: impl Fn(&SourceName, &WebhookConfig, &Environment) -> WebhookState,
    ) -> Result<Self, ProjectError> {
        let project = Project::find(environment)?;
        let models = Models::new(project.settings(environment)?);
        let settings = models.settings();
        let (agents, runners, names) = agents::check(&project, settings).await?;
        let rules = project.rules(settings);
        let prices = PriceSource::built_in()?;
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            config: settings.path.display().to_string(),
            config_found: settings.found,
            policy: policy::check(&project, settings),
            default_model: providers::default_model(&models),
            prices: settings.prices.iter().count(),
            prices_date: prices.date.to_string(),
            prices_old: prices.is_old(SystemClock.now().date_naive()),
            journal: journal::check(&project).await,
            sandbox: sandbox::check(&project, environment),
            permissions: permissions(&project, settings),
            trust: trust(&project),
            agents,
            runners,
            rules: rules.files.iter().map(|(path, _)| path.display().to_string()).collect(),
            providers: providers::check(&models).await?,
            mcp: servers(&project, settings).await,
            webhooks: webhooks::check(settings, &names, check_webhook),
        })
    }

    /// Names of configured parts that do not work.
    pub fn failed(&self) -> Vec<&str> {
        let providers = self.providers.iter().map(|row| (row.check.status, row.name.as_str()));
        let journal = self.journal.iter().map(|found| (found.status, "the journal"));
        let rest = [
            (self.policy.check.status, "the policy"),
            (self.sandbox.status, "the sandbox"),
            (self.permissions.status, "the permissions"),
            (self.agents.status, "the agents"),
        ];
        let webhooks = self.webhooks.iter().map(|hook| (hook.check.status, hook.source.as_str()));
        let all = providers.chain(journal).chain(rest);
        let failed = |(status, name)| (status == CheckStatus::Failed).then_some(name);
        let servers = self.mcp.iter().filter(|server| server.tools == 0);
        let mut names: Vec<&str> = all.filter_map(failed).collect();
        names.extend(servers.map(|server| server.name.as_str()));
        names.extend(webhooks.filter_map(failed));
        if self.default_model.contains(": ") {
            names.push("the default model");
        }
        names
    }
}

fn permissions(project: &Project, settings: &UserSettings) -> Check {
    let rules = &settings.permissions;
    let count = rules.allow.len() + rules.ask.len() + rules.deny.len();
    match Toolset::gate_only(project, settings) {
        Ok(_) => Check::ready(format!("mode {}, {}", rules.mode, check::count(count, "rule"))),
        Err(error) => Check::failed(error.to_string()),
    }
}

/// What the project brings, and how much of it has an effect.
fn trust(project: &Project) -> Check {
    let items = match project.trust().items() {
        Ok(items) => items,
        Err(error) => return Check::failed(error.to_string()),
    };
    let is_trusted = |item: &&TrustItem| item.status == TrustStatus::Trusted;
    let (trusted, rest): (Vec<_>, Vec<_>) = items.iter().partition(is_trusted);
    let trusted = trusted.len();
    let rest: Vec<&str> = rest.iter().map(|item| item.path.as_str()).collect();
    if rest.is_empty() {
        return Check::ready(format!("{trusted} trusted"));
    }
    let detail = format!("{trusted} trusted; without effect: {}", rest.join(", "));
    Check::not_configured(detail).with_remedy("review them with `antiphon trust`")
}

/// Starts every configured MCP server, and stops it again.
/// An MCP server that is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerTools {
    /// Its name.
    pub name: String,
    /// Names of its tools, as agents call them. Without any, it does not work.
    pub tools: Vec<String>,
    /// The last error, if there was one.
    pub error: Option<String>,
}

/// The MCP servers of the settings. They are started, asked for their tools, and stopped again.
pub async fn mcp_server_tools(project: &Project, settings: &UserSettings) -> Vec<McpServerTools> {
    let pool = McpPool::new(project);
    let connected = pool.connect(settings).await;
    let found = connected.as_deref().map(|servers| {
        let tools = servers.tools();
        let of = |status: ServerStatus| {
            let prefix = format!("mcp__{}__", status.name);
            let names = tools.iter().map(|tool| tool.name.clone());
            McpServerTools {
                name: status.name.to_string(),
                tools: names.filter(|name| name.starts_with(&prefix)).collect(),
                error: status.last_error,
            }
        };
        servers.status().into_iter().map(of).collect()
    });
    drop(connected);
    pool.close().await;
    found.unwrap_or_default()
}

async fn servers(project: &Project, settings: &UserSettings) -> Vec<ServerStatus> {
    let pool = McpPool::new(project);
    let status = pool.connect(settings).await.map(|servers| servers.status());
    pool.close().await;
    status.unwrap_or_default()
}
