//! How a command fails: a sentence for the person and a code for the shell.

use std::fmt;
use std::process::ExitCode;

use antiphon_runtime::{OrchestratorError, Rejection};
use antiphon_sqlite::OpenError;

/// A command that did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

/// The exit codes of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The work was tried and failed.
    Failed,
    /// Bad usage or bad input; nothing was tried.
    Usage,
    /// Not allowed: a limit, a budget, a permission.
    Refused,
    /// Something the command needs does not answer.
    Unavailable,
    /// Ctrl-C.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Refused => 3,
            Exit::Unavailable => 4,
            Exit::Interrupted => 130,
        })
    }
}

impl Failure {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, message: message.into() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self { exit: Exit::Refused, message: message.into() }
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self { exit: Exit::Unavailable, message: message.into() }
    }

    /// Output could not be written. A reader that has seen enough, such as `head`, interrupts.
    pub(crate) fn unwritable(error: &std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::interrupted();
        }
        Self::failed(format!("cannot write the output: {error}"))
    }

    pub(crate) fn interrupted() -> Self {
        Self { exit: Exit::Interrupted, message: "interrupted".to_owned() }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Owned { .. } => Self::unavailable(error.to_string()),
            OpenError::Later { .. }
            | OpenError::Earlier { .. }
            | OpenError::Damaged { .. }
            | OpenError::Unusable { .. } => Self::usage(error.to_string()),
        }
    }
}

impl From<OrchestratorError> for Failure {
    fn from(error: OrchestratorError) -> Self {
        let message = error.to_string();
        match error {
            OrchestratorError::Journal(_)
            | OrchestratorError::InboxFull { .. }
            | OrchestratorError::NotRunning { .. }
            | OrchestratorError::Unresponsive { .. } => Self::unavailable(message),
            OrchestratorError::Limit(_) | OrchestratorError::Budget(_) => Self::refused(message),
            OrchestratorError::Panicked { .. } => Self::failed(message),
            OrchestratorError::Replay(_)
            | OrchestratorError::NoModel { .. }
            | OrchestratorError::BadSchema { .. }
            | OrchestratorError::BadTool { .. }
            | OrchestratorError::NoSuchCall { .. }
            | OrchestratorError::ResultTooLong { .. }
            | OrchestratorError::NoApproval { .. }
            | OrchestratorError::AlreadyDecided { .. }
            | OrchestratorError::AllowanceRefused { .. }
            | OrchestratorError::RuleNotSaved { .. }
            | OrchestratorError::CannotStart { .. }
            | OrchestratorError::SessionExists { .. }
            | OrchestratorError::Ended { .. } => Self::usage(message),
        }
    }
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        let message = rejection.to_string();
        if rejection.is_temporary() { Self::unavailable(message) } else { Self::usage(message) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
