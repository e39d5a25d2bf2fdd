//! `antiphon doctor`: checks the configuration and everything it names, and says what to fix.

mod hooks;
mod policy;

use std::num::NonZeroUsize;

use antiphon_agent_files::ProblemKind;
use antiphon_core::AgentName;
use antiphon_core::port::{Agents as _, JournalError, TaskIndex, TaskQuery, TaskSelector};
use antiphon_project::environment::Environment;
use antiphon_project::models::Models as Registry;
use antiphon_project::models::Route;
use antiphon_project::models::list_models;
use antiphon_project::project::Project;
use antiphon_project::project_agents::ProjectAgents;
use antiphon_project::settings::{Key, ProviderConfig, UserSettings};
use antiphon_project::toolset::{self, McpPool, PermissionOverrides, Toolset};
use antiphon_project::trust::{TrustItem, TrustStatus};
use antiphon_view::display::escaped;
use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::terminal;
use hooks::{Hook, hooks, table};
use policy::{PolicyReport, policy};

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

#[derive(Serialize)]
struct Report {
    version: &'static str,
    config: String,
    config_found: bool,
    policy: PolicyReport,
    default_model: String,
    prices: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    journal: Option<Finding>,
    sandbox: Finding,
    permissions: Finding,
    trust: Finding,
    agents: Finding,
    /// Runners beside the local one.
    runners: Vec<RunnerRow>,
    /// Files with rules for agents.
    rules: Vec<String>,
    providers: Vec<Row>,
    mcp: Vec<antiphon_mcp::ServerStatus>,
    webhooks: Vec<Hook>,
}

/// The result of one check.
#[derive(Serialize)]
struct Finding {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    status: Status,
    detail: String,
}

impl Finding {
    fn new(status: Status, detail: impl Into<String>) -> Self {
        Self { path: None, status, detail: detail.into() }
    }
}

/// A runner in the report.
#[derive(Serialize)]
struct RunnerRow {
    kind: String,
    status: Status,
    detail: String,
}

#[derive(Serialize)]
struct Row {
    name: String,
    kind: &'static str,
    address: String,
    status: Status,
    detail: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    /// It works.
    Ready,
    /// It is not configured: a key is missing, for example.
    NotConfigured,
    /// It is configured, and does not work.
    Failed,
}

impl Status {
    fn mark(self) -> &'static str {
        match self {
            Self::Ready => "✓",
            Self::NotConfigured => "–",
            Self::Failed => "✗",
        }
    }
}

impl Doctor {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let project = Project::find(environment)?;
        let registry = Registry::new(project.settings(environment)?);
        let settings = registry.settings();
        let mut providers = vec![Row {
            name: "scripted".to_owned(),
            kind: "scripted",
            address: "built in".to_owned(),
            status: Status::Ready,
            detail: format!("offline; scripts: {}", antiphon_scripted::Script::BUILTIN.join(", ")),
        }];
        for (name, provider) in &settings.providers {
            providers.push(check(name, provider, &registry).await?);
        }
        let rules = project.rules(settings);
        let (agents, runners, names) = project_agents(&project, settings).await?;
        let report = Report {
            version: env!("CARGO_PKG_VERSION"),
            config: settings.path.display().to_string(),
            config_found: settings.found,
            policy: policy(&project, settings),
            default_model: default_model(&registry),
            prices: settings.prices.iter().count(),
            journal: journal(&project).await,
            sandbox: sandbox(&project, environment),
            permissions: permissions(&project, settings),
            trust: trust(&project),
            agents,
            runners,
            rules: rules.files.iter().map(|(path, _)| path.display().to_string()).collect(),
            providers,
            mcp: mcp_status(&project, settings).await,
            webhooks: hooks(settings, &names),
        };
        terminal::print(&if self.json { terminal::json(&report)? } else { readable(&report) });
        match report.failed().as_slice() {
            [] => Ok(()),
            names => Err(Failure::unavailable(format!("not ready: {}", names.join(", ")))),
        }
    }
}

impl Report {
    /// Names of configured parts that do not work.
    fn failed(&self) -> Vec<&str> {
        let providers = self.providers.iter().map(|row| (row.status, row.name.as_str()));
        let journal = self.journal.iter().map(|found| (found.status, "the journal"));
        let rest = [
            (self.policy.status, "the policy"),
            (self.sandbox.status, "the sandbox"),
            (self.permissions.status, "the permissions"),
            (self.agents.status, "the agents"),
        ];
        let all = providers.chain(journal).chain(rest);
        let mut failed: Vec<&str> =
            all.filter(|(status, _)| *status == Status::Failed).map(|(_, name)| name).collect();
        let servers = self.mcp.iter().filter(|server| server.tools == 0);
        failed.extend(servers.map(|server| server.name.as_str()));
        let hooks = self.webhooks.iter().filter(|hook| hook.status == Status::Failed);
        failed.extend(hooks.map(|hook| hook.source.as_str()));
        if self.default_model.contains(": ") {
            failed.push("the default model");
        }
        failed
    }
}

