//! Access of a command beyond the sandbox of its task.

use std::path::Path;

use antiphon_sandbox::{Policy, SandboxMode};

use crate::arguments::Bash;
use crate::settings::ShellSettings;

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
    /// A sandbox of its own in which git may change the repository. It ends with the call: what
    /// commands have left there is removed before anything else looks at it.
    Repository,
    /// No sandbox.
    Everything,
}

impl Access {
    /// What a call gets, and why git may not write to its repository, if it may not.
    pub(crate) fn of(
        settings: &ShellSettings,
        arguments: &Bash,
        workdir: &Path,
    ) -> (Self, Option<String>) {
        match settings.policy.mode {
            SandboxMode::ReadOnly | SandboxMode::Workspace if arguments.is_without_sandbox() => {
                (Self::Everything, None)
            }
            SandboxMode::Workspace
                if is_in_repository(&settings.policy, workdir)
                    && (settings.changes_repository)(&arguments.command) =>
            {
                match closed(settings, arguments, workdir) {
                    Some(reason) => (Self::Sandbox, Some(reason)),
                    None => (Self::Repository, None),
                }
            }
            SandboxMode::ReadOnly | SandboxMode::Workspace | SandboxMode::Full => {
                (Self::Sandbox, None)
            }
        }
    }

    /// The policy of a command in `workdir`.
    pub(crate) fn policy(self, policy: &Policy, workdir: &Path) -> Policy {
        match self {
            Self::Sandbox => policy.clone(),
            Self::Repository => Policy { repository: Some(workdir.to_owned()), ..policy.clone() },
            Self::Everything => Policy { mode: SandboxMode::Full, ..policy.clone() },
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

/// Why git may not write to the repository of `workdir`. `None` if it may.
fn closed(settings: &ShellSettings, arguments: &Bash, workdir: &Path) -> Option<String> {
    if arguments.is_background() {
        let reason = "it runs in the background. Run it without `background`";
        return Some(reason.to_owned());
    }
    let policy = Access::Repository.policy(&settings.policy, workdir);
    policy.repository_refusal().map(|refusal| refusal.to_string())
}

/// Settings for git while it may write to the repository. Hooks and other programs of the workspace
/// would be able to write there too. The settings of the repository itself are read-only.
fn git_settings() -> Vec<(String, String)> {
    const SETTINGS: [(&str, &str); 16] = [
        ("core.hooksPath", "/dev/null"),
        ("core.fsmonitor", "false"),
        ("core.pager", "cat"),
        ("core.editor", ":"),
        ("core.askPass", ""),
        ("sequence.editor", ":"),
        ("credential.helper", ""),
        ("protocol.ext.allow", "never"),
        ("safe.bareRepository", "explicit"),
        ("submodule.recurse", "false"),
        ("fetch.recurseSubmodules", "false"),
        ("push.recurseSubmodules", "no"),
        ("gc.auto", "0"),
        ("gc.autoDetach", "false"),
        ("maintenance.auto", "false"),
        ("branch.autoSetupMerge", "false"),
    ];
    let count = ("GIT_CONFIG_COUNT".to_owned(), SETTINGS.len().to_string());
    let settings = SETTINGS.iter().enumerate().flat_map(|(at, (key, value))| {
        let pair = |name: &str, text: &str| (format!("GIT_CONFIG_{name}_{at}"), text.to_owned());
        [pair("KEY", key), pair("VALUE", value)]
    });
    // Git knows this name and starts no editor for it.
    let editors =
        ["GIT_EDITOR", "GIT_SEQUENCE_EDITOR"].map(|name| (name.to_owned(), ":".to_owned()));
    std::iter::once(count).chain(settings).chain(editors).collect()
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
