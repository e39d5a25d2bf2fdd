//! How a command fails: a message for the user and an exit code for the shell.

use std::fmt;

use antiphon_core::TaskId;
use antiphon_keys::KeyRingError;
use antiphon_project::error::ProjectError;
use antiphon_runtime::{OrchestratorError, Rejection};
use antiphon_sqlite::{BackupError, OpenError};
use rustix::io::Errno;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

/// The exit codes of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It was tried and failed.
    Failed,
    /// Invalid arguments or input; nothing was tried.
    Usage,
    /// A limit, a budget or a permission forbids it.
    Refused,
    /// A dependency does not answer.
    Unavailable,
    /// Ctrl-C.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

impl Exit {
    /// The code of the process.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Unavailable => 4,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
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

    /// Output cannot be written. A closed pipe, as of `head`, counts as an interrupt, and so does a closed terminal.
    pub(crate) fn unwritable(error: &std::io::Error) -> Self {
        let is_closed_terminal = error.raw_os_error() == Some(Errno::IO.raw_os_error());
        if error.kind() == std::io::ErrorKind::BrokenPipe || is_closed_terminal {
            return Self::interrupted();
        }
        Self::failed(format!("cannot write the output: {error}"))
    }

    /// A command that SIGTERM stopped. The task goes on when it is resumed.
    pub(crate) fn terminated(task_id: &TaskId) -> Self {
        let message = format!("stopped: continue with `antiphon run --resume {task_id}`");
        Self { exit: Exit::Terminated, message }
    }

    pub(crate) fn interrupted() -> Self {
        Self { exit: Exit::Interrupted, message: "interrupted".to_owned() }
    }

    /// A user ended the task, here or elsewhere.
    pub(crate) fn canceled() -> Self {
        Self { exit: Exit::Interrupted, message: "canceled".to_owned() }
    }
}

impl From<ProjectError> for Failure {
    fn from(error: ProjectError) -> Self {
        let exit = match &error {
            ProjectError::InvalidInput(_) => Exit::Usage,
            ProjectError::Refused(_) => Exit::Refused,
            ProjectError::Unavailable(_) | ProjectError::OwnerEnds(_) => Exit::Unavailable,
            ProjectError::Failed(_) => Exit::Failed,
        };
        Self { exit, message: error.to_string() }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        ProjectError::from(error).into()
    }
}

impl From<OrchestratorError> for Failure {
    fn from(error: OrchestratorError) -> Self {
        ProjectError::from(error).into()
    }
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        ProjectError::from(rejection).into()
    }
}

impl From<KeyRingError> for Failure {
    fn from(error: KeyRingError) -> Self {
        ProjectError::from(error).into()
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        ProjectError::from(error).into()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