/// The default model, and the reason when it cannot be reached.
fn default_model(registry: &Registry) -> String {
    let model = registry.settings().default_model();
    match registry.provider(&model, &Route::default()) {
        Ok(_) => model.to_string(),
        Err(failure) => format!("{model}: {failure}"),
    }
}

/// Tries the sandbox.
fn sandbox(project: &Project, environment: &Environment) -> Finding {
    // Not below /tmp: the sandbox mounts its own.
    let home = environment.path("HOME");
    let candidates = [Some(project.state().to_owned()), home, Some(project.root().to_owned())];
    let fits = |path: &std::path::PathBuf| path.is_dir() && !path.starts_with("/tmp");
    let Some(scratch) = candidates.into_iter().flatten().find(fits) else {
        let detail = "not tried: there is no folder outside of /tmp to try it in";
        return Finding::new(Status::NotConfigured, detail);
    };
    match antiphon_sandbox::probe(&toolset::worker(), &scratch) {
        Ok(report) if report.holds() => {
            let tried: Vec<String> = report.trials.into_iter().map(|trial| trial.what).collect();
            Finding::new(Status::Ready, format!("holds; tried: {}", tried.join(", ")))
        }
        Ok(report) => {
            let broken = report.trials.into_iter().filter(|trial| !trial.passed);
            let broken: Vec<String> =
                broken.map(|trial| format!("{} ({})", trial.what, trial.detail)).collect();
            Finding::new(Status::Failed, format!("does not hold: {}", broken.join("; ")))
        }
        Err(error) => Finding::new(Status::Failed, format!("{error}; `bash` is refused here")),
    }
}

fn permissions(project: &Project, settings: &UserSettings) -> Finding {
    let rules = &settings.permissions;
    let count = rules.allow.len() + rules.ask.len() + rules.deny.len();
    let summary = format!("mode {}, {}", rules.mode, terminal::count(count as u64, "rule"));
    match Toolset::gate_only(project, settings) {
        Ok(_) => Finding::new(Status::Ready, summary),
        Err(failure) => Finding::new(Status::Failed, failure.to_string()),
    }
}

/// What the project brings, and how much of it has an effect.
fn trust(project: &Project) -> Finding {
    let items = match project.trust().items() {
        Ok(items) => items,
        Err(error) => return Finding::new(Status::Failed, error.to_string()),
    };
    let is_trusted = |item: &&TrustItem| item.status == TrustStatus::Trusted;
    let (trusted, rest): (Vec<_>, Vec<_>) = items.iter().partition(is_trusted);
    let trusted = trusted.len();
    let rest: Vec<&str> = rest.iter().map(|item| item.path.as_str()).collect();
    if rest.is_empty() {
        return Finding::new(Status::Ready, format!("{trusted} trusted"));
    }
    let rest = escaped(&rest.join(", ")).into_owned();
    let detail = format!("{trusted} trusted; without effect: {rest} (`antiphon trust`)");
    Finding::new(Status::NotConfigured, detail)
}

/// Reads every agent file, and tries the runners.
async fn project_agents(
    project: &Project,
    settings: &UserSettings,
) -> Result<(Finding, Vec<RunnerRow>, Vec<AgentName>), Failure> {
    let toolset = Toolset::none();
    let overrides = PermissionOverrides::default();
    let project_agents =
        ProjectAgents::with_project_rules(project, settings, &overrides, &toolset)?;
    let problems: Vec<String> = project_agents
        .agents
        .problems()
        .iter()
        .filter(|problem| problem.kind == ProblemKind::Invalid)
        .map(|problem| escaped(&problem.to_string()).into_owned())
        .collect();
    let names: Vec<AgentName> =
        project_agents.agents.list().iter().map(|agent| agent.name.clone()).collect();
    let count = terminal::count(names.len() as u64, "agent");
    let agents = if problems.is_empty() {
        Finding::new(Status::Ready, count)
    } else {
        Finding::new(Status::Failed, format!("{count}; {}", problems.join("; ")))
    };
    let peers: Vec<&str> = settings.peers.keys().map(String::as_str).collect();
    let runners = project_agents.runners.iter().map(|runner| {
        let (status, detail) = match (runner.is_orchestrator(), peers.as_slice()) {
            (true, []) => (Status::NotConfigured, "no [peers.NAME] is configured".to_owned()),
            (true, peers) => (Status::Ready, format!("peers: {}", peers.join(", "))),
            (false, _) => match runner.check(&serde_json::json!({})) {
                Ok(()) => (Status::Ready, "tried out".to_owned()),
                Err(reason) => (Status::Failed, reason),
            },
        };
        RunnerRow { kind: runner.kind().to_owned(), status, detail }
    });
    let runners = runners.collect();
    project_agents.shutdown().await;
    Ok((agents, runners, names))
}

