//! Changes of files that a task made.

use std::borrow::Cow;

use antiphon_core::{Position, Seq, TaskId, ToolCallId};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// Which changes to include.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiffQuery {
    /// Also the changes of the task's descendants.
    #[serde(default)]
    pub below: bool,
}

/// Changes that the file tools of a task made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskDiff {
    /// One entry per changing call, in the order of the journal.
    pub changes: Vec<FileChange>,
    /// `true` when changes are missing because of the limits of the response.
    pub truncated: bool,
    /// Which changes a diff never includes.
    pub note: Cow<'static, str>,
}

impl TaskDiff {
    /// All diffs as one text. Its last line says so when changes are missing.
    pub fn text(&self) -> String {
        let mut text: String = self.changes.iter().map(|change| change.diff.as_str()).collect();
        if self.truncated {
            text.push_str("[there is more than is shown]\n");
        }
        text
    }
}

/// One file that one tool call changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Change"))]
pub struct FileChange {
    /// Id of the task that made the call.
    pub task_id: TaskId,
    /// Number of the event that holds the result of the call.
    pub seq: Seq,
    /// Time of that event.
    pub at: DateTime<Utc>,
    /// Id of the call.
    pub tool_call_id: ToolCallId,
    /// Name of the tool: `edit` or `write`.
    pub tool: String,
    /// Path of the file, as the call gave it.
    pub path: String,
    /// Unified diff; empty when the tool reported none.
    pub diff: String,
    /// `true` when the diff is shortened.
    pub cut: bool,
    /// Position of that event in the journal. The server sorts by it and does not send it.
    #[serde(skip)]
    pub position: Position,
}
