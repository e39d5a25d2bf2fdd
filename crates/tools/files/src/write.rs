//! `write`: creates a file, or replaces one that the task has read.

mod file_write;

use std::sync::Arc;

use antiphon_core::port::{Cancel, CutOffCall, CutOffOutcome, ToolContext};
use antiphon_core::{Effect, RawJson, TaskId, Tool, ToolError, ToolResult};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::change_note::{self, ChangeNote};
use crate::read_tracker::ReadTracker;
use crate::workspace::Workspace;
use antiphon_toolbox::{ToolHandler, blocking};
use antiphon_toolbox::{arguments, definition};
use file_write::FileWrite;

/// Largest file that is written or edited, in bytes.
pub const FILE_BYTES_MAX: usize = 64 * 1024 * 1024;

const NAME: &str = "write";

const DESCRIPTION: &str = "\
Creates a file, with the folders above it, or replaces a whole file. A file that exists must \
have been read in this task and not have changed since. To change a part of a file, use `edit`.";

/// Creates a file, or replaces one that the task has read.
#[derive(Debug)]
pub struct WriteTool {
    workspace: Arc<Workspace>,
    reads: Arc<ReadTracker>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Relative or absolute.
    path: String,
    content: String,
}

impl WriteTool {
    /// Writes files in `workspace`. Replaces only versions recorded in `reads`.
    pub fn new(workspace: Arc<Workspace>, reads: Arc<ReadTracker>) -> Self {
        Self { workspace, reads }
    }

    fn file_write(&self, task_id: TaskId) -> FileWrite {
        let (workspace, reads) = (Arc::clone(&self.workspace), Arc::clone(&self.reads));
        FileWrite { workspace, reads, task_id }
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
        let note = ChangeNote::read(context.note.as_ref());
        let writing = self.file_write(context.task_id);
        blocking(NAME, context.cancel, move |stop| {
            writing.write(&arguments.path, &arguments.content, note.as_ref(), stop)
        })
        .await
    }

    async fn start_note(&self, json: &RawJson, task_id: &TaskId) -> Option<Value> {
        let arguments: Arguments = arguments(NAME, json).ok()?;
        let writing = self.file_write(task_id.clone());
        let note = blocking(NAME, Cancel::never(), move |_| {
            Ok(writing.change_note(&arguments.path, &arguments.content))
        });
        note.await.ok()??.to_value()
    }

    async fn inspect_cut_off(&self, json: &RawJson, call: &CutOffCall) -> CutOffOutcome {
        let parsed = arguments::<Arguments>(NAME, json);
        let (Ok(arguments), Some(note)) = (parsed, ChangeNote::read(call.note.as_ref())) else {
            return CutOffOutcome::Unknown { known: String::new() };
        };
        let writing = self.file_write(call.task_id.clone());
        let looked = blocking(NAME, Cancel::never(), move |_| {
            Ok(writing.inspect_cut_off(&arguments.path, &arguments.content, &note))
        });
        looked.await.unwrap_or_else(|error| change_note::unreadable(&error.to_string()))
    }

    async fn release(&self, task_id: &TaskId) {
        self.reads.release(task_id);
    }
}
