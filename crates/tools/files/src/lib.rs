//! File tools: read, write, edit, grep, glob.
//!
//! Every tool works within a [`Workspace`], the one boundary of all of them. A
//! [`Toolbox`](antiphon_toolbox::Toolbox) combines them with other tools.
//!
//! ```
//! use std::sync::Arc;
//! use antiphon_core::ToolExecutor;
//! use antiphon_file_tools::{
//!     EditTool, Mode, ReadTool, ReadTracker, Workspace, WorkspaceConfig, WriteTool,
//! };
//! use antiphon_toolbox::{OutputStore, Toolbox};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let project = tempfile::tempdir()?;
//! # let project = project.path();
//! let workspace = Arc::new(Workspace::open(WorkspaceConfig::of(project, Mode::Workspace))?);
//! let reads = Arc::new(ReadTracker::new());
//! let outputs = Arc::new(OutputStore::open(&project.join(".antiphon/results"))?);
//! let tools = Toolbox::new(
//!     vec![
//!         Box::new(ReadTool::new(workspace.clone(), reads.clone())),
//!         Box::new(WriteTool::new(workspace.clone(), reads.clone())),
//!         Box::new(EditTool::new(workspace, reads)),
//!     ],
//!     Vec::new(),
//!     outputs,
//! )?;
//! let names: Vec<String> = tools.tools().iter().map(|tool| tool.name.clone()).collect();
//! assert_eq!(names, ["read", "write", "edit", "read_result"]);
//! # Ok(())
//! # }
//! ```

mod change_note;
mod edit;
mod glob;
mod grep;
mod read;
mod read_tracker;
mod search;
mod workspace;
mod write;

pub use edit::{EDIT_MATCHES_MAX, EDITS_MAX, EditTool};
pub use glob::{GLOB_LIMIT, GLOB_LIMIT_MAX, GlobTool};
pub use grep::{GREP_CONTEXT_MAX, GREP_LIMIT, GREP_LIMIT_MAX, GrepTool};
pub use read::{FOLDER_ENTRIES_MAX, ReadTool};
pub use read_tracker::{ReadTracker, TRACKED_FILES_MAX, TRACKED_TASKS_MAX};
pub use workspace::{
    Access, EntryKind, Identity, Mode, OpenedPath, OutsidePaths, PATH_BYTES_MAX, PathError,
    Protected, ReadAccess, Workspace, WorkspaceConfig, WorkspaceError,
};
pub use write::{FILE_BYTES_MAX, WriteTool};
