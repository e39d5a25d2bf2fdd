//! The permissions of the next tasks, for a person: their mode, and the rules that apply to them.

use std::path::Path;

use antiphon_permissions::{PermissionMode, Remembered, RuleEntry};
use uuid::Uuid;

use crate::error::ProjectError;
use crate::settings::UserSettings;
use crate::task::task_process::TaskProcess;
use crate::toolset::permissions;

/// Every mode, from the strictest.
const MODES: [PermissionMode; 3] =
    [PermissionMode::ReadOnly, PermissionMode::Workspace, PermissionMode::Full];

/// The mode of tasks that a process starts.
pub fn mode_of(settings: &UserSettings, process: &TaskProcess) -> PermissionMode {
    process.mode.unwrap_or(settings.permissions.mode)
}

/// A process like this one, with the mode of this name, which the policy may refuse.
pub fn with_mode(
    settings: &UserSettings,
    process: &TaskProcess,
    name: &str,
) -> Result<TaskProcess, ProjectError> {
    let mode = MODES.into_iter().find(|mode| mode.to_string() == name).ok_or_else(|| {
        ProjectError::InvalidInput(format!(
            "there is no mode `{name}`: choose read-only, workspace or full"
        ))
    })?;
    let process = TaskProcess { id: Some(Uuid::new_v4()), mode: Some(mode), ..process.clone() };
    permissions(settings, &process.overrides())?;
    Ok(process)
}

/// The mode and every rule for tasks that a process starts in the project at `root`, one line each.
pub fn permission_lines(
    settings: &UserSettings,
    root: &Path,
    process: &TaskProcess,
) -> Result<Vec<String>, ProjectError> {
    let origin = if process.mode.is_some() { "chosen here" } else { "settings" };
    let network = if process.network || settings.sandbox.network {
        "commands may use the whole network"
    } else {
        "commands reach hosts that a rule or an approval allows"
    };
    let mut lines = vec![
        format!("mode     {} ({origin})", mode_of(settings, process)),
        format!("network  {network}"),
    ];
    let remembered = Remembered::open(settings.remembered_path(), root)
        .map_err(|error| ProjectError::InvalidInput(error.to_string()))?;
    let configured = &settings.permissions;
    let rules = |word: &'static str, entries: &[RuleEntry]| -> Vec<String> {
        entries.iter().map(|entry| format!("{word:<8} {}", entry.rule)).collect()
    };
    lines.extend(rules("deny", &configured.deny));
    lines.extend(rules("ask", &configured.ask));
    lines.extend(rules("allow", &configured.allow));
    lines.extend(process.allow.iter().map(|rule| format!("allow    {rule} (--allow)")));
    lines.extend(remembered.rules().iter().map(|rule| format!("allow    {rule} (always)")));
    lines.extend(settings.policy.limits().iter().map(|limit| format!("policy   {limit}")));
    Ok(lines)
}
