//! A task as `antiphon run` asks for it. The owner of the journal builds it, with what the process gave to it.

use std::path::PathBuf;

use antiphon_core::{ModelRef, RawJson, SessionId, SourceName, TaskId, TaskLimits};
use serde::{Deserialize, Serialize};

use crate::models::Route;

/// A task as `antiphon run` asks for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// The first message.
    pub prompt: String,
    /// The first message with its images, in place of the prompt: blocks in the form of a user message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<RawJson>,
    /// Name of the agent; the default one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The requested model; when absent, the agent's, the conversation's or the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// System prompt of a new conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The conversation that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<RunSession>,
    /// Its limits.
    #[serde(default)]
    pub limits: TaskLimits,
    /// JSON Schema of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<RawJson>,
    /// Whether it only reads until a person has accepted its plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plan: bool,
    /// Whether it only shortens the conversation that it continues. It has no first message then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compact: bool,
    /// The source that the prompt comes from, such as a program; the owner when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceName>,
    /// How the model is reached, and what the process gave to the task.
    #[serde(default)]
    pub route: Route,
}

/// The conversation that a task continues.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunSession {
    /// A session file.
    File(PathBuf),
    /// A new session under an id that the process has chosen.
    New {
        /// Its id.
        session_id: SessionId,
    },
    /// A session of the project.
    Stored {
        /// Its id.
        session_id: SessionId,
        /// Its last task, which has ended.
        last_task: TaskId,
    },
}
