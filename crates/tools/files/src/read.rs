//! `read`: shows a file or a folder.

mod contents;
mod file_read;
mod notes;

use std::sync::Arc;

use antiphon_core::port::ToolContext;
use antiphon_core::{Effect, RawJson, TaskId, Tool, ToolError, ToolResult};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::read_tracker::ReadTracker;
use crate::workspace::Workspace;
use antiphon_toolbox::paging::{ROWS_BYTES_MAX, ROWS_MAX};
use antiphon_toolbox::{ToolHandler, blocking};
use antiphon_toolbox::{arguments, at_least_one, count, definition};
pub(crate) use contents::{Certainty, Contents, SAMPLE_BYTES_MAX, recognize};
pub use file_read::FOLDER_ENTRIES_MAX;
use file_read::FileRead;

/// Bytes reserved for the text around the rows.
const NOTES_BYTES_MAX: usize = 8 * 1024;

const NAME: &str = "read";

const DESCRIPTION: &str = "\
Reads a file: text as numbered lines (number, tab, line), at most 2,000 lines and 256 KiB unless \
`limit` says otherwise. A longer file says at which `offset` to go on; lines over 2,000 \
characters are cut. PNG, JPEG, GIF and WebP files are shown as images, a folder is listed. The \
line numbers are not part of the file.";

/// Looks at a file.
#[derive(Debug)]
pub struct ReadTool {
    workspace: Arc<Workspace>,
    reads: Arc<ReadTracker>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Relative or absolute.
    path: String,
    /// The first line to show, from 1.
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "u64", range(min = 1))]
    offset: Option<u64>,
    /// Most lines to show.
    #[serde(default, deserialize_with = "at_least_one")]
    #[schemars(with = "u64", range(min = 1))]
    limit: Option<u64>,
}

impl ReadTool {
    /// Reads files in `workspace`, and records the versions it read in `reads`.
    pub fn new(workspace: Arc<Workspace>, reads: Arc<ReadTracker>) -> Self {
        Self { workspace, reads }
    }
}

#[async_trait]
impl ToolHandler for ReadTool {
    fn definition(&self) -> Tool {
        definition::<Arguments>(NAME, DESCRIPTION)
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    async fn call(&self, json: &RawJson, context: ToolContext) -> Result<ToolResult, ToolError> {
        let arguments: Arguments = arguments(NAME, json)?;
        let reading = FileRead {
            workspace: Arc::clone(&self.workspace),
            reads: Arc::clone(&self.reads),
            task_id: context.task_id,
            first: arguments.offset.unwrap_or(1).max(1),
            limit: arguments.limit.unwrap_or(ROWS_MAX),
        };
        blocking(NAME, context.cancel, move |stop| reading.read(&arguments.path, stop)).await
    }

    fn result_bytes_max(&self) -> usize {
        ROWS_BYTES_MAX + NOTES_BYTES_MAX
    }

    async fn release(&self, task_id: &TaskId) {
        self.reads.release(task_id);
    }
}
