//! Why a remote agent did not do what it was asked.

use a2a::error_code;
use antiphon_core::port::RemoteError;
use antiphon_core::visible;

/// Characters of a remote agent's words that are repeated, at most.
const WORDS_MAX: usize = 300;

/// Why a remote agent did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Try again.
    Unreachable(String),
    /// Its answer is an error of the protocol.
    Error {
        /// Code of A2A.
        code: i32,
        /// Its words, bounded.
        message: String,
    },
    /// Give up.
    Refused(String),
}

impl Failure {
    /// An error of the protocol with the words of the remote agent.
    pub(crate) fn error(code: i32, message: &str) -> Self {
        Self::Error { code, message: words(message) }
    }

    /// Whether it knows no such task.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Error { code: error_code::TASK_NOT_FOUND, .. })
    }

    /// Whether the task is past the command: it has ended.
    pub(crate) fn is_past(&self) -> bool {
        matches!(
            self,
            Self::Error {
                code: error_code::TASK_NOT_CANCELABLE | error_code::UNSUPPORTED_OPERATION,
                ..
            }
        )
    }

    /// The reason in words.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Unreachable(reason) | Self::Refused(reason) => reason.clone(),
            Self::Error { code: error_code::VERSION_NOT_SUPPORTED, message } => {
                format!("it does not speak A2A 1.0: {message}")
            }
            Self::Error { code, message } => format!("it answers with error {code}: {message}"),
        }
    }

    /// The failure of a command to the remote agent of this name.
    pub(crate) fn of_agent(&self, name: &str) -> RemoteError {
        let reason = format!("the remote agent `{name}`: {}", self.reason());
        match self {
            Self::Unreachable(_) => RemoteError::Unavailable { reason },
            Self::Error { code: error_code::TASK_NOT_FOUND, .. } => RemoteError::Ended,
            Self::Error { .. } | Self::Refused(_) => RemoteError::Refused { reason },
        }
    }
}

/// Words of a remote agent on one line, bounded.
pub(crate) fn words(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    let shown: String = visible(&line).chars().take(WORDS_MAX).collect();
    if shown.is_empty() { "it does not say why".to_owned() } else { shown }
}
