//! What a command gets beyond the sandbox of its task.

use std::path::Path;

use antiphon_sandbox::{Mode, Policy};

use crate::arguments::Bash;
use crate::settings::Settings;

/// Whether a command can run without the sandbox, if its call asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutSandbox {
    /// It can: every such call has passed a gate that asks a person.
    AskedFor,
    /// It cannot: the whole task runs in a sandbox.
    Impossible,
}

/// What a command gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// The sandbox of its task.
    Sandbox,
    /// A sandbox of its own in which git may change the repository.
    Repository,
    /// No sandbox.
    Everything,
}

impl Access {
    pub(crate) fn of(settings: &Settings, arguments: &Bash, workdir: &Path) -> Self {
        match settings.policy.mode {
            Mode::ReadOnly | Mode::Workspace if arguments.is_without_sandbox() => Self::Everything,
            Mode::Workspace
                if is_in_repository(&settings.policy, workdir)
                    && (settings.changes_repository)(&arguments.command) =>
            {
                Self::Repository
            }
            Mode::ReadOnly | Mode::Workspace | Mode::Full => Self::Sandbox,
        }
    }

    /// The policy of a command in `workdir`.
    pub(crate) fn policy(self, policy: &Policy, workdir: &Path) -> Policy {
        match self {
            Self::Sandbox => policy.clone(),
            Self::Repository => Policy { repository: Some(workdir.to_owned()), ..policy.clone() },
            Self::Everything => Policy { mode: Mode::Full, ..policy.clone() },
        }
    }

    /// Further variables of the command.
    pub(crate) fn variables(self) -> Vec<(String, String)> {
        match self {
            Self::Sandbox | Self::Everything => Vec::new(),
            Self::Repository => git_settings(),
        }
    }
}

/// Settings for git while it may write to the repository. Hooks and other programs of the workspace
/// would be able to write there too. The settings of the repository itself are read-only.
fn git_settings() -> Vec<(String, String)> {
    const SETTINGS: [(&str, &str); 5] = [
        ("core.hooksPath", "/dev/null"),
        ("core.fsmonitor", "false"),
        ("gc.auto", "0"),
        ("maintenance.auto", "false"),
        ("branch.autoSetupMerge", "false"),
    ];
    let count = ("GIT_CONFIG_COUNT".to_owned(), SETTINGS.len().to_string());
    let settings = SETTINGS.iter().enumerate().flat_map(|(at, (key, value))| {
        let pair = |name: &str, text: &str| (format!("GIT_CONFIG_{name}_{at}"), text.to_owned());
        [pair("KEY", key), pair("VALUE", value)]
    });
    std::iter::once(count).chain(settings).collect()
}

fn is_in_repository(policy: &Policy, workdir: &Path) -> bool {
    let within = |folder: &&Path| policy.roots.iter().any(|root| folder.starts_with(root));
    let mut folders = workdir.ancestors().take_while(within);
    folders.any(|folder| {
        let git = folder.join(".git");
        // An empty folder may stand in for one that is missing.
        git.is_file() || git.join("HEAD").symlink_metadata().is_ok()
    })
}
