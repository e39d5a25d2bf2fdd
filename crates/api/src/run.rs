//! Tasks that another process of the user runs through the owner of the project's journal: `antiphon run` beside
//! another one. Only the project's socket takes them.

use std::collections::BTreeMap;

use antiphon_core::{Position, RawJson, TaskId};
use serde::{Deserialize, Serialize};

/// Version of this program. Client and owner of a journal have the same.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a process gives to its task, and the task.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartRun {
    /// Version of the process. The owner takes its own version only.
    pub version: String,
    /// Environment variables of the process. The owner keeps them in memory until the task has ended.
    pub variables: BTreeMap<String, String>,
    /// Folder, permissions and approvals of the task. They are recorded with it.
    pub process: RawJson,
    /// A new task, or the id of one to resume or to follow again.
    pub target: RunTarget,
}

impl std::fmt::Debug for StartRun {
    /// Without the variables: they hold keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StartRun").field("target", &self.target).finish_non_exhaustive()
    }
}

/// The task of a process.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunTarget {
    /// A new task.
    New(RawJson),
    /// A task that was interrupted or paused. It goes on.
    Resume(TaskId),
    /// A task of the process that another owner ran before. It goes on if it was running; a paused one stays
    /// paused.
    Attach(TaskId),
}

/// The task of a process. The journal has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunStarted {
    /// Id of the task.
    pub task_id: TaskId,
    /// The task without a parent that it belongs to, which may be the task itself.
    pub root: TaskId,
    /// Position behind which the process reads the events of the task.
    pub after: Position,
    /// What the owner found out about the settings of the process, for its user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
