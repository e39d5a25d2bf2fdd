//! `read_result`: reads a stored result by range.

use std::io;
use std::sync::Arc;

use antiphon_core::port::ToolContext;
use antiphon_core::{Effect, Offer, RawJson, TaskId, Tool, ToolError, ToolResult};
use async_trait::async_trait;
use encoding_rs::UTF_8;
use schemars::JsonSchema;
use serde::Deserialize;

use super::OutputStore;
use crate::blocking::{StopFlag, Stopped, blocking};
use crate::definition::{arguments, at_least_one, count, definition};
use crate::handler::ToolHandler;
use crate::paging::{LongLines, ROWS_BYTES_MAX, ROWS_MAX, Rows, ScanError, range_note, scan};

const NAME: &str = "read_result";

const DESCRIPTION: &str = "Reads a part of a result that was too long to show whole. The shortened result names its `id`. \
Returns numbered lines, at most 2,000 lines and 256 KiB per call; a line over 2,000 characters continues in the next \
row. Only results of this task can be read.";

/// Longest note after the rows, in bytes.
const NOTE_BYTES_MAX: usize = 1024;

/// The `read_result` tool.
#[derive(Debug)]
pub(crate) struct ReadResult {
    outputs: Arc<OutputStore>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The id that the shortened result named.
    id: String,
    /// The first line to show, from 1.
    #[serde(default, deserialize_with = "count")]
    #[schemars(with = "u64", range(min = 1))]
    offset: Option<u64>,
    /// Most lines to show.
    #[serde(default, deserialize_with = "at_least_one")]
    #[schemars(with = "u64", range(min = 1))]
    limit: Option<u64>,
}

impl ReadResult {
    pub(crate) fn new(outputs: Arc<OutputStore>) -> Self {
        Self { outputs }
    }
}

#[async_trait]
impl ToolHandler for ReadResult {
    fn definition(&self) -> Tool {
        definition::<Arguments>(NAME, DESCRIPTION)
    }

    fn effect(&self) -> Effect {
        Effect::ReadOnly
    }

    /// Once a result of the task was cut.
    fn offer(&self, task_id: &TaskId) -> Offer {
        if self.outputs.files().has_results(task_id) { Offer::Last } else { Offer::NotYet }
    }

    async fn call(&self, json: &RawJson, context: ToolContext) -> Result<ToolResult, ToolError> {
        let arguments: Arguments = arguments(NAME, json)?;
        let (outputs, task_id) = (Arc::clone(&self.outputs), context.task_id);
        blocking(NAME, context.cancel, move |stop| {
            let file = outputs.files().find(&task_id, &arguments.id);
            match file.map_err(ScanError::Io).and_then(|file| show(file, &arguments, stop)) {
                Ok(result) => Ok(result),
                Err(ScanError::Stopped) => Err(Stopped),
                Err(ScanError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                    Ok(ToolResult::failed(
                        "this task has no such result, or no longer: use an id that a result \
                         named, or run the tool again",
                    ))
                }
                Err(ScanError::Io(error)) => Ok(ToolResult::failed(format!(
                    "the result cannot be read: {error}. Run the tool again."
                ))),
            }
        })
        .await
    }

    fn result_bytes_max(&self) -> usize {
        ROWS_BYTES_MAX + NOTE_BYTES_MAX
    }
}

fn show(
    file: std::fs::File,
    arguments: &Arguments,
    stop: &StopFlag,
) -> Result<ToolResult, ScanError> {
    let size = file.metadata()?.len();
    let first = arguments.offset.unwrap_or(1).max(1);
    let mut rows = Rows::new(first, arguments.limit.unwrap_or(ROWS_MAX), LongLines::Wrapped);
    let scanned = scan(&[], file, UTF_8, &mut rows, |_| {}, stop)?;
    let rows = rows.finish();
    if rows.shown == 0 {
        let total = rows.total;
        return Ok(ToolResult::failed(format!(
            "the result has {total} lines, there is nothing at offset {first}: read it with a \
             smaller offset"
        )));
    }
    let note = range_note(first, &rows, scanned, size).map(|note| format!("[{note}]\n"));
    Ok(ToolResult::text(rows.text + &note.unwrap_or_default()))
}
