//! Why a task failed, and what a person can do about it.

use antiphon_core::{ModelRef, SessionId, TaskCreated};
use serde_json::Value;

/// Where a person reads it, which decides how the conversation goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureReader {
    /// At a command that has ended with the task.
    CommandLine,
    /// In a program in which the conversation goes on.
    Conversation,
}

/// A task that failed.
#[derive(Debug, Clone, Copy)]
pub struct FailedTask<'a> {
    /// What is in the detail of its status; empty when it has none.
    pub code: &'a str,
    /// The same.
    pub error: &'a str,
    /// The model that was asked for.
    pub model: Option<&'a ModelRef>,
    /// Its conversation.
    pub session: &'a SessionId,
}

/// What can be done about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// A limit of the task was reached: its conversation can go on.
    Limit,
    /// The model cannot be reached or is overloaded: later it may answer.
    Temporary,
    /// Anything else.
    Permanent,
}

impl<'a> FailedTask<'a> {
    /// A task by the detail of its status and by its creation.
    pub fn of(detail: Option<&'a Value>, created: &'a TaskCreated) -> Self {
        let text =
            |field: &str| detail.and_then(|detail| detail[field].as_str()).unwrap_or_default();
        Self {
            code: text("code"),
            error: text("error"),
            model: created.model.as_ref(),
            session: &created.session_id,
        }
    }

    /// What can be done about it.
    pub fn kind(&self) -> FailureKind {
        match self.code {
            "limit_reached" => FailureKind::Limit,
            "connection" | "timeout" | "overloaded" | "rate_limited" | "server" | "cut" => {
                FailureKind::Temporary
            }
            _ => FailureKind::Permanent,
        }
    }
}

/// The error, and its remedy where there is one. Text of a provider is in it: the caller escapes it.
pub fn failure_text(task: &FailedTask<'_>, reader: FailureReader) -> String {
    let FailedTask { code, error, model, session } = task;
    let error = if error.is_empty() { "the task failed" } else { error };
    let remedy = match (task.kind(), *code, model) {
        (FailureKind::Limit, ..) => match reader {
            FailureReader::CommandLine => {
                format!(": continue its conversation with `antiphon run --session {session} \"…\"`")
            }
            FailureReader::Conversation => ": type how the conversation should go on".to_owned(),
        },
        (FailureKind::Temporary, ..) => match reader {
            FailureReader::CommandLine => String::new(),
            FailureReader::Conversation => {
                ": try again later; `antiphon doctor` shows what is not reachable".to_owned()
            }
        },
        (FailureKind::Permanent, "not_found", Some(model)) => {
            format!(" (asked for `{model}`): see `antiphon models`")
        }
        (FailureKind::Permanent, "authentication" | "permission", Some(model)) => {
            wrong_key(model.provider())
        }
        (FailureKind::Permanent, ..) => String::new(),
    };
    format!("{error}{remedy}")
}

/// Where the key of a provider is set.
fn wrong_key(provider: &str) -> String {
    let variable = match provider {
        "anthropic" => "ANTHROPIC_API_KEY",
        "openai" => "OPENAI_API_KEY",
        "gemini" => "GEMINI_API_KEY",
        _ => return format!(": check the key of the provider `{provider}` (docs/models.md)"),
    };
    format!(": check {variable}, the key of the provider `{provider}`, or run `antiphon init`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_to_do() {
        let model = ModelRef::parse("anthropic/some").unwrap();
        let session = SessionId::parse("s1").unwrap();
        let text = |code, reader| {
            let task =
                FailedTask { code, error: "it failed", model: Some(&model), session: &session };
            failure_text(&task, reader)
        };
        let (command, conversation) = (FailureReader::CommandLine, FailureReader::Conversation);
        assert_eq!(
            text("authentication", conversation),
            "it failed: check ANTHROPIC_API_KEY, the key of the provider `anthropic`, or run `antiphon init`"
        );
        assert_eq!(
            text("not_found", command),
            "it failed (asked for `anthropic/some`): see `antiphon models`"
        );
        assert!(text("limit_reached", command).contains("antiphon run --session s1"));
        assert!(text("limit_reached", conversation).ends_with("should go on"));
        assert_eq!(text("overloaded", command), "it failed");
        assert!(text("overloaded", conversation).contains("antiphon doctor"));
        assert_eq!(text("other", conversation), "it failed");
    }
}
