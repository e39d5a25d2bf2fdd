//! What an agent can do with files: read, write, edit, grep, glob.
//!
//! Every tool works within a [`Workspace`], the one boundary of them all. A [`Toolbox`] puts tools
//! together, these and those of other executors, and is what the orchestrator runs.
//!
//! ```
//! use std::sync::Arc;
//! use antiphon_core::ToolExecutor;
//! use antiphon_file_tools::{
//!     Aside, EditTool, Mode, ReadTool, Seen, Toolbox, Workspace, WorkspaceConfig, WriteTool,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let project = tempfile::tempdir()?;
//! # let project = project.path();
//! let workspace = Arc::new(Workspace::open(WorkspaceConfig::of(project, Mode::Workspace))?);
//! let seen = Arc::new(Seen::new());
//! let aside = Arc::new(Aside::open(&project.join(".antiphon/results"))?);
//! let tools = Toolbox::new(
//!     vec![
//!         Box::new(ReadTool::new(workspace.clone(), seen.clone())),
//!         Box::new(WriteTool::new(workspace.clone(), seen.clone())),
//!         Box::new(EditTool::new(workspace, seen)),
//!     ],
//!     Vec::new(),
//!     aside,
//! )?;
//! let names: Vec<String> = tools.tools().into_iter().map(|tool| tool.name).collect();
//! assert_eq!(names, ["read", "write", "edit", "read_result"]);
//! # Ok(())
//! # }
//! ```

mod aside;
mod definition;
mod edit;
mod glob;
mod grep;
mod read;
mod redacting;
mod search;
mod seen;
mod toolbox;
mod workspace;
mod write;

pub use aside::{ASIDE_RESULT_BYTES_MAX, ASIDE_TASK_BYTES_MAX, OutputStore};
pub use definition::{arguments, at_least_one, count, definition};
pub use edit::{EDIT_MATCHES_MAX, EDITS_MAX, EditTool};
pub use glob::{GLOB_LIMIT, GLOB_LIMIT_MAX, GlobTool};
pub use grep::{GREP_CONTEXT_MAX, GREP_LIMIT, GREP_LIMIT_MAX, GrepTool};
pub use read::{
    COUNTED_BYTES_MAX, FOLDER_ENTRIES_MAX, LINE_CHARS_MAX, ROWS_BYTES_MAX, ROWS_MAX, ReadTool,
};
pub use redacting::{Redacting, SECRET_BYTES_MIN, Secrets};
pub use seen::{SEEN_FILES_MAX, SEEN_TASKS_MAX, Seen};
pub use toolbox::{
    RESULT_BYTES_MAX, Stop, Stopped, ToolHandler, Toolbox, ToolboxError, blocking, reveal,
};
pub use workspace::{
    Access, Found, Identity, Kind, Mode, PATH_BYTES_MAX, PathError, Protected, Reading, Workspace,
    WorkspaceConfig, WorkspaceError,
};
pub use write::{FILE_BYTES_MAX, WriteTool};
