//! What the process gives to its task.

use antiphon_project::environment::Environment;
use antiphon_project::task_process::TaskProcess;
use antiphon_runtime::ApprovalPolicy;
use uuid::Uuid;

use super::Run;
use crate::failure::Failure;
use crate::permission_args::AskMode;

impl Run {
    /// Refuses what belongs to this machine: a task at a server has the server's permissions, providers and files.
    pub(super) fn check_server_options(&self) -> Result<(), Failure> {
        let given = [
            (!self.permissions.allow.is_empty(), "--allow"),
            (self.permissions.mode.is_some(), "--mode"),
            (self.permissions.network, "--network"),
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
        TaskProcess {
            id: Some(Uuid::new_v4()),
            folder: environment.current_dir.clone(),
            refuses_approvals: self.approvals(has_user) == ApprovalPolicy::Refuse,
            no_rules: self.no_rules,
            ..self.permissions.process()
        }
    }

    fn approvals(&self, has_user: bool) -> ApprovalPolicy {
        let default = if has_user { AskMode::Terminal } else { AskMode::Refuse };
        match self.ask.unwrap_or(default) {
            AskMode::Terminal | AskMode::Wait => ApprovalPolicy::Wait { timeout: None },
            AskMode::Refuse => ApprovalPolicy::Refuse,
        }
    }
}
