//! Why a demo ended early.

use std::io;

/// Why a demo ended early. Each variant has an exit code of its own; the text is for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DemoError {
    /// The demo ran and failed.
    #[error("{0}")]
    Failed(String),
    /// Bad usage or input; nothing was started.
    #[error("{0}")]
    Usage(String),
    /// A limit, a budget or a permission refused it.
    #[error("{0}")]
    Refused(String),
    /// The server or the journal does not answer.
    #[error("{0}")]
    Unavailable(String),
    /// The user ended it, or closed its output.
    #[error("{0}")]
    Interrupted(String),
}

impl DemoError {
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::Unavailable(message.into())
    }

    pub(crate) fn interrupted() -> Self {
        Self::Interrupted("interrupted".to_owned())
    }

    /// Output could not be written. A reader that closes the pipe early, such as `head`, interrupts.
    pub(crate) fn unwritable(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::interrupted();
        }
        Self::failed(format!("cannot write the output: {error}"))
    }
}