/// Starts every configured MCP server, and stops it again.
async fn mcp_status(project: &Project, settings: &UserSettings) -> Vec<antiphon_mcp::ServerStatus> {
    let pool = McpPool::new(project);
    let status = pool.connect(settings).await.map(|servers| servers.status());
    pool.close().await;
    status.unwrap_or_default()
}

async fn check(name: &str, provider: &ProviderConfig, registry: &Registry) -> Result<Row, Failure> {
    let refused = registry.settings().policy.check_provider(name, registry.settings());
    let (status, detail) = match &provider.key {
        _ if refused.is_err() => {
            let reason = refused.err().map(|error| error.to_string()).unwrap_or_default();
            (Status::NotConfigured, reason)
        }
        Key::Missing { variable } => (Status::NotConfigured, format!("set {variable} to use it")),
        Key::Set { .. } | Key::NotNeeded => {
            match list_models(provider, registry.transport()?).await {
                Ok(models) => (Status::Ready, format!("answers; models: {}", models.len())),
                Err(error) => (Status::Failed, error.to_string()),
            }
        }
    };
    Ok(Row {
        name: name.to_owned(),
        kind: provider.kind.as_str(),
        address: without_password(&provider.base_url),
        status,
        detail,
    })
}

/// The address without user name and password.
fn without_password(address: &str) -> String {
    match (address.split_once("://"), address.rfind('@')) {
        (Some((scheme, _)), Some(at)) => format!("{scheme}://***{}", &address[at..]),
        (Some(_) | None, _) => address.to_owned(),
    }
}

/// Opens the journal of this project, if it has one, and verifies it.
async fn journal(project: &Project) -> Option<Finding> {
    if !project.has_journal() {
        return None;
    }
    let unfinished = TaskQuery { which: TaskSelector::Unfinished, limit: NonZeroUsize::MAX };
    let look = async {
        let Some(journal) = project.try_journal()? else {
            return Ok("another process works on it".to_owned());
        };
        let fault = |error: JournalError| Failure::unavailable(error.to_string());
        journal.verify().await.map_err(fault)?;
        let tasks = journal.tasks(unfinished).await.map_err(fault)?;
        Ok::<_, Failure>(format!("sound, {} unfinished tasks", tasks.len()))
    };
    let (status, detail) = match look.await {
        Ok(detail) => (Status::Ready, detail),
        Err(failure) => (Status::Failed, failure.to_string()),
    };
    let path = Some(project.journal_path().display().to_string());
    Some(Finding { path, status, detail })
}

fn readable(report: &Report) -> String {
    let found = if report.config_found { "" } else { " (not there, which is fine)" };
    let journal = report.journal.as_ref().map_or_else(
        || "none here yet".to_owned(),
        |journal| format!("{} ({})", journal.path.as_deref().unwrap_or("here"), journal.detail),
    );
    let rules = match report.rules.as_slice() {
        [] => "none: no AGENTS.md or CLAUDE.md here".to_owned(),
        files => files.iter().map(|file| escaped(file)).collect::<Vec<_>>().join(", "),
    };
    let runner = |runs: &RunnerRow| format!("{} ({})", runs.kind, runs.detail);
    let runners: Vec<String> =
        std::iter::once("local".to_owned()).chain(report.runners.iter().map(runner)).collect();
    let runners = runners.join(", ");
    let mut lines = vec![["", "PROVIDER", "WIRE", "ADDRESS", ""].map(str::to_owned)];
    lines.extend(report.providers.iter().map(|row| {
        [
            row.status.mark().to_owned(),
            row.name.clone(),
            row.kind.to_owned(),
            row.address.clone(),
            row.detail.clone(),
        ]
    }));
    let mut text = format!(
        "antiphon {}\nconfiguration  {}{found}\npolicy         {}\njournal        {journal}\nsandbox        {}\n\
         permissions    {}\ntrust          {}\nagents         {}\nrunners        {runners}\nrules          {rules}\ndefault model  {}\nprices         {} models\n\n{}",
        report.version,
        report.config,
        report.policy.lines(),
        report.sandbox.detail,
        report.permissions.detail,
        report.trust.detail,
        report.agents.detail,
        report.default_model,
        report.prices,
        terminal::table(&lines)
    );
    if !report.mcp.is_empty() {
        let mut lines = vec![["MCP SERVER", "TOOLS", ""].map(str::to_owned)];
        lines.extend(report.mcp.iter().map(|server| {
            let error = server.last_error.clone().unwrap_or_default();
            [server.name.to_string(), server.tools.to_string(), error]
        }));
        text.push('\n');
        text.push_str(&terminal::table(&lines));
    }
    text.push_str(&table(&report.webhooks));
    text
}
