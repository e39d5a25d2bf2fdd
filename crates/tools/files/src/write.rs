//! `write`: creates a file, or replaces one that the task has read.

mod file_write;

use std::sync::Arc;

use antiphon_core::port::ToolContext;
use antiphon_core::{Effect, RawJson, TaskId, Tool, ToolError, ToolResult};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::read_tracker::ReadTracker;
use crate::workspace::Workspace;
use antiphon_toolbox::{ToolHandler, blocking};
use antiphon_toolbox::{arguments, definition};
use file_write::FileWrite;

/// Largest file that is written or edited, in bytes.
pub const FILE_BYTES_MAX: usize = 64 * 1024 * 1024;

const NAME: &str = "write";

const DESCRIPTION: &str = "Writes a whole file: makes it, with the folders above it, or replaces \
what is there. A file that exists must have been read in this task, and not have changed since. \
Permissions are kept. To change a part of a file use edit: it is cheaper and safer. The result \
shows what changed.";

/// Creates a file, or replaces one that the task has read.
#[derive(Debug)]
pub struct WriteTool {
    workspace: Arc<Workspace>,
    reads: Arc<ReadTracker>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file: relative to the working folder, or absolute.
    path: String,
    /// The whole text of the file, as it should be.
    content: String,
}

impl WriteTool {
    /// Writes files in `workspace`. Replaces only versions recorded in `reads`.
    pub fn new(workspace: Arc<Workspace>, reads: Arc<ReadTracker>) -> Self {
        Self { workspace, reads }
    }
}

#[async_trait]
impl ToolHandler for WriteTool {
    fn definition(&self) -> Tool {
        definition::<Arguments>(NAME, DESCRIPTION)
    }

    fn effect(&self) -> Effect {
        Effect::Idempotent
    }

    async fn call(&self, json: &RawJson, context: ToolContext) -> Result<ToolResult, ToolError> {
        let arguments: Arguments = arguments(NAME, json)?;
        if arguments.content.len() > FILE_BYTES_MAX {
            let reason = format!("`content`: expected {FILE_BYTES_MAX} bytes at most");
            return Err(ToolError::InvalidArguments { tool: NAME.to_owned(), reason });
        }
        let writing = FileWrite {
            workspace: Arc::clone(&self.workspace),
            reads: Arc::clone(&self.reads),
            task_id: context.task_id,
        };
        blocking(NAME, context.cancel, move |stop| {
            writing.write(&arguments.path, &arguments.content, stop)
        })
        .await
    }

    async fn release(&self, task_id: &TaskId) {
        self.reads.release(task_id);
    }
}
