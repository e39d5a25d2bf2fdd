//! Options that say what tasks may do.

use antiphon_permissions::PermissionMode;
use antiphon_project::task_process::TaskProcess;
use clap::{Args, ValueEnum};

/// What tasks may do beside the settings.
#[derive(Debug, Default, Args)]
pub(crate) struct PermissionArgs {
    /// Allow calls that this rule covers, such as `bash(git push *)`; repeatable.
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,

    /// Permission mode where no rule applies; the configured one, or `workspace`, when absent.
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<ModeName>,

    /// Allow commands to use the whole network; `--allow 'network(HOST)'` allows single hosts.
    #[arg(long)]
    pub(crate) network: bool,
}

impl PermissionArgs {
    /// What this process gives to its tasks, with these permissions.
    pub(crate) fn process(&self) -> TaskProcess {
        TaskProcess {
            mode: self.mode.map(PermissionMode::from),
            allow: self.allow.clone(),
            network: self.network,
            ..TaskProcess::default()
        }
    }
}

/// Permission mode where no rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeName {
    /// Read, and change nothing.
    ReadOnly,
    /// Work in the project, in a sandbox.
    Workspace,
    /// Everything the user may do, without a sandbox.
    Full,
}

impl From<ModeName> for PermissionMode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::ReadOnly => Self::ReadOnly,
            ModeName::Workspace => Self::Workspace,
            ModeName::Full => Self::Full,
        }
    }
}

/// What happens to a call that needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AskMode {
    /// Ask on the terminal.
    Terminal,
    /// Wait until it is decided.
    Wait,
    /// Refuse it, and tell the model which rule is missing.
    Refuse,
}
