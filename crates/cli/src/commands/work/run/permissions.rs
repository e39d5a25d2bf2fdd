//! What the task may do, and what the process gives to it.

use antiphon_permissions::PermissionMode;
use antiphon_project::environment::Environment;
use antiphon_project::task_process::TaskProcess;
use antiphon_project::toolset::PermissionOverrides;
use antiphon_runtime::ApprovalPolicy;
use clap::ValueEnum;
use uuid::Uuid;

use super::Run;
use crate::failure::Failure;

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

impl Run {
    /// Refuses what belongs to this machine: a task at a server has the server's permissions, providers and files.
    pub(super) fn check_server_options(&self) -> Result<(), Failure> {
        let given = [
            (!self.allow.is_empty(), "--allow"),
            (self.mode.is_some(), "--mode"),
            (self.network, "--network"),
            (self.ask == Some(AskMode::Refuse), "--ask refuse"),
            (self.script.is_some(), "--script"),
            (self.record.is_some(), "--record"),
            (self.replay.is_some(), "--replay"),
            (self.retries.is_some(), "--retries"),
            (self.no_rules, "--no-rules"),
            (self.save.is_some(), "--save"),
        ];
        match given.iter().find(|(is_given, _)| *is_given) {
            None => Ok(()),
            Some((_, option)) => Err(Failure::usage(format!(
                "{option} does not work with --server: permissions, providers and files of the task are those of \
                 the server (docs/server.md). Omit it"
            ))),
        }
    }

    /// What this process gives to its task.
    pub(super) fn process(&self, environment: &Environment, has_user: bool) -> TaskProcess {
        let PermissionOverrides { mode, rules, network } = self.overrides();
        TaskProcess {
            id: Some(Uuid::new_v4()),
            folder: environment.current_dir.clone(),
            mode,
            allow: rules,
            network,
            refuses_approvals: self.approvals(has_user) == ApprovalPolicy::Refuse,
            no_rules: self.no_rules,
            ..TaskProcess::default()
        }
    }

    fn approvals(&self, has_user: bool) -> ApprovalPolicy {
        let default = if has_user { AskMode::Terminal } else { AskMode::Refuse };
        match self.ask.unwrap_or(default) {
            AskMode::Terminal | AskMode::Wait => ApprovalPolicy::Wait { timeout: None },
            AskMode::Refuse => ApprovalPolicy::Refuse,
        }
    }

    fn overrides(&self) -> PermissionOverrides {
        PermissionOverrides {
            mode: self.mode.map(PermissionMode::from),
            rules: self.allow.clone(),
            network: self.network,
        }
    }
}
