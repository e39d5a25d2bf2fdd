//! Agent files and runners.

use antiphon_agent_files::ProblemKind;
use antiphon_core::AgentName;
use antiphon_core::port::Agents as _;
use serde::Serialize;

use super::check::{Check, count};
use crate::error::ProjectError;
use crate::project::Project;
use crate::project_agents::ProjectAgents;
use crate::settings::UserSettings;
use crate::toolset::{PermissionOverrides, Toolset};

/// The check of a runner.
#[derive(Debug, Serialize)]
pub struct RunnerCheck {
    /// Kind of the runner.
    pub kind: String,
    /// The result.
    #[serde(flatten)]
    pub check: Check,
}

/// Reads every agent file, and tries the runners. The names are those of the agents.
pub(super) async fn check(
    project: &Project,
    settings: &UserSettings,
) -> Result<(Check, Vec<RunnerCheck>, Vec<AgentName>), ProjectError> {
    let toolset = Toolset::none();
    let overrides = PermissionOverrides::default();
    let found = ProjectAgents::with_project_rules(project, settings, &overrides, &toolset)?;
    let problems = found.agents.problems();
    let invalid = problems.iter().filter(|problem| problem.kind == ProblemKind::Invalid);
    let invalid: Vec<String> = invalid.map(ToString::to_string).collect();
    let names: Vec<AgentName> = found.agents.list().iter().map(|it| it.name.clone()).collect();
    let number = count(names.len(), "agent");
    let agents = if invalid.is_empty() {
        Check::ready(number)
    } else {
        Check::failed(format!("{number}; {}", invalid.join("; ")))
    };
    let peers: Vec<&str> = settings.peers.keys().map(String::as_str).collect();
    let remote: Vec<&str> = settings.a2a.remote.keys().map(AgentName::as_str).collect();
    let runners = found.runners.iter().map(|runner| {
        let (configured, section) = match runner.kind() {
            "a2a" => (&remote, "[a2a.remote.NAME]"),
            _ => (&peers, "[peers.NAME]"),
        };
        let check = match (runner.is_orchestrator(), configured.as_slice()) {
            (true, []) => Check::not_configured(format!("no {section} is configured")),
            (true, peers) => Check::ready(format!("peers: {}", peers.join(", "))),
            (false, _) => match runner.check(&serde_json::json!({})) {
                Ok(()) => Check::ready("tried out"),
                Err(reason) => Check::failed(reason),
            },
        };
        RunnerCheck { kind: runner.kind().to_owned(), check }
    });
    let runners = runners.collect();
    found.shutdown().await;
    Ok((agents, runners, names))
}
